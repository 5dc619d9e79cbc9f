"""The baseline's analysis of a trial: which tables it takes for one, what it finds, states and checks."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.models.scripted.base import call, call_tokens
from labmates.tasks.findings import read_findings
from labmates.tasks.registry import get_task
from labmates.tasks.schema import findings_schema_text
from labmates.workflows.science.baselines.cells import FILES, WORK, Cell, cells_for, pieces
from labmates.workflows.science.baselines.facts import facts
from labmates.workflows.science.baselines.stated import find_block, read_fields, restate, show_block, state
from tests.workflows.science.baselines.test_scripted_analysis import SEQUENCES, analyse, any_length, run

ALL = ("prepare", *(FILES["trial"][piece] for piece in ("clean", "patterns", "model", "future", "compare", "errors")))
FOUND: dict[str, Any] = {
    "count": 40,
    "ate": 2.5,
    "helped": 0.75,
    "prognostic": [["AB1", 1.5], ["AB2", -0.5]],
    "predictive": [["AB1", -2.0]],
    "subtypes": [[0.6, ["AB1"], [], 3.5], [0.4, [], ["AB2"], -0.5]],
    "batchy": ["AB3"],
    "other_unit": [],
}
BLOCK: dict[str, Any] = {
    "n_patients": 40,
    "average_treatment_effect": 2.5,
    "prognostic_markers": [
        {"marker": "AB1", "sign": "+", "size": 1.5},
        {"marker": "AB2", "sign": "-", "size": 0.5},
    ],
    "predictive_markers": [{"marker": "AB1", "sign": "-", "size": 2.0}],
    "benefit_share": 0.75,
    "n_subtypes": 2,
    "subtypes": [
        {"share": 0.6, "high": ["AB1"], "low": [], "treatment_effect": 3.5},
        {"share": 0.4, "high": [], "low": ["AB2"], "treatment_effect": -0.5},
    ],
    "batch_markers": ["AB3"],
    "other_unit_markers": [],
}
FIELDS = read_fields(
    f"## What the final paper has to state\n{findings_schema_text(get_task('biomarker'))}\n## Your role"
)


def trial(rows: int = 600, seed: int = 0, **columns: Any) -> pd.DataFrame:
    """Return a trial in which one marker is prognostic, one predictive, and the rest are noise."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=(rows, 10))
    treated = rng.permutation(rows) % 2
    change = 5 + 3 * treated + 2 * level[:, 0] + 3 * treated * level[:, 1] + rng.normal(0, 4, size=rows)
    markers = {f"AB{j + 1}": np.exp(1 + 0.5 * level[:, j]).round(3) for j in range(10)}
    return pd.DataFrame(
        {
            "subject": [f"S{i:04d}" for i in range(rows)],
            "arm": np.where(treated, "new", "placebo"),
            **markers,
            "outcome": change.round(1),
            **columns,
        }
    )


def test_what_was_found_is_stated_in_the_words_of_the_task_and_taken_up_again() -> None:
    assert state(FOUND, FIELDS) == BLOCK
    read = read_findings(show_block(BLOCK), get_task("biomarker").findings)
    assert read.problems == ()
    assert state(restate(find_block(show_block(BLOCK)), FIELDS), FIELDS) == BLOCK


def test_facts_on_a_trial_are_sentences_with_numbers_and_names() -> None:
    told = facts(FOUND)
    assert all(one.endswith(".") and len(one) > 20 for one in told)
    text = " ".join(told)
    for words in ("2.50 points", "75.0 %", "2 subtypes", "AB1 (-2.00 points", "AB1 (+1.50 points", "40.0 %"):
        assert words in text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from([field.name for field in FIELDS]), JSON, max_size=6))
def test_a_block_of_any_form_is_taken_as_far_as_it_makes_sense(block: dict[str, object]) -> None:
    results = restate(block, FIELDS)
    assert all(isinstance(fact, str) and fact for fact in facts(results))
    assert set(state(results, FIELDS)) <= {field.name for field in FIELDS}


@pytest.mark.parametrize("name", ["marker", "sign", "size"])
def test_a_marker_that_was_stated_in_part_is_taken_up_if_it_has_a_name(name: str) -> None:
    part = {key: value for key, value in BLOCK["predictive_markers"][0].items() if key != name}
    taken = restate({"predictive_markers": [part]}, FIELDS)
    assert ("predictive" in taken) == (name != "marker")


def test_a_small_trial_is_analysed_with_the_right_signs() -> None:
    printed, found = analyse(trial(), SEQUENCES["biomarker"])
    assert "stopped" not in printed
    assert found["layout"] == "trial"
    assert found["count"] == 600
    assert found["ate"] == pytest.approx(3, abs=1)
    assert dict(found["prognostic"])["AB1"] == pytest.approx(2, abs=0.8)
    assert dict(found["predictive"])["AB2"] == pytest.approx(3, abs=1)
    assert len(found["subtypes"]) == 1


