"""Scoring: right findings earn full credit, empty and foreign ones little, and padding does not pay."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.tasks.anomaly.findings import AnomalyFindings, AnomalyTruth, Event
from labmates.tasks.base import Credit, Difficulty, accuracy
from labmates.tasks.ecology.findings import EcologyFindings, EcologyTruth, Forecast, Interaction
from labmates.tasks.registry import get_task
from labmates.tasks.scoring import fading, guarded_f1, matches, plain_name, relative_error, score_names

NAMES = ("ecology", "anomaly", "biomarker", "geospatial")
SEEDS = range(5)


@cache
def truth_of(name: str, seed: int = 0, difficulty: Difficulty = "medium") -> Any:
    return get_task(name).generate(seed, difficulty).truth


def score(name: str, findings: Any, truth: Any) -> dict[str, Credit]:
    return {credit.finding: credit for credit in get_task(name).score(findings, truth)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "difficulty",
    [
        "medium",
        *(
            pytest.param(other, marks=pytest.mark.slow("tests/tasks/test_task_scoring.py"))
            for other in ("easy", "hard")
        ),
    ],
)
def test_the_oracle_is_perfect_nothing_is_worth_nothing_and_another_seed_below_half(
    name: str, difficulty: Difficulty
) -> None:
    task = get_task(name)
    truths = [truth_of(name, seed, difficulty) for seed in SEEDS]
    for truth in truths:
        assert accuracy(task.score(task.oracle(truth), truth)) == pytest.approx(1.0)
        assert accuracy(task.score(task.findings(), truth)) == 0.0
    for mine, other in itertools.permutations(truths, 2):
        assert accuracy(task.score(task.oracle(other), mine)) < 0.5


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(data=st.data())
def test_neither_the_order_of_lists_nor_letters_and_blanks_move_a_credit(name: str, data: st.DataObject) -> None:
    task, truth = get_task(name), truth_of(name)
    block, other = (task.oracle(one).model_dump(mode="json") for one in (truth, truth_of(name, 1)))
    chance = data.draw(st.randoms(use_true_random=False))
    for field, value in block.items():
        if isinstance(value, list):
            block[field] = chance.sample(value + other[field], len(value))
    before = task.score(task.findings.model_validate(block), truth)
    for value in block.values():
        if isinstance(value, list):
            chance.shuffle(value)
    after = task.score(task.findings.model_validate(_shouted(block)), truth)
    assert [one.credit for one in after] == pytest.approx([one.credit for one in before])


def _shouted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shouted(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shouted(inner) for inner in value]
    return f" {value.upper()} ".replace("-", "\N{MINUS SIGN}") if isinstance(value, str) else value


@pytest.mark.parametrize("seed", SEEDS)
def test_listing_everything_does_not_pay_in_ecology(seed: int) -> None:
    truth: EcologyTruth = truth_of("ecology", seed)
    names = truth.species
    everything = EcologyFindings(
        shift_surveys=list(range(0, 156, 4)),
        declining_species=names,
        increasing_species=names,
        interactions=[
            Interaction(source=a, target=b, sign=sign, strength=0.15)
            for a, b in itertools.permutations(names, 2)
            for sign in ("+", "-")
        ],
        warmth_gains=names,
        warmth_loses=names,
        forecast=[Forecast(species=name, abundance=value) for name in names for value in range(10, 600, 30)],
    )
    assert accuracy(get_task("ecology").score(everything, truth)) < 0.12


@pytest.mark.parametrize("seed", SEEDS)
def test_listing_everything_does_not_pay_in_anomaly(seed: int) -> None:
    truth: AnomalyTruth = truth_of("anomaly", seed)
    for width in (10, 40):
        everything = AnomalyFindings(
            events=[
                Event(start=at, end=at + width - 1, sensors=truth.sensors, kind="collective")
                for at in range(0, 4320, max(width, 15))
            ][:300],
            drifting_sensors=truth.sensors,
        )
        assert accuracy(get_task("anomaly").score(everything, truth)) < 0.12


def test_an_interaction_counts_in_full_half_or_not_at_all() -> None:
    truth = truth_of("ecology")
    one = truth.interactions[0]
    single = truth.model_copy(update={"interactions": [one]})

    def credit(**change: object) -> float:
        stated = EcologyFindings(interactions=[one.model_copy(update=change)])
        return score("ecology", stated, single)["interactions"].credit

    assert credit() == 1.0
    assert credit(source=f" {one.source.upper()}") == 1.0
    assert credit(sign=None) == 0.5
    assert credit(source=one.target, target=one.source) == 0.5
    assert credit(sign="+" if one.sign == "-" else "-") == 0.0
    assert credit(source="Nobody known") == 0.0
    both = [one.model_copy(update={"sign": sign}) for sign in ("+", "-")]
    assert score("ecology", EcologyFindings(interactions=both), single)["interactions"].credit == 0.0


def test_strengths_count_by_size_and_only_for_effects_that_were_found() -> None:
    truth = truth_of("ecology")
    half = [one.model_copy(update={"strength": -(one.strength or 0)}) for one in truth.interactions[::2]]
    expected = len(half) / len(truth.interactions)
    credits = score("ecology", EcologyFindings(interactions=half), truth)
    assert credits["interaction_strengths"].credit == pytest.approx(expected)
    tripled = [one.model_copy(update={"strength": 3 * (one.strength or 0)}) for one in truth.interactions]
    assert score("ecology", EcologyFindings(interactions=tripled), truth)["interaction_strengths"].credit == 0.0


def test_stating_an_interaction_again_or_all_there_could_be_does_not_pay() -> None:
    truth = truth_of("ecology")
    names = truth.species
    competition = [Interaction(source=a, target=b, sign="-", strength=0.15) for a, b in (names[:2], names[1::-1])]
    known = truth.model_copy(update={"interactions": competition})
    once, twice = (score("ecology", EcologyFindings(interactions=competition[:1] * n), known) for n in (1, 2))
    assert twice == once
    every = [Interaction(source=a, target=b, sign="-", strength=0.15) for a, b in itertools.permutations(names, 2)]
    credits = score("ecology", EcologyFindings(interactions=every), known)
    assert credits["interaction_strengths"].credit == pytest.approx(2 / len(every))
    none = truth.model_copy(update={"interactions": []})
    assert score("ecology", EcologyFindings(interactions=[]), none)["interaction_strengths"].credit == 1.0
    assert score("ecology", EcologyFindings(interactions=every), none)["interaction_strengths"].credit == 0.0


def test_a_shift_fades_with_its_distance() -> None:
    truth = truth_of("ecology").model_copy(update={"shift_surveys": [70]})
    credits = [
        score("ecology", EcologyFindings(shift_surveys=[70 + off]), truth)["shift_surveys"].credit for off in range(12)
    ]
    assert credits[:3] == [1.0] * 3
    assert credits == sorted(credits, reverse=True)
    assert credits[6:] == [0.0] * 6


def test_of_several_forecasts_for_one_species_the_last_counts() -> None:
    truth = truth_of("ecology")
    wrong = [Forecast(species=one.species, abundance=10 * one.abundance) for one in truth.forecast]
    assert score("ecology", EcologyFindings(forecast=wrong + truth.forecast), truth)["forecast"].credit == 1.0
    assert score("ecology", EcologyFindings(forecast=truth.forecast + wrong), truth)["forecast"].credit == 0.0


def test_an_event_counts_by_overlap_sensors_and_kind() -> None:
    true = Event(start=100, end=139, sensors=["TT1", "PT2"], kind="collective")
    truth = truth_of("anomaly").model_copy(update={"events": [true]})

    def credit(**change: object) -> float:
        stated = AnomalyFindings(events=[true.model_copy(update=change)])
        return score("anomaly", stated, truth)["events"].credit

    assert credit() == 1.0
    assert credit(start=105, end=135) == 1.0
    assert 0 < credit(end=400) < 0.5
    assert credit(sensors=["tt1"]) == pytest.approx(2 / 3)
    assert credit(sensors=[]) == 0.5
    assert credit(sensors=["XX9"]) == 0.0
    assert credit(kind="point") == pytest.approx(0.7)
    assert credit(start=200, end=240) == 0.0
    assert credit(start=139, end=100) == 0.0


def test_a_single_sample_may_be_missed_by_two() -> None:
    true = Event(start=50, end=50, sensors=["TT1"], kind="point")
    truth = truth_of("anomaly").model_copy(update={"events": [true]})
    credits = [
        score("anomaly", AnomalyFindings(events=[true.model_copy(update={"start": at, "end": at})]), truth)[
            "events"
        ].credit
        for at in (50, 51, 52, 60)
    ]
    assert credits[:2] == [1.0, 1.0]
    assert credits[2] > 0.7
    assert credits[3] == 0.0


def test_any_of_several_most_affected_sensors_is_right() -> None:
    truth = truth_of("anomaly").model_copy(update={"most_affected_sensors": ["TT1", "PT2"]})
    for tag, expected in (("tt1", 1.0), ("PT2", 1.0), ("VT3", 0.0)):
        stated = AnomalyFindings(most_affected_sensor=tag)
        assert score("anomaly", stated, truth)["most_affected_sensor"].credit == expected


@given(
    hits=st.integers(0, 30),
    extra=st.integers(0, 200),
    missed=st.integers(0, 30),
)
def test_guarded_f1_lies_in_the_unit_interval_and_falls_with_padding(hits: int, extra: int, missed: int) -> None:
    value = guarded_f1(hits, hits + extra, hits + missed)
    assert 0 <= value <= 1
    assert guarded_f1(hits, hits + extra + 1, hits + missed) <= value


def test_guarded_f1_is_plain_f1_from_a_precision_of_one_half() -> None:
    assert guarded_f1(5, 10, 10) == 0.5
    assert guarded_f1(5, 20, 10) == pytest.approx(1 / 3 / 2)
    assert guarded_f1(0, 0, 0) == 1.0
    assert guarded_f1(0, 3, 0) == 0.0


SIMILAR = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=4, max_size=4)


@given(st.lists(SIMILAR, max_size=4))
def test_matching_is_one_to_one_and_no_other_has_a_larger_sum(table: list[list[float]]) -> None:
    found = matches(range(len(table)), range(4), lambda i, j: table[i][j])
    assert len({i for i, _, _ in found}) == len({j for _, j, _ in found}) == len(found)
    assert [value for _, _, value in found] == sorted((value for _, _, value in found), reverse=True)
    assert all(value == table[i][j] > 0 for i, j, value in found)
    assert sum(value for _, _, value in found) == max(
        sum(table[i][j] for i, j in enumerate(chosen)) for chosen in itertools.permutations(range(4), len(table))
    )


@given(st.floats(0, 100), st.floats(0, 10), st.floats(0.1, 10))
def test_fading_is_full_then_falls_then_zero(error: float, full: float, more: float) -> None:
    value = fading(error, full, full + more)
    assert 0 <= value <= 1
    assert fading(error + 1, full, full + more) <= value


def test_names_match_up_to_case_blanks_and_punctuation_but_not_when_denied() -> None:
    assert plain_name("  Calvora_LENTA ") == plain_name("calvora lenta")
    credit = score_names("x", ["calvora_lenta", "Other one"], ["Calvora lenta", "Third one"], weight=1)
    assert credit.credit == 0.5
    denied = score_names("x", ["Calvora lenta"], ["Calvora lenta"], weight=1, denied=["calvora lenta"])
    assert denied.credit == 0.0


def test_relative_error_of_a_true_zero() -> None:
    assert relative_error(0, 0) == 0
    assert relative_error(1, 0) == float("inf")
    assert relative_error(-3, -2) == 0.5


def test_accuracy_is_the_weighted_mean() -> None:
    assert accuracy([]) == 0.0
    assert accuracy([Credit("a", 1.0, 3, ""), Credit("b", 0.0, 1, "")]) == 0.75


def test_names_that_the_data_cant_tell_count_neither_way_and_are_told() -> None:
    truth = truth_of("ecology", 3)
    findings = get_task("ecology").oracle(truth)
    declining = [*findings.declining_species, *truth.borderline_species]
    credit = score("ecology", findings.model_copy(update={"declining_species": declining}), truth)["declining_species"]
    assert credit.credit == 1.0
    assert credit.reason == "2 right of 2 stated and 2 true, without 1 that the data can't tell"
