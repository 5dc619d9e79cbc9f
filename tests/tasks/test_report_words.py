"""Rules on the words of a report, which the checks of tasks are built from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.tasks.words import says_all, says_count, says_name, says_number, says_together, sentences


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("There are 6 species.", True),
        ("Number of distinct species in the data: 6.", True),
        ("| species | 6 |", True),
        ("Species: 6.5 on average.", False),
        ("Six distinct and abundant SPECIES were found.", True),
        ("We found 6\nspecies.", True),
        ("There are 5 species.", False),
        ("There are 16 species.", False),
        ("There are 6 sites with many kinds of rare species.", False),
        ("Of 6 species, two species decline and three species gain.", True),
        ("On average there are 3.6 species at a site.", False),
        ("There are 1,006 species.", False),
        (" ".join(f"{n} species," for n in range(1, 13)), False),
        ("", False),
    ],
)
def test_a_count_is_told_in_digits_or_words_but_not_guessed(text: str, holds: bool) -> None:
    assert says_count(6, "species")(text) is holds


@pytest.mark.parametrize("written", ["2700", "2,700", "2\N{NO-BREAK SPACE}700", "2\N{NARROW NO-BREAK SPACE}700"])
def test_digits_of_a_count_may_be_parted_in_groups(written: str) -> None:
    assert says_count(2700, "patients")(f"The trial has {written} patients.")
    assert not says_count(700, "patients")(f"The trial has {written} patients.")


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("The range is 1200 m.", True),
        ("The range is 1,203.4 m.", True),
        ("A range of 1210.", True),
        ("The range is 1,500.2 m.", False),
        ("The range is 1.2 km.", False),
        ("The range lies between 900.5 and 1,180.25 metres.", True),
        ("Of 9 rows, 8 sites, 7 rocks and 6 labs: range 1210 m (5, 4) along 3, ratio 2 (1 to 10), 11, 12.", True),
        ("The range is 1, 2, 3, 4, 5, 6, 7, 8 or 1200 m.", False),
    ],
)
def test_a_measured_number_may_have_decimals_and_groups(text: str, holds: bool) -> None:
    assert says_number(r"\brange\b", [1200.0], 50, whole=False)(text) is holds


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("The slope is -2.5.", -2.5, True),
        ("The slope is \N{MINUS SIGN}2.5 a second.", -2.5, True),
        ("By its slope, it falls by 2.5 a second.", -2.5, True),
        ("The slope is -2.5.", 2.5, False),
        ("The slope is within 1-2.5.", 2.5, True),
        ("The slope is -0.01.", 0.0, True),
        ("The slope is -3.", -2.5, False),
    ],
)
def test_a_negative_number_is_told_with_its_sign_or_as_a_size(text: str, value: float, holds: bool) -> None:
    assert says_number(r"\bslope\b", [value], 0.02, whole=False)(text) is holds


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("A regime shift begins at survey 75.", True),
        ("Regime shifts begin at surveys 30,75,110.", True),
        ("Regime shifts begin at surveys 30,075 and 112.", True),
        ("The regime shift at survey 75 (" + ", ".join(f"{n / 10}" for n in range(12)) + ").", True),
        ("A regime shift begins at survey 77, in 2012.", True),
        ("A regime shift begins at survey 90.", False),
        ("A regime shift begins. Survey 75 was wet.", False),
        ("The regime shift is at 75.5 of something.", False),
        ("A regime shift at " + " ".join(map(str, range(60, 90))), False),
        ("The regime shift -75- is large.", True),
    ],
)
def test_a_number_is_told_near_its_subject_but_not_in_a_list_of_all(text: str, holds: bool) -> None:
    assert says_number(r"regime shift", [75], 3)(text) is holds


def test_patterns_anywhere_or_in_one_sentence() -> None:
    text = "The prey declines.\nIts predator gains."
    assert says_all("prey", "PREDATOR")(text)
    assert not says_together("prey", "predator")(text)
    assert says_together("predator", "gains")(text)


def test_one_of_the_names_is_enough_and_none_never_holds() -> None:
    assert says_name(["TT101", "PT202"])("Sensor pt202 failed.")
    assert not says_name(["TT101"])("Sensor TT1012 failed.")
    assert not says_name([])("Sensor TT101 failed.")
    assert says_name(["a.b"])("x a.b y")
    assert not says_name(["a.b"])("x acb y")


@given(st.text(alphabet=st.sampled_from("6 six species shift75.\n-\ud800")))
def test_rules_cope_with_any_text(text: str) -> None:
    for rule in (
        says_count(6, "species"),
        says_number("shift", [75], 2),
        says_together("six", "s"),
        says_name(["six"]),
    ):
        assert rule(text) in (True, False)
    assert all(sentence.strip() == sentence != "" for sentence in sentences(text))
