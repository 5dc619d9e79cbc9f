"""``labmates analyze teams``: ratings of models on the seats of the lab, out of science runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import yaml

from labmates.records.events import ScoreEvent
from labmates.records.store import Store
from labmates.studies.source import find_study
from labmates.studies.spec import read_spec
from tests.cli.conftest import Labmates
from tests.studies.ended import fresh_run
from tests.support.studies import conditions_of
from tests.support.teams import TEAMS

MODELS = ("scripted:diligent", "scripted:hasty")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return a store with every seating of two models; diligent data and writing teams add to accuracy."""
    store = Store(f"sqlite:///{tmp_path}/labmates.db")
    for who in product(MODELS, repeat=4):
        for seed in range(2):
            accuracy = 0.3 + 0.4 * (who[0] == MODELS[0]) + 0.2 * (who[3] == MODELS[0]) + 0.01 * seed
            run = fresh_run(seed=seed, model_for=dict(zip(TEAMS, who, strict=True)))
            store.create(replace(run, status="completed", metrics={"accuracy": accuracy}))
            score = ScoreEvent(judge="verified", version="1", metric="accuracy", value=1 - accuracy, reason="")
            store.add(run.id, [(0, score)], [])
    yield store
    store.close()


def test_each_seat_and_any_is_rated(labmates: Labmates, store: Store) -> None:
    rows = labmates("analyze", "teams", "--resamples", "20", "--json").records
    found = {(row["seat"], row["model"]): row for row in rows}
    assert len(found) == 10
    assert found["data", MODELS[0]]["mean"] - found["data", MODELS[1]]["mean"] == pytest.approx(0.4)
    assert found["writing", MODELS[1]]["deviation"] == pytest.approx(-0.2, abs=1e-6)
    assert found["eval", MODELS[1]]["rank"] == 1.5
    assert found["any seat", MODELS[1]]["deviation"] == pytest.approx(-0.15, abs=1e-6)
    assert (
        found["data", MODELS[0]]["mean_low"] < found["data", MODELS[0]]["mean"] < found["data", MODELS[0]]["mean_high"]
    )
    shown = labmates("analyze", "teams", "--resamples", "10", "--out", "teams.tex")
    assert "equal values" in shown.out
    assert (labmates.folder / "teams.tex").is_file()


def test_the_score_of_a_judge_can_be_the_payoff(labmates: Labmates, store: Store) -> None:
    rows = labmates("analyze", "teams", "--judge", "verified", "--resamples", "10", "--json").records
    found = {(row["seat"], row["model"]): row for row in rows}
    assert found["data", MODELS[0]]["deviation"] == pytest.approx(-0.4, abs=1e-6)
    for more, why in (
        (["--judge", "nobody"], "by the judge 'nobody'"),
        (["--metric", "beauty"], "metrics: accuracy"),
        (["--model", "openai:x"], "(with these models)"),
        (["--model", MODELS[0]], "taken by one model"),
        (["--study", "x"], "has no run of"),
    ):
        refused = labmates("analyze", "teams", *more)
        assert (refused.code, why in refused.err) == (2, True), refused.err


def test_what_is_missing_is_told_with_a_study_that_plays_it(labmates: Labmates, tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/labmates.db")
    for writer in MODELS:
        run = fresh_run(model_for={"writing": writer})
        store.create(replace(run, status="completed", metrics={"accuracy": 0.5}))
    store.close()
    refused = labmates("analyze", "teams")
    assert refused.code == 2
    assert "15 of 16 seatings" in refused.err or "14 of 16 seatings" in refused.err
    assert "labmates analyze teams --plan --task anomaly" in refused.err
    plan = labmates("analyze", "teams", "--plan", "--task", "anomaly", "--model", MODELS[0], "--model", MODELS[1])
    assert plan.code == 0
    assert len(yaml.safe_load(plan.out)["grid"]["model_for"]) == 16
    (tmp_path / "teams.yaml").write_text(plan.out)
    source = find_study(str(tmp_path / "teams.yaml"))
    assert len(conditions_of(read_spec(source), source)) == 16
    assert labmates("analyze", "teams", "--plan", "--task", "anomaly").code == 2
    assert labmates("analyze", "teams", "--plan", "--task", "no", "--model", "a:b", "--model", "c:d").code == 2
