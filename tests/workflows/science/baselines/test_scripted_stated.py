"""Findings are stated in the words of the task that stands in the prompt, and in no others."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.tasks.findings import read_findings
from labmates.tasks.registry import get_task
from labmates.tasks.schema import findings_schema_text
from labmates.workflows.science.baselines.facts import facts, lines_with_numbers, printed_lines
from labmates.workflows.science.baselines.stated import find_block, merge, read_fields, restate, show_block, state

ECOLOGY = {
    "entities": ["A b", "C d"],
    "breaks": [9],
    "fallers": ["A b"],
    "risers": ["C d"],
    "links": [["A b", "C d", -0.25]],
    "responses": {"rainfall_mm": {"up": ["C d"], "down": []}, "temperature": {"up": ["A b"], "down": []}},
    "future": {"A b": 3.5, "C d": 7.0},
}
ANOMALY = {
    "channels": ["T1", "T2", "T3"],
    "events": [[3, 3, ["T1"], "point"], [9, 20, ["T1", "T2"], "collective"]],
    "kinds": {"point": 1, "contextual": 0, "collective": 1},
    "share": 0.1,
    "worst": "T1",
    "drifting": ["T3"],
}
GEOSPATIAL = {
    "sites": 2900,
    "drivers": [["iron_pct", 1], ["soil_ph", -1]],
    "rock": "gneiss",
    "range": 1200,
    "azimuth": 35.5,
    "ratio": 2.1,
    "nugget": 0.3,
    "hotspots": [[400_100.0, 6_000_200.0, 250.0], [404_000.0, 6_003_000.0, 310.0]],
    "r2": {"random": 0.7, "block": 0.5, "plain": 0.4},
}
TASKS = [("ecology", ECOLOGY), ("anomaly", ANOMALY), ("geospatial", GEOSPATIAL)]


@pytest.mark.parametrize(("task", "results"), TASKS)
def test_every_field_of_the_tasks_is_stated_in_valid_form(task: str, results: dict[str, object]) -> None:
    model = get_task(task).findings
    block = state(results, read_fields(findings_schema_text(get_task(task))))
    assert set(block) == set(model.model_fields)
    found = read_findings(f"text\n{show_block(block)}", model)
    assert found.problems == ()
    assert found.findings is not None


def test_the_values_stand_where_they_belong() -> None:
    fields = read_fields(findings_schema_text(get_task("ecology")))
    assert state(ECOLOGY, fields) == {
        "n_species": 2,
        "shift_surveys": [9],
        "declining_species": ["A b"],
        "increasing_species": ["C d"],
        "interactions": [{"source": "A b", "target": "C d", "sign": "-", "strength": 0.25}],
        "warmth_gains": ["A b"],
        "warmth_loses": [],
        "forecast": [{"species": "A b", "abundance": 3.5}, {"species": "C d", "abundance": 7.0}],
    }


@pytest.mark.parametrize(("task", "results"), TASKS)
def test_what_was_stated_can_be_taken_up_and_stated_again(task: str, results: dict[str, object]) -> None:
    fields = read_fields(findings_schema_text(get_task(task)))
    block = state(results, fields)
    assert state(restate(find_block(show_block(block)), fields), fields) == block


def test_fields_that_no_rule_knows_are_left_out() -> None:
    schema = "\n".join(
        [
            "- n_subtypes (whole number): number of hidden subtypes of patients",
            "- regimes (whole number): number of regimes",
            "- range_km (number): range of the spatial covariance in kilometres",
            "- predictive (list of text): markers whose effect differs between the arms",
            "- hot_spots (list of object): places with a high concentration",
            "  - x (number): easting",
        ]
    )
    fields = read_fields(schema)
    assert len(fields) == 5
    assert len(fields[4].inner) == 1
    assert state({**ECOLOGY, **ANOMALY}, fields) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


FIELDS = [field for task, _ in TASKS for field in read_fields(findings_schema_text(get_task(task)))]


@given(st.dictionaries(st.sampled_from([field.name for field in FIELDS]), JSON, max_size=6))
def test_a_block_of_any_form_is_taken_as_far_as_it_makes_sense(block: dict[str, object]) -> None:
    results = restate(block, FIELDS)
    assert all(isinstance(fact, str) and fact for fact in facts(results))
    assert set(state(results, FIELDS)) <= {field.name for field in FIELDS}


@pytest.mark.parametrize("text", ["", "```findings\n{\n```", "```findings\n[1]\n```", "```json\n{}\n```"])
def test_no_block_is_an_empty_one(text: str) -> None:
    assert find_block(text) == {}


def test_the_last_readable_block_counts() -> None:
    assert find_block(f"{show_block({'a': 1})}\nand\n{show_block({'a': 2})}\n```findings\nbroken\n```") == {"a": 2}


def test_of_several_sources_the_first_counts() -> None:
    assert merge([{"a": 1}, {"a": 2, "b": 3}]) == {"a": 1, "b": 3}


def test_facts_are_sentences_with_numbers() -> None:
    for _, results in TASKS:
        told = facts(results)
        assert len(told) > 4
        assert all(sentence.endswith(".") and len(sentence) > 20 for sentence in told)


@given(st.text(max_size=300), st.integers(0, 5))
def test_lines_with_numbers_leave_out_code_and_headings(text: str, most: int) -> None:
    found = lines_with_numbers(f"{text}\n```findings\nthe number 5 in a block is no line of the text\n```", most)
    assert len(found) <= most
    assert not any("is no line of the text" in line for line in found)


def test_printed_lines_leave_out_what_is_for_programs() -> None:
    printed = f"RESULT {json.dumps(ANOMALY)}\n21 events\nno number\nstopped: ValueError 3\n21 events\nt = 3.0"
    assert printed_lines(printed, 5) == ["21 events", "t = 3.0"]
