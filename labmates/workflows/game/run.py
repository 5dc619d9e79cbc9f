"""One behavioural game, from its condition to its metrics."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
from langchain_core.runnables import RunnableConfig

from labmates.analysis.proximity import pareto_proximity, welfare_proximity
from labmates.games.references import NoEquilibriumError, references
from labmates.seeds import derive
from labmates.workflows.game.condition import GameCondition
from labmates.workflows.game.context import GameContext
from labmates.workflows.game.graph import game_graph
from labmates.workflows.kinds import Outcome
from labmates.workflows.playing import Table
from labmates.workflows.services import Services


async def execute(condition: GameCondition, services: Services) -> Outcome:
    """Play one game.

    Raises
    ------
    EndpointError
        If a model could not be had; what was decided so far is recorded and can be gone on with.
    """
    ctx = make_context(condition, services)
    await game_graph().ainvoke({"round": 0}, _config(condition, services), context=ctx)
    return Outcome("completed", metrics_of(ctx))


def make_context(condition: GameCondition, services: Services) -> GameContext:
    """Return what the nodes of one game work with."""
    draws = random.Random(derive(services.seed, "draw"))
    return GameContext(condition, condition.make_game(), Table(condition, services), draws)


def metrics_of(ctx: GameContext) -> Mapping[str, float]:
    """Return the metrics of a game that has ended.

    The primary metric is taken over usable decisions alone; what was played in the place of others counts for payoffs.
    """
    game, history, payoffs = ctx.game, ctx.history(), ctx.payoffs()
    welfare = game.welfare(history, payoffs)
    found = {
        "welfare": welfare,
        "payoff": float(payoffs.sum(axis=0).mean()) * ctx.kept,
        "failed_decision_rate": ctx.failed / ctx.decisions,
        **game.outcome(history),
    }
    if game.sanction_limit:
        found["sanctions"] = float(np.mean([one.tokens.sum() for one in ctx.rounds if one.tokens is not None]))
        found["sanctions"] /= game.players
    usable = np.stack([one.usable for one in ctx.rounds if one.usable is not None])
    if not usable.any():
        return found
    level = float(game.levels(history)[usable].mean())
    found["level"] = level
    try:
        plays = references(game)
    except NoEquilibriumError:
        return found
    found["action_gap"] = level - float(plays.optimum.level)
    near = {
        "pareto_proximity": pareto_proximity(level, plays),
        "welfare_proximity": welfare_proximity(welfare, plays),
    }
    return found | {name: value for name, value in near.items() if value is not None}


def _config(condition: GameCondition, services: Services) -> RunnableConfig:
    """Return what a trace of the run is called and tagged with."""
    return {
        "run_name": f"game {condition.game} {condition.model} {services.run_id}",
        "tags": ["labmates", "game", condition.game, condition.framing, condition.reasoning],
        "metadata": {
            "run": services.run_id,
            "condition": services.key,
            "game": condition.game,
            "model": condition.model,
            "group_size": condition.group_size,
            "groups": condition.groups,
            "seed": services.seed,
        },
    }
