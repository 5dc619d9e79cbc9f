"""Findings in the baselines' texts: fields of a prompt, blocks, and sentences that say what was found."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.tasks.registry import get_task
from labmates.tasks.schema import findings_schema_text
from labmates.workflows.science.baselines.stated import find_block, merge, read_fields, sentences, show_block

FIELDS = read_fields(findings_schema_text(get_task("ecology")))
FOUND: dict[str, Any] = {
    "n_species": 6,
    "shift_surveys": [52, 130],
    "declining_species": [],
    "interactions": [{"source": "Ulmus alba", "target": "Betula nana", "sign": "-", "strength": 0.25}],
}


def test_the_fields_of_a_prompt_are_those_of_the_task_with_their_descriptions() -> None:
    assert list(FIELDS) == list(get_task("ecology").findings.model_fields)
    assert FIELDS["n_species"] == "number of distinct species in the data"


def test_each_finding_is_a_sentence_in_the_words_of_its_field() -> None:
    assert sentences(FOUND, FIELDS) == [
        "Number of distinct species in the data: 6.",
        "Number of the first survey of each regime shift: 52, 130.",
        "Species whose geometric mean count after the last shift is below four fifths of that before the first: none.",
        "Direct effects between different species: source Ulmus alba, target Betula nana, sign -, strength 0.25.",
    ]
    assert sentences({"unknown": 1}, FIELDS) == []
    [long] = sentences({"shift_surveys": list(range(30))}, FIELDS)
    assert long.endswith("11, and 18 more.")


@pytest.mark.parametrize("text", ["", "no block", "```findings\n[1]\n```", "```findings\n{\n```"])
def test_what_is_no_block_states_nothing(text: str) -> None:
    assert find_block(text) == {}


def test_the_last_readable_block_counts_and_the_first_value_of_each_field() -> None:
    text = f"{show_block({'a': 1})}\nlater\n{show_block(FOUND)}\n```findings\n{{broken\n```"
    assert find_block(text) == FOUND
    assert merge([{"a": 1}, {"a": 2, "b": 3}]) == {"a": 1, "b": 3}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(list(FIELDS)), JSON, max_size=6))
def test_findings_of_any_form_can_be_said(block: dict[str, Any]) -> None:
    assert len(sentences(block, FIELDS)) == len(block)
