"""The analysis code finds what is in the data, says it briefly, repeats exactly, and survives any data."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labmates.models.scripted.base import call, call_tokens
from labmates.tasks.base import Difficulty, accuracy
from labmates.tasks.registry import get_task
from labmates.tasks.schema import findings_schema_text
from labmates.workflows.science.baselines.cells import FILES, TITLES, WORK, Cell, cells_for, guarded, pieces, source
from labmates.workflows.science.baselines.prompt import results_of
from labmates.workflows.science.baselines.stated import merge, read_fields, state

MENTIONS = {"species": 20, "survey": 5, "site": 4, "count": 4, "grade_ppm": 5, "rock": 9}
SEQUENCES = {
    "ecology": ("prepare", "panel_clean", "panel_model", "panel_future"),
    "anomaly": ("prepare", "sensors_clean", "sensors_events"),
    "biomarker": ("prepare", "trial_clean", "trial_model", "trial_subtypes"),
    "geospatial": ("prepare", "survey_clean", "survey_model", "survey_folds"),
}
MOST_PRINTED = 2_500


def any_length(_: Cell) -> bool:
    return True


def run(code: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "cell", "exec"), names)
    return printed.getvalue()


def analyse(frame: pd.DataFrame, cells: tuple[str, ...], **given: Any) -> tuple[str, dict[str, Any]]:
    """Return what the cells print in one session, and what they found."""
    names = {"df": frame, "mentions": MENTIONS, "claims": {}, **given}
    printed = ""
    for cell in cells:
        printed += "".join(run(piece.code, names) for piece in pieces(cell, {}, any_length))
    return printed, merge(reversed(list(results_of(printed))))


def from_csv(task: str, seed: int, difficulty: Difficulty) -> pd.DataFrame:
    return pd.read_csv(io.BytesIO(get_task(task).generate(seed, difficulty).csv()))


@pytest.mark.slow("tests/workflows/science/baselines/test_scripted_lab.py")
@pytest.mark.parametrize(
    ("name", "difficulty", "low", "high"),
    [
        ("ecology", "easy", 0.7, 1.0),
        ("ecology", "medium", 0.45, 0.85),
        ("ecology", "hard", 0.2, 0.65),
        ("anomaly", "easy", 0.7, 1.0),
        ("anomaly", "medium", 0.45, 0.8),
        ("anomaly", "hard", 0.15, 0.6),
        ("biomarker", "easy", 0.85, 1.0),
        ("biomarker", "medium", 0.5, 0.92),
        ("biomarker", "hard", 0.2, 0.7),
        ("geospatial", "easy", 0.85, 1.0),
        ("geospatial", "medium", 0.5, 0.9),
        ("geospatial", "hard", 0.25, 0.7),
    ],
)
def test_findings_are_as_right_as_plain_methods_can_make_them(
    name: str, difficulty: Difficulty, low: float, high: float
) -> None:
    task = get_task(name)
    schema = f"## What the final paper has to state\n{findings_schema_text(task)}\n## Your role"
    scores = []
    for seed in (1, 3):
        printed, results = analyse(from_csv(name, seed, difficulty), SEQUENCES[name])
        block = state(results, read_fields(schema))
        truth = task.generate(seed, difficulty).truth
        scores.append(accuracy(task.score(task.findings.model_validate(block), truth)))
        assert len(printed) <= MOST_PRINTED + 500
    assert low <= np.mean(scores) <= high


@pytest.mark.slow("tests/workflows/science/baselines/test_scripted_lab.py")
@pytest.mark.parametrize(
    ("name", "layout"),
    [("ecology", "panel"), ("anomaly", "sensors"), ("biomarker", "trial"), ("geospatial", "survey")],
)
def test_every_role_gets_through_its_cells_within_what_the_lead_gets_to_read(name: str, layout: str) -> None:
    claims = {"breaks": [50], "links": [["A", "B", 0.1]], "events": [[10, 12, ["no such"], "point"]]}
    names = {"df": from_csv(name, 11, "medium"), "mentions": MENTIONS, "claims": claims}
    printed = {
        cell: run(source(cell), names) for cell in ("prepare", "profile", *dict.fromkeys(FILES[layout].values()))
    }
    assert next(results_of(printed["prepare"]))["layout"] == layout
    for role in WORK.keys() - {"researcher"}:  # who works alone reads all of it anyway
        assert sum(len(printed[cell]) for cell in ("prepare", *cells_for(role, "", layout))) <= 3_000, role


@pytest.mark.slow("tests/workflows/science/baselines/test_scripted_lab.py")
@pytest.mark.parametrize("name", SEQUENCES)
def test_the_same_data_give_the_same_words(name: str) -> None:
    frame = from_csv(name, 5, "hard")
    assert analyse(frame, SEQUENCES[name])[0] == analyse(frame.copy(), SEQUENCES[name])[0]


def test_the_check_keeps_what_holds_and_drops_what_does_not() -> None:
    frame = from_csv("anomaly", 2, "easy")
    _, results = analyse(frame, SEQUENCES["anomaly"])
    claims = {"events": [*results["events"], [5, 40, ["no such sensor"], "collective"]]}
    printed, checked = analyse(frame, ("prepare", "sensors_clean", "sensors_check"), claims=claims)
    assert checked["checked"] == len(claims["events"])
    assert 0 < checked["held"] < checked["checked"]
    assert "not confirmed" in printed


def odd_columns(data: st.DataObject, rows: int) -> dict[object, list[object]]:
    values = st.one_of(
        st.none(),
        st.integers(-(10**6), 10**6),
        st.floats(width=32),
        st.booleans(),
        st.text(max_size=6),
        st.just("2020-01-01"),
        st.just(float("inf")),
    )
    names = st.one_of(st.text(max_size=6), st.sampled_from(["day", "site", "species", "temp", "value"]))
    chosen = data.draw(st.lists(names, max_size=5, unique=True))
    return {name: data.draw(st.lists(values, min_size=rows, max_size=rows)) for name in chosen}


@pytest.mark.slow("tests/workflows/science/baselines/test_scripted_lab.py")
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.integers(0, 12))
def test_no_table_however_odd_makes_a_cell_raise_or_print_much(data: st.DataObject, rows: int) -> None:
    frame = pd.DataFrame(odd_columns(data, rows))
    names: dict[str, Any] = {"df": frame, "mentions": MENTIONS, "claims": {}}
    for cell in ("prepare", *TITLES):
        assert len(run(pieces(cell, {}, any_length)[0].code, names)) < 2_500


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 2**16), st.sampled_from(["constant", "gaps", "negative", "one place", "text values"]))
def test_a_panel_of_an_odd_kind_gets_through(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    steps, places, series = 60, 1 if kind == "one place" else 2, 3
    t, p, s = (index.ravel() for index in np.indices((steps, places, series)))
    value = rng.gamma(2.0, 20.0, size=len(t))
    if kind == "constant":
        value[:] = 5.0
    elif kind == "gaps":
        value[rng.random(len(t)) < 0.9] = np.nan
    elif kind == "negative":
        value -= 1_000.0
    frame = pd.DataFrame({"step": t, "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(t, unit="D"), "series": s})
    frame["series"] = frame["series"].map({0: "a", 1: "b", 2: "c"})
    frame["place"] = np.where(p == 0, "x", "y")
    frame["value"] = [f"{v:.1f}" for v in value] if kind == "text values" else value
    for role in ("ml_engineer", "eval_lead", "statistician"):
        analyse(frame, ("prepare", *cells_for(role, "", "panel")))


def test_code_that_fails_says_so_in_one_line() -> None:
    assert run(guarded("x = 1\nraise ValueError('no ' * 500)"), {}).startswith("stopped: ValueError no no")
    assert len(run(guarded("raise ValueError('no ' * 500)"), {})) < 250


@pytest.mark.parametrize("limit", [300, 500, 1_000, 4_000])
def test_pieces_fit_the_limit_and_together_do_what_the_whole_does(limit: int) -> None:
    def fits(cell: Cell) -> bool:
        made = call("run_code", code=cell.code, description=cell.title)
        return call_tokens(made.name, made.arguments) <= limit

    frame = from_csv("ecology", 1, "easy")
    names: dict[str, Any] = {"df": frame}
    printed = ""
    for cell in SEQUENCES["ecology"]:
        parts = pieces(cell, {"mentions": MENTIONS} if cell == "prepare" else {}, fits)
        assert all(fits(part) for part in parts)
        assert len({part.title for part in parts}) == len(parts)
        assert parts or limit < 500
        printed += "".join(run(part.code, names) for part in parts)
    if limit >= 500:
        assert printed == analyse(frame, SEQUENCES["ecology"])[0]


def test_every_cell_is_a_file_with_a_title_and_without_a_word_for_linters() -> None:
    for layout in FILES.values():
        assert set(layout.values()) <= set(TITLES)
    for name in TITLES:
        assert "ruff" not in source(name)
        assert "mypy" not in source(name)
        compile(source(name), name, "exec")