def _text_limits(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(AB1=[f"{v:.3f}" if v > 2 else "<2" for v in table["AB1"]])


def _typed_arms(table: pd.DataFrame) -> pd.DataFrame:
    arms = [(arm, arm.upper(), f" {arm} ", arm.title())[i % 4] for i, arm in enumerate(table["arm"])]
    return table.assign(arm=arms)


def _one_unit_off(table: pd.DataFrame) -> pd.DataFrame:
    batch = [f"P{i // 100}" for i in range(len(table))]
    factor = np.where(np.arange(len(table)) // 100 == 2, 1000.0, 1.0)
    return table.assign(batch=batch, AB2=table["AB2"] * factor)


@pytest.mark.parametrize("change", [_text_limits, _typed_arms, _one_unit_off], ids=lambda one: one.__name__)
def test_dirt_does_not_hide_what_is_there(change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    table = pd.concat([change(trial()), change(trial()).head(20)], ignore_index=True)
    _, found = analyse(table, SEQUENCES["biomarker"])
    assert found["count"] == 600
    assert found["ate"] == pytest.approx(3, abs=1)
    assert {"AB1"} <= {name for name, _ in found["prognostic"]}
    assert {"AB2"} <= {name for name, _ in found["predictive"]}
    assert found["other_unit"] == (["AB2"] if change is _one_unit_off else [])


@pytest.mark.parametrize(
    ("table", "layout"),
    [
        (trial(), "trial"),
        (trial().drop(columns="subject"), "trial"),
        (trial().drop(columns=[f"AB{j}" for j in range(4, 11)]), "table"),
        (trial(enrolled="2026-01-05").drop(columns=[f"AB{j}" for j in range(4, 11)]), "trial"),
        (trial()[["subject", "arm"]], "table"),
        (trial().drop(columns="arm"), "table"),
        (trial(arm="all treated"), "table"),
        (trial(arm=[f"a{i % 5}" for i in range(600)]), "table"),
    ],
)
def test_a_trial_has_two_arms_of_about_the_same_size_and_measurements(table: pd.DataFrame, layout: str) -> None:
    assert analyse(table, ("prepare",))[1]["layout"] == layout


ODD = {
    "a constant marker": trial(AB1=1.0),
    "a marker without values": trial(AB1=np.nan),
    "a marker below its limit": trial(AB1="<0.5"),
    "negative markers": trial().assign(AB1=lambda table: -table["AB1"]),
    "no identifier": trial().drop(columns="subject"),
    "no outcome": trial(outcome=np.nan),
    "a constant outcome": trial(outcome=1.0),
    "a text as outcome": trial(outcome="good"),
    "few patients": trial(30),
    "nearly no values": trial().mask(np.random.default_rng(0).random((600, 13)) < 0.6),
    "a batch each": trial(batch=[f"B{i}" for i in range(600)]),
    "words with gaps": trial(city=[None if i % 3 else "north" for i in range(600)]),
    "infinite values": trial(AB1=[np.inf if i % 7 else 1.0 for i in range(600)]),
}


@pytest.mark.slow("tests/workflows/science/baselines/test_scripted_trial.py")
@pytest.mark.parametrize("kind", ODD)
def test_an_odd_trial_gets_through_every_cell_in_few_words(kind: str) -> None:
    names: dict[str, Any] = {"df": ODD[kind], "mentions": {}, "claims": FOUND}
    for cell in (*ALL, "trial_check"):
        printed = run(pieces(cell, {}, any_length)[0].code, names)
        assert len(printed) < 2_500
        assert "stopped" not in printed


def test_the_check_drops_claims_that_do_not_hold_in_both_halves() -> None:
    claims = {"prognostic": [["AB1", 2.0], ["AB5", 9.0], ["XX9", 1.0]], "predictive": [["AB2", 3.0], ["AB1", -9.0]]}
    wrong = {**claims, "prognostic": [["AB1", -2.0]], "predictive": [["AB2", -3.0]]}
    _, found = analyse(trial(2_000), ("prepare", "trial_clean", "trial_check"), claims=claims)
    assert ["AB1", 2.0] in found["prognostic"]
    assert ["AB2", 3.0] in found["predictive"]
    assert "XX9" not in json.dumps(found)
    assert (found["checked"], found["held"]) == (4, len(found["prognostic"]) + len(found["predictive"]))
    printed, found = analyse(trial(2_000), ("prepare", "trial_clean", "trial_check"), claims=wrong)
    assert (found["prognostic"], found["predictive"], found["checked"], found["held"]) == ([], [], 2, 0)
    assert "not confirmed: prognostic AB1; predictive AB2" in printed


def test_without_claims_the_check_states_no_marker() -> None:
    _, found = analyse(trial(), ("prepare", "trial_clean", "trial_check"))
    assert found["checked"] == 0
    assert "prognostic" not in found


@pytest.mark.parametrize("limit", [800, 1_500])
def test_pieces_fit_the_limit_and_together_do_what_the_whole_does(limit: int) -> None:
    def fits(cell: Cell) -> bool:
        made = call("run_code", code=cell.code, description=cell.title)
        return call_tokens(made.name, made.arguments) <= limit

    frame = trial(300)
    names: dict[str, Any] = {"df": frame}
    printed = ""
    for cell in SEQUENCES["biomarker"]:
        parts = pieces(cell, {"mentions": {"outcome": 9}} if cell == "prepare" else {}, fits)
        assert len(parts) > 1 or limit > 800
        assert all(fits(part) for part in parts)
        printed += "".join(run(part.code, names) for part in parts)
    assert printed == analyse(frame, SEQUENCES["biomarker"], mentions={"outcome": 9})[0]


def test_every_role_has_a_cell_of_its_own_for_a_trial() -> None:
    assert {cell for role in WORK for cell in cells_for(role, "", "trial")} == {"profile", *FILES["trial"].values()}
