"""The simulations that a cooperative profile still needs and the store lacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from labmates.errors import UsageError
from labmates.models.catalog import Catalog
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.studies.runs import new_runs
from labmates.studies.settings import RunSettings
from labmates.workflows.experiment import with_bill
from labmates.workflows.games.condition import GameCondition

SIMULATIONS = 20
"""Simulations of each game: the number that the cooperative-profiles paper finds enough (section 4.3)."""
AT_ONCE = 32
"""Simulations going on at once: each has few calls in flight, and calls have a limit of their own."""
BASELINES = ("cooperate", "conditional", "fair-share", "random", "defect")
"""The baselines that a profile is shown beside."""


def profile_games() -> list[str]:
    """Return the games of a profile: our six."""
    from labmates.games.registry import GAMES

    return [name for name in GAMES.names() if GAMES.is_own(name)]


def profile_conditions(
    models: Sequence[str], games: Sequence[str], options: Mapping[str, Any], catalog: Catalog | None = None
) -> list[GameCondition]:
    """Return the condition of each model and game, models first.

    Raises
    ------
    pydantic.ValidationError
        If an option can't be.
    """
    conditions = [
        with_bill(GameCondition.model_validate({**options, "game": game, "model": model}, context=catalog), catalog)
        for model in models
        for game in games
    ]
    for condition in conditions:
        condition.check()
    return conditions


def profile_runs(store: Store, conditions: Iterable[GameCondition], simulations: int) -> list[RunRecord]:
    """Return the runs of these conditions that have ended, the first `simulations` replicates of each."""
    keys = [condition.key for condition in conditions]
    ended: dict[tuple[str, int], RunRecord] = {}
    for run in store.runs(kind="game", keys=keys):
        if run.status in ENDED and run.replicate < simulations:
            ended.setdefault((run.key, run.replicate), run)
    return sorted(ended.values(), key=lambda run: (keys.index(run.key), run.replicate))


def missing_runs(
    store: Store, conditions: Iterable[GameCondition], simulations: int, settings: RunSettings, *, seed: int = 0
) -> list[RunRecord]:
    """Return the runs that are needed yet: new ones, and those that were begun and did not end.

    Raises
    ------
    UsageError
        If stored simulations of a condition belong to another seed, with which new ones would not fit together.
    """
    wanted = list(conditions)
    stored: dict[tuple[str, int], list[RunRecord]] = defaultdict(list)
    for run in store.runs(kind="game", keys=[condition.key for condition in wanted]):
        stored[run.key, run.replicate].append(run)
    missing = []
    for condition in wanted:
        for run in new_runs(condition, seed=seed, replicates=simulations, settings=settings):
            here = stored[run.key, run.replicate]
            if any(one.seed != run.seed for one in here):
                raise UsageError(
                    f"the store {store.shown_url} has simulations of {condition.game} by {condition.model} with the "
                    f"seed {here[0].seed - run.replicate}; ask for the same one, or use another store"
                )
            if any(one.status in ENDED for one in here):
                continue
            begun = next((one for one in here if one.study is None), None)
            missing.append(run if begun is None else replace(begun, settings=run.settings))
    return missing
