"""Failure is never play: what ratings of cross-plays make of decisions that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tests.support.garbage  # noqa: F401 - registers a baseline
from labmates.api import arun
from labmates.stats.ratings import ALL_GAMES
from labmates.workflows.dilemmas import frames as dilemma_frames
from labmates.workflows.dilemmas.ratings import (
    cells_table,
    pooled,
    rate_play,
    summaries_table,
    summarise_plays,
)
from labmates.workflows.dilemmas.records import CrossPlay, cross_plays
from labmates.workflows.protocol.analysis import Runs

MECHANISMS: list[tuple[str, dict[str, Any]]] = [
    ("none", {}),
    ("repetition", {"rounds": 3}),
    ("reputation", {"rounds": 3, "order": 3}),
    ("mediation", {"ties": "all"}),
    ("contract", {"ties": "all"}),
    ("contract", {"proposals": "once"}),
    ("mediation+repetition", {"rounds": 2}),
    ("contract+mediation", {}),
    ("repetition+contract", {"rounds": 2}),
]


def plays(url: str, *games: str, models: str, mechanism: str = "none", **terms: Any) -> list[CrossPlay]:
    for game in games:
        condition: dict[str, Any] = {"game": game, "mechanism": mechanism, "entrants": models, "terms": terms}
        asyncio.run(arun("dilemma", store=url, **condition))
    return cross_plays(Runs(url))


def failing(play: CrossPlay, steps: Collection[str], *, stage: str = "choose") -> CrossPlay:
    """Return a cross-play in which these rounds' choices of the first model had failed."""
    asked = {f"{step.removesuffix('play')}{stage}/" for step in steps}
    return replace(
        play,
        rounds=tuple(
            replace(one, failed=tuple(who == play.models[0] for who in one.models)) if one.step in steps else one
            for one in play.rounds
        ),
        decided=tuple(
            replace(one, failed=one.model == play.models[0] and one.step.startswith(tuple(asked)))
            for one in play.decided
        ),
    )


@pytest.fixture
def url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/runs.db"


@pytest.mark.parametrize(("mechanism", "terms"), MECHANISMS)
def test_a_model_whose_every_reply_fails_is_unrated_and_does_not_change_others(
    url: str, mechanism: str, terms: dict[str, Any]
) -> None:
    models = "scripted:garbage,scripted:random,scripted:defect"
    [play] = plays(url, "prisoners", models=models, mechanism=mechanism, **terms)
    found = rate_play(play)
    assert found.cell.models == ("scripted:random", "scripted:defect")
    assert list(found.cell.left_out) == ["scripted:garbage"]
    assert found.cell.left_out["scripted:garbage"].rate == 1
    kept = rate_play(play, leave_out=())
    assert kept.cell.models == ("scripted:garbage", "scripted:random", "scripted:defect")
    tally = kept.cell.failed("scripted:garbage")
    assert tally is not None
    assert not tally.is_valid
    if play.has_metagame:
        assert found.cell.payoffs == pytest.approx(kept.cell.payoffs[1:, 1:])
    else:
        some = [one for one in play.rounds if play.models[0] not in one.models]
        who = play.models[1]
        mine = [(v, one.weight) for one in some for w, v in zip(one.models, one.expected, strict=True) if w == who]
        if len({who for one in some for who in one.agents}) == 4:
            assert np.isfinite(found.mean).all()
        assert min(v for v, _ in mine) <= found.mean[0] <= max(v for v, _ in mine)
    told = cells_table([found])
    assert any("scripted:garbage is left out" in note for note in told.notes)
    last = told.rows[-1]
    assert (last["model"], last["validity"], last["rank"]) == ("scripted:garbage", "left out", None)


def test_a_summary_leaves_a_model_out_of_the_game_in_which_it_failed_and_the_mean(url: str) -> None:
    models = "scripted:random,scripted:defect"
    found = plays(url, "prisoners", "trust", models=models)
    broken = [failing(one, [r.step for r in one.rounds]) if one.game == "trust" else one for one in found]
    assert pooled(broken[:1])["scripted:random"].failed == 0
    by_game = {(one.game, one.rating): one for one in summarise_plays(broken)}
    assert by_game["prisoners", "mean"].models == ("scripted:random", "scripted:defect")
    assert by_game["trust", "mean"].models == ("scripted:defect",)
    assert by_game["trust", "mean"].left_out == {"scripted:random": 1.0}
    assert by_game[ALL_GAMES, "mean"].models == ("scripted:defect",)
    kept = {(one.game, one.rating): one for one in summarise_plays(broken, keep_failed=True)}
    assert kept[ALL_GAMES, "mean"].models == ("scripted:random", "scripted:defect")
    assert kept["trust", "mean"].failed == (1.0, 0.0)
    notes = " ".join(summaries_table(list(by_game.values())).notes)
    assert "left out of trust under none: 100% of its decisions failed" in notes
    assert "left out of all games under none" in notes


def test_failed_decisions_are_told_by_model_stage_and_seat_and_count_nowhere_else(url: str) -> None:
    models = "scripted:garbage,scripted:equilibrium"
    found = plays(url, "prisoners", models=models, mechanism="contract")
    failures = dilemma_frames.failures_frame(found).set_index(["model", "stage", "seat"])
    for stage in ("propose", "vote", "choose"):
        for seat in (1, 2):
            assert failures.loc[("scripted:garbage", stage, seat), "share"] == 1
            assert failures.loc[("scripted:equilibrium", stage, seat), "share"] == 0
    actions = dilemma_frames.actions_frame(found)
    assert set(actions["model"]) == {"scripted:equilibrium"}
    assert set(actions["failed"]) == {0.0}
    adoption = dilemma_frames.adoption_frame(found).set_index("model")["approves"]
    assert list(adoption.isna()) == [name == "scripted:garbage" for name in adoption.index]
