"""The outcome of a behavioural game: its metrics and whether it counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from labmates.games.base import Array
from labmates.games.references import references_or_none
from labmates.seeds import derive
from labmates.stats.validity import invalid_play, total
from labmates.workflows.experiment import Outcome
from labmates.workflows.games.briefs import Round, history, payoffs
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.games.cooperation import cooperation, efficiency, pareto_proximity
from labmates.workflows.games.graph import GameContext, GameState
from labmates.workflows.playing import Table
from labmates.workflows.services import Services

DRAWS = 200
"""How often failed decisions are drawn anew for the welfare of the decisions that were made."""


def outcome(state: GameState, ctx: GameContext) -> Outcome:
    """The outcome of a game that has ended."""
    return Outcome("completed", metrics_of(state, ctx), invalid_play(ctx.failures()))


def make_context(condition: GameCondition, services: Services) -> GameContext:
    """The context of the nodes of one game."""
    return GameContext(condition, condition.make_game(), Table(condition, services), services.seed)


def metrics_of(state: GameState, ctx: GameContext) -> Mapping[str, float]:
    """The metrics of a game that has ended.

    The primary metric is taken over usable decisions alone; cooperation and efficiency are of these: see
    `_made_welfare`.
    ``welfare``, ``payoff`` and what came of the rounds are of what was played, the fallback included.
    """
    game, rounds = ctx.game, state["rounds"]
    played, earned = history(rounds), payoffs(rounds)
    welfare = game.welfare(played, earned)
    metrics = {
        "welfare": welfare,
        "payoff": float(earned.sum(axis=0).mean()) * state["kept"],
        "failed_decision_rate": total(ctx.failures()).rate,
        **game.outcome(played),
    }
    if game.sanction_limit:
        metrics["sanctions"] = float(np.mean([one.tokens.sum() for one in rounds if one.tokens is not None]))
        metrics["sanctions"] /= game.players
    usable = np.stack([one.usable for one in rounds if one.usable is not None])
    if not usable.any():
        return metrics
    level = float(game.levels(played)[usable].mean())
    metrics["level"] = level
    if (plays := references_or_none(game)) is None:
        return metrics
    metrics["action_gap"] = level - float(plays.optimum.level)
    if (proximity := pareto_proximity(level, plays)) is not None:
        metrics |= {"cooperation": cooperation(proximity), "pareto_proximity": proximity}
    if (reached := efficiency(_made_welfare(ctx, rounds, usable), plays)) is not None:
        metrics["efficiency"] = reached
    return metrics


def _made_welfare(ctx: GameContext, rounds: Sequence[Round], usable: NDArray[np.bool_]) -> float:
    """The expected welfare by the decisions that were made, which are those that cooperation is of, too.

    Each failed decision is taken to be any of those that were made, each as likely: the mean level stays that of the
    decisions that were made, and the welfare is the mean over `DRAWS` draws. The others go on as they did. Without
    failures it is the welfare itself.
    """
    game, played = ctx.game, history(rounds)
    spent = [one.spent for one in rounds if one.spent is not None]
    sanctions = np.stack([one.tokens for one in rounds if one.tokens is not None]) if spent else None
    if usable.all() and all(one.all() for one in spent):
        return game.welfare(played, payoffs(rounds))
    rng = np.random.default_rng(derive(ctx.seed, "failed"))
    welfares = []
    for _ in range(DRAWS):
        drawn = _filled(played, usable, rng)
        earned = [np.asarray(game.payoffs(one), dtype=float) for one in drawn]
        if sanctions is not None:
            tokens = _turned(_filled(_turned(sanctions, 1), np.stack(spent), rng), -1)
            earned = [game.sanctioned(one, own) for one, own in zip(earned, tokens, strict=True)]
        welfares.append(game.welfare(drawn, np.stack(earned)))
    return float(np.mean(welfares))


def _filled(values: Array, made: NDArray[np.bool_], rng: np.random.Generator) -> Array:
    """Decisions of shape ``(rounds, groups, group_size, parts)``, the failed ones drawn from the others."""
    if made.all() or not made.any():
        return values
    filled = values.copy()
    filled[~made] = values[made][rng.integers(int(made.sum()), size=int((~made).sum()))]
    return filled


def _turned(tokens: Array, by: int) -> Array:
    """Tokens, shape ``(..., spender, target)``, by how far the target sits from the spender (1), or back (-1).

    So can one player's decision stand for another's: nobody spends on itself.
    """
    seats = np.arange(tokens.shape[-1])
    places = (by * seats[:, None] + seats) % len(seats)
    return np.take_along_axis(tokens, np.broadcast_to(places, tokens.shape), axis=-1)
