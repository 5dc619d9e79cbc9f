"""True findings in texts: by names, numbers and signs, within the task's own tolerances."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from labmates.judges.findings_rules import Finder, is_same, items_of, record_keys
from labmates.judges.rows import rows_of
from labmates.tasks.registry import TASKS, get_task
from labmates_author.tasks.report import oracle_report


@cache
def true(task: str = "anomaly", seed: int = 0) -> Any:
    return get_task(task).generate(seed, "easy").truth


def held(text: str, task: str = "anomaly") -> Counter[str]:
    """Return how many true items of each finding a text holds."""
    asked = get_task(task)
    finder, rows = Finder(asked, true(task)), list(rows_of(text, record_keys(asked.findings)))
    items = items_of(asked.oracle(true(task)))
    return Counter(item.finding for item in items if any(finder.holds(row, item) for row in rows))


def block(task: str = "anomaly", **only: Any) -> str:
    """Return the oracle's findings block, all fields or those given."""
    findings = get_task(task).oracle(true(task)).model_dump(mode="json")
    return f"```findings\n{json.dumps(only or findings)}\n```\n"


@pytest.mark.parametrize("task", list(TASKS))
def test_the_oracles_block_holds_every_true_finding(task: str) -> None:
    items = items_of(get_task(task).oracle(true(task)))
    assert held(block(task), task) == Counter(item.finding for item in items)


def test_a_findings_text_has_its_sign_and_all_digits() -> None:
    texts = {str(item) for item in items_of(get_task("ecology").oracle(true("ecology")))}
    assert "Pravina quieta, Mirvana cinerea, -, 0.226" in texts
    [spot, *_] = get_task("geospatial").oracle(true("geospatial")).hot_spots
    assert ", ".join(f"{value:.12g}" for value in spot.model_dump().values()) in {
        str(item) for item in items_of(get_task("geospatial").oracle(true("geospatial")))
    }


@pytest.mark.parametrize("task", ["anomaly", "ecology"])
def test_the_summary_in_prose_holds_most_of_them(task: str) -> None:
    items = items_of(get_task(task).oracle(true(task)))
    assert held(get_task(task).summary(true(task)), task).total() > 0.6 * len(items)


def test_another_data_sets_findings_are_not_the_true_ones() -> None:
    found = held(oracle_report(get_task("anomaly"), true("anomaly", 1)))
    assert found["events"] <= 1
    assert not found["drifting_sensors"]


@pytest.mark.parametrize(("away", "number"), [(1, 1), (700, 0)])
def test_a_finding_has_to_be_right_by_the_tasks_own_tolerance(away: int, number: int) -> None:
    event = true().events[-1].model_dump(mode="json")
    moved = {**event, "start": event["start"] + away, "end": event["end"] + away}
    assert held(block(events=[moved]))["events"] == number


def test_a_wrong_sign_in_a_record_is_no_finding() -> None:
    effect = true("ecology").interactions[0].model_dump(mode="json")
    turned = {**effect, "sign": "-" if effect["sign"] == "+" else "+"}
    assert held(block("ecology", interactions=[effect]), "ecology")["interactions"] == 1
    assert held(block("ecology", interactions=[turned]), "ecology")["interactions"] == 0


def test_statements_of_a_finding_with_other_signs_are_not_the_same() -> None:
    model = get_task("biomarker").findings
    [one, other, more] = [items_of(model(average_treatment_effect=value))[0] for value in (-2.5, 2.5, -2.51)]
    assert (is_same(one, more), is_same(one, other)) == (True, False)


def test_a_true_value_below_0_is_found() -> None:
    task, truth = get_task("biomarker"), true("biomarker").model_copy(update={"average_treatment_effect": -2.5})
    [item] = [item for item in items_of(task.oracle(truth)) if item.finding == "average_treatment_effect"]
    [row] = rows_of("The average treatment effect is -2.5 points.")
    assert Finder(task, truth).holds(row, item)


def test_a_name_counts_only_where_the_text_speaks_of_the_finding() -> None:
    [sensor, *_] = true().drifting_sensors
    assert not held(f"The columns are sample, {sensor} and shift.")["drifting_sensors"]
    assert held(f"Only {sensor} drifts, slowly.")["drifting_sensors"] == 1


def test_kinds_and_signs_are_no_names_that_a_text_has_to_hold() -> None:
    event = true().events[0].model_dump(mode="json")
    [item] = items_of(get_task("anomaly").findings.model_validate({"events": [event]}))
    assert item.names == tuple(event["sensors"])


@pytest.mark.parametrize("text", ["", "\x00" * 9, '{"events": [' * 400, "```findings\n{}", "9" * 9_000, "[" * 9_999])
def test_hostile_texts_hold_nothing(text: str) -> None:
    assert not held(f"Text. {text}")
