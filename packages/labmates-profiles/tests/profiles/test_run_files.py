"""An export is read again: runs of it are chosen as those of a store are."""

from __future__ import annotations

from pathlib import Path

import pytest

from labmates.errors import UsageError
from labmates.records.events import ScoreEvent
from labmates.records.store import Store
from labmates.studies.export import export_rows
from labmates.util.csv_rows import read_rows
from labmates_profiles.run_files import exported_runs, is_export
from tests.studies.ended import ended_run

ROW = {
    "id": "a",
    "kind": "game",
    "key": "k",
    "replicate": "0",
    "seed": "3",
    "status": "completed",
    "models": "x;y",
    "metrics.level": "2.5",
}


def test_runs_are_as_they_were_with_the_newest_scores(store: Store, tmp_path: Path) -> None:
    for seed, value in ((0, 0.25), (1, None)):
        scores = [
            ScoreEvent(judge="rubric:openai:gpt-5.4-mini", version="1", metric="accuracy", value=one, reason="")
            for one in (0.125, value)
        ]
        ended_run(store, "a paper", seed=seed, status="exhausted", more=scores, theory_of_mind=True, budget="2.50")
    export_rows(store, tmp_path / "runs.csv", store.runs())
    read = exported_runs(read_rows(tmp_path / "runs.csv"), "runs.csv")
    found = sorted(read, key=lambda one: one[0].seed)
    for (told, given), run in zip(found, sorted(store.runs(), key=lambda run: run.seed), strict=True):
        for name in ("id", "kind", "key", "seed", "status", "models", "metrics", "study", "error"):
            assert getattr(told, name) == getattr(run, name), name
        assert told.condition["theory_of_mind"] is True
        assert told.condition["team_size"] == run.condition["team_size"]
        assert float(told.condition["budget"]) == 2.5
        assert told.condition["model_for"] == {}
        assert set(told.condition) == {name for name, value in run.condition.items() if value is not None}
        assert given == store.score_values([run.id])[run.id]


def test_a_file_of_which_columns_were_cut_is_no_export() -> None:
    assert is_export(list(ROW))
    assert not is_export([name for name in ROW if name != "status"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"status": "done"}, r"f, line 3: the status of a run is one of planned, .*, not 'done'"),
        ({"seed": "first"}, "f, line 3: seed must be a finite number, not 'first'"),
        ({"replicate": "inf"}, "f, line 3: replicate must be a finite number, not 'inf'"),
        ({"metrics.level": "high"}, "f, line 3: metrics.level must be a finite number, not 'high'"),
    ],
)
def test_what_is_wrong_with_a_row_is_said(changes: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        exported_runs([ROW, {**ROW, **changes}], "f")


def test_parameters_are_values_again_where_names_of_columns_contradict_each_other() -> None:
    odd = {"condition.a": "1", "condition.a.b": "no", "condition.c": "TRUE", "condition.d": "", "condition.e": "0.5"}
    [(one, _)] = exported_runs([{**ROW, **odd}], "f")
    assert one.condition == {"a": {"b": "no"}, "c": True, "e": 0.5}
    assert one.models == ["x", "y"]
    assert one.metrics == {"level": 2.5}
