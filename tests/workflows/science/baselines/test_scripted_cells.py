"""Baselines choose the cells of their task by role, and cut them to the limit of a reply."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.models.scripted.base import call, call_tokens
from labmates.tasks.registry import get_task
from labmates.tasks.schema import findings_fields_text, findings_schema_text
from labmates.workflows.science.baselines.cells import (
    LOOK,
    WORK,
    Cell,
    analysis_of,
    cell_of,
    guarded,
    look,
    restoring,
    work_of,
)
from labmates.workflows.science.lab.condition import ScienceCondition

ECOLOGY = get_task("ecology")
assert ECOLOGY.analysis is not None
CELLS = [Cell(ECOLOGY.analysis.titles[piece], ECOLOGY.analysis.code[piece]) for piece in ECOLOGY.analysis.ordered()]


def run(code: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "cell", "exec"), names)
    return printed.getvalue()


@pytest.mark.parametrize("text", [findings_schema_text, findings_fields_text])
def test_the_findings_that_a_prompt_asks_for_lead_to_the_task(text: Any) -> None:
    for name in ("ecology", "anomaly", "biomarker", "geospatial"):
        assert analysis_of(text(get_task(name))) is get_task(name).analysis
    assert analysis_of("- n_days (whole number): number of days") is None
    assert analysis_of("") is None


def test_a_role_runs_its_cells_and_an_unknown_one_those_that_its_task_asks_for() -> None:
    analysis = get_task("anomaly").analysis
    assert analysis is not None
    assert work_of("ml_engineer", "", analysis) == ["clean", "model"]
    assert work_of("statistician", "", analysis) == ["clean"]  # the task has no cell for what comes next
    assert work_of("peer", "check the claims in both halves", analysis) == ["clean", "check"]
    assert work_of("peer", "answer the questions of the project", analysis)[0] == LOOK
    asked = {piece for role in WORK for piece in work_of(role, "", analysis)}
    assert asked == {LOOK, *analysis.titles} - {"prepare"}


@pytest.mark.parametrize("name", ["ecology", "anomaly", "biomarker", "geospatial"])
def test_each_cell_fits_a_reply_of_the_usual_length(name: str) -> None:
    analysis = get_task(name).analysis
    assert analysis is not None
    most = ScienceCondition.model_fields["max_output_tokens"].default
    for cell in [restoring(), *(cell_of(analysis, piece) for piece in analysis.ordered())]:
        made = call("run_code", code=cell.code, description=cell.title)
        assert call_tokens(made.name, made.arguments) <= 0.9 * most


def test_code_that_fails_says_so_in_one_line() -> None:
    assert run(guarded("x = 1\nraise ValueError('no ' * 500)"), {}).startswith("stopped: ValueError no no")
    assert len(run(guarded("raise ValueError('no ' * 500)"), {})) < 250


VALUES = st.one_of(
    st.none(),
    st.integers(-(10**6), 10**6),
    st.floats(width=32),
    st.booleans(),
    st.text(max_size=6),
    st.just("2020-01-01"),
)


@settings(max_examples=15)
@given(st.data(), st.integers(0, 12))
def test_no_table_however_odd_makes_the_first_cells_raise_or_print_much(data: st.DataObject, rows: int) -> None:
    chosen = data.draw(st.lists(st.text(max_size=6) | st.sampled_from(["survey", "species"]), max_size=5, unique=True))
    columns = {name: data.draw(st.lists(VALUES, min_size=rows, max_size=rows)) for name in chosen}
    names: dict[str, Any] = {"df": pd.DataFrame(columns)}
    for cell in (look(), *(Cell(cell.title, guarded(cell.code)) for cell in CELLS[:2])):
        assert len(run(cell.code, names)) < 2_500
