"""``labmates judges``: judges are listed and shown."""

from __future__ import annotations

import pytest

from tests.support.command_line import Labmates


def test_judges_are_listed_with_what_they_measure(labmates: Labmates) -> None:
    records = {record["name"]: record for record in labmates("judges", "--json").records}
    assert {"heuristic", "verified", "MODEL"} <= set(records)
    assert records["verified"]["metrics"] == ["accuracy", "skill", "provenance"]
    assert "Completeness, heuristic quality and accuracy by rules." in labmates("judges").out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("heuristic", "cooperative-profiles paper, section 4.1.2"),
        ("verified", "You copy findings out of scientific reports into JSON"),
        ("openai:gpt-5.4-mini", "# Rubrics\n\nCompleteness: is it a whole report?"),
        ("rubric", "What follows, up to the line that ends with the mark $mark"),
    ],
)
def test_a_shown_judge_has_its_version_rules_and_prompts(labmates: Labmates, name: str, said: str) -> None:
    shown = labmates("judges", "show", name)
    assert said in shown.out
    [record] = labmates("judges", "show", name, "--json").records
    assert shown.out.startswith(f"{name}, version {record['version']}\nmetrics: {', '.join(record['metrics'])}\n")


def test_an_unknown_judge_is_told_with_the_nearest_name(labmates: Labmates) -> None:
    done = labmates("judges", "show", "verifed")
    assert (done.code, "Did you mean 'verified'?" in done.err) == (2, True)
