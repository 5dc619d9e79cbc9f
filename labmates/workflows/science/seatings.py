"""Science runs as plays of the game between models on the teams' seats, and studies of all seatings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, cast

import yaml

from labmates.agents.organisation_files import find_organisation
from labmates.grouping import grouped
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.workflows.analysis import TooFewRunsError
from labmates.workflows.experiment import condition_of
from labmates.workflows.science.condition import ScienceCondition
from labmates.workflows.science.seat_ratings import SeatGame

_OF_SEATS = ("model", "model_for")


def seat_games(
    store: Store,
    runs: Sequence[RunRecord],
    *,
    metric: str = "skill",
    judge: str | None = None,
    models: Sequence[str] = (),
) -> list[SeatGame]:
    """The games of science runs: one per condition, over the models on its seats.

    Unfinished runs, runs of one agent or one team, and runs with other models than `models` are excluded.

    Parameters
    ----------
    metric
        Payoff of all models of a run.
    judge
        Judge of the metric's newest score; by default the run's metric.
    models
        Models to compare; all by default.

    Raises
    ------
    TooFewRunsError
        If there is no ended run of several teams, or none has the metric.
    """
    played = [run for run in runs if run.kind == ScienceCondition.kind and run.status in ENDED]
    seated = [(run, _seated(run)) for run in played if not run.condition.get("solo")]
    seated = [(run, who) for run, who in seated if len(who) > 1 and (not models or set(who) <= set(models))]
    if not seated:
        raise TooFewRunsError(
            f"none of these {len(runs)} runs is an ended science run of several teams (with these models)"
        )
    scores = store.score_values([run.id for run, _ in seated]) if judge is not None else {}
    groups: dict[str, list[tuple[RunRecord, tuple[str, ...], float | None]]] = {}
    for run, who in seated:
        score = run.metrics.get(metric) if judge is None else scores[run.id].get((judge, metric))
        groups.setdefault(json.dumps(_shared(run), sort_keys=True), []).append((run, who, score))
    if all(score is None for group in groups.values() for _, _, score in group):
        known = sorted({name for run, _ in seated for name in run.metrics})
        by = f" by the judge '{judge}'" if judge is not None else ""
        raise TooFewRunsError(
            f"none of these {len(seated)} runs has the metric '{metric}'{by}; metrics: {', '.join(known)}"
        )
    return [_game(group, models) for group in groups.values()]


def missing_seatings(game: SeatGame) -> list[str]:
    """Seatings that were not played, each as ``data=…, model=…, eval=…, writing=…``."""
    return [
        ", ".join(f"{seat}={game.models[place]}" for seat, place in zip(game.seats, seating, strict=True))
        for seating in game.missing()
    ]


def seating_study(models: Sequence[str], condition: Mapping[str, Any], *, replicates: int = 3) -> str:
    """A study file that plays every seating of these models; `condition` has all other parameters."""
    seats = find_organisation(condition.get("organisation", "pipeline")).teams
    grid = [dict(zip(seats, who, strict=True)) for who in product(models, repeat=len(seats))]
    spec = {"name": "teams", "kind": ScienceCondition.kind, "description": "Every seating of the models on the teams."}
    fixed = {name: value for name, value in condition.items() if name not in _OF_SEATS}
    head = yaml.safe_dump({**spec, "fixed": {"model": models[0], **fixed}}, sort_keys=False, allow_unicode=True)
    seatings = "".join(f"    - {json.dumps(seating, ensure_ascii=False)}\n" for seating in grid)
    return f"{head}grid:\n  model_for:\n{seatings}replicates: {replicates}\n"


def _seated(run: RunRecord) -> tuple[str, ...]:
    condition = cast(ScienceCondition, condition_of(run))
    return tuple(condition.model_of(team.lead.id) for team in condition.teams)


def _shared(run: RunRecord) -> dict[str, Any]:
    return {name: value for name, value in run.condition.items() if name not in _OF_SEATS}


def _game(group: Sequence[tuple[RunRecord, tuple[str, ...], float | None]], models: Sequence[str]) -> SeatGame:
    names = tuple(dict.fromkeys(models)) or tuple(sorted({model for _, who, _ in group for model in who}))
    scores = grouped(
        (tuple(names.index(model) for model in who), (run.seed, score))
        for run, who, score in group
        if score is not None
    )
    unscored = tuple(run.id for run, _, score in group if score is None)
    seats = tuple(team.name for team in cast(ScienceCondition, condition_of(group[0][0])).teams)
    return SeatGame(_shared(group[0][0]), seats, names, scores, unscored)
