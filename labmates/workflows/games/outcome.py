"""The outcome of a behavioural game: its metrics and validity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from labmates.games.base import Array
from labmates.games.references import references_or_none
from labmates.stats.validity import invalid_play, total
from labmates.util.seeds import derive
from labmates.workflows.games.briefs import Round, history, payoffs
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.games.cooperation import cooperation, efficiency, pareto_proximity
from labmates.workflows.games.graph import GameContext, GameState
from labmates.workflows.play.playing import Table
from labmates.workflows.protocol.experiment import Outcome
from labmates.workflows.protocol.services import Services

DRAWS = 200
"""Number of redraws of failed decisions for the welfare of usable decisions."""


def outcome(state: GameState, ctx: GameContext) -> Outcome:
    """The outcome of an ended game."""
    return Outcome("completed", metrics_of(state, ctx), invalid_play(ctx.failures()))


def make_context(condition: GameCondition, services: Services) -> GameContext:
    """The context of a run."""
    return GameContext(condition, condition.make_game(), Table(condition, services), services.seed)


def metrics_of(state: GameState, ctx: GameContext) -> Mapping[str, float]:
    """The metrics of an ended game.

    Level, cooperation and efficiency use only usable decisions (see `_made_welfare`). ``welfare``, ``payoff`` and
    game-specific outcomes are of the actual play, including fallbacks.
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
        tokens = [round_.tokens.sum() for round_ in rounds if round_.tokens is not None]
        metrics["sanctions"] = float(np.mean(tokens)) / game.players
    usable = np.stack([round_.usable for round_ in rounds if round_.usable is not None])
    if not usable.any():
        return metrics
    level = float(game.levels(played)[usable].mean())
    metrics["level"] = level
    if (plays := references_or_none(game)) is None:
        return metrics
    metrics["action_gap"] = level - float(plays.optimum.level)
    if (proximity := pareto_proximity(level, plays)) is not None:
        metrics |= {"cooperation": cooperation(proximity), "pareto_proximity": proximity}
    if (share := efficiency(_made_welfare(ctx, rounds, usable), plays)) is not None:
        metrics["efficiency"] = share
    return metrics


def _made_welfare(ctx: GameContext, rounds: Sequence[Round], usable: NDArray[np.bool_]) -> float:
    """The expected welfare of usable decisions, the same that cooperation uses.

    Each failed decision is replaced by a random usable one, which preserves the mean level; the welfare is the mean
    over `DRAWS` draws, with all other decisions fixed. Without failures it is the welfare itself.
    """
    game, played = ctx.game, history(rounds)
    spent = [round_.spent for round_ in rounds if round_.spent is not None]
    sanctions = np.stack([round_.tokens for round_ in rounds if round_.tokens is not None]) if spent else None
    if usable.all() and all(each.all() for each in spent):
        return game.welfare(played, payoffs(rounds))
    rng = np.random.default_rng(derive(ctx.seed, "failed"))
    welfares = []
    for _ in range(DRAWS):
        drawn = _filled(played, usable, rng)
        earned = [np.asarray(game.payoffs(decisions), dtype=float) for decisions in drawn]
        if sanctions is not None:
            tokens = _turned(_filled(_turned(sanctions, 1), np.stack(spent), rng), -1)
            earned = [game.sanctioned(*pair) for pair in zip(earned, tokens, strict=True)]
        welfares.append(game.welfare(drawn, np.stack(earned)))
    return float(np.mean(welfares))


def _filled(values: Array, made: NDArray[np.bool_], rng: np.random.Generator) -> Array:
    """Decisions of shape ``(rounds, groups, group_size, parts)``, with failed ones drawn from the others."""
    if made.all() or not made.any():
        return values
    filled = values.copy()
    filled[~made] = values[made][rng.integers(int(made.sum()), size=int((~made).sum()))]
    return filled


def _turned(tokens: Array, by: int) -> Array:
    """Tokens, shape ``(..., spender, target)``, by the distance of the target's seat from the spender's (1), or back.

    By distance, one player's decision can replace another's: the distance 0 is never sanctioned.
    """
    seats = np.arange(tokens.shape[-1])
    places = (by * seats[:, None] + seats) % len(seats)
    return np.take_along_axis(tokens, np.broadcast_to(places, tokens.shape), axis=-1)
