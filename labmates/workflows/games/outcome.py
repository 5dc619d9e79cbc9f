"""The outcome of a behavioural game: its metrics and validity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from labmates.games.base import Array
from labmates.games.references import References, references_or_none
from labmates.stats.validity import invalid_play, total
from labmates.util.seeds import derive
from labmates.workflows.games.briefs import Round, history, payoffs
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.games.cooperation import cooperation, efficiency, pareto_proximity
from labmates.workflows.games.graph import GameContext, GameState, is_kept
from labmates.workflows.play.playing import Table
from labmates.workflows.protocol.experiment import Outcome
from labmates.workflows.protocol.services import Services

DRAWS = 200
"""Number of redraws of failed decisions."""


def outcome(state: GameState, ctx: GameContext) -> Outcome:
    """The outcome of an ended game."""
    return Outcome("completed", metrics_of(state, ctx), invalid_play(ctx.failures()))


def make_context(condition: GameCondition, services: Services) -> GameContext:
    """The context of a run."""
    return GameContext(condition, condition.make_game(), Table(condition, services), services.seed)


def metrics_of(state: GameState, ctx: GameContext) -> Mapping[str, float]:
    """The metrics of an ended game, all of usable decisions alone.

    Each failed decision is replaced by a random usable one, which preserves the mean level, and metrics are means over
    `DRAWS` draws. The record holds what was played, including fallbacks.
    """
    game, rounds = ctx.game, state["rounds"]
    metrics = {"failed_decision_rate": total(ctx.failures().values()).rate}
    usable = np.stack([round_.usable for round_ in rounds if round_.usable is not None])
    if not usable.any():
        return metrics
    level = float(game.levels(history(rounds))[usable].mean())
    metrics["level"] = level
    if (plays := references_or_none(game)) is not None:
        metrics["action_gap"] = level - float(plays.optimum.level)
    each = [_metrics_of(play, level, plays, ctx) for play in _drawn(ctx, rounds, usable)]
    return metrics | {name: float(np.mean([one[name] for one in each])) for name in each[0]}


@dataclass(frozen=True)
class _Play:
    """Decisions, tokens (None without sanctions) and payoffs of all rounds."""

    decisions: Array
    tokens: Array | None
    payoffs: Array


def _metrics_of(play: _Play, level: float, plays: References | None, ctx: GameContext) -> dict[str, float]:
    game = ctx.game
    chance, earned = float(game.keeps(play.decisions)), float(play.payoffs.sum(axis=0).mean())
    welfare = earned * chance
    metrics = {"welfare": welfare, "payoff": earned * is_kept(ctx.seed, chance), **game.outcome(play.decisions)}
    if play.tokens is not None:
        metrics["sanctions"] = float(play.tokens.sum()) / game.players / game.rounds
    if plays is None:
        return metrics
    if (proximity := pareto_proximity(level, plays)) is not None:
        metrics |= {"cooperation": cooperation(game, play.decisions, proximity), "pareto_proximity": proximity}
    if (share := efficiency(welfare if game.span else welfare / game.rounds, plays)) is not None:
        metrics["efficiency"] = share
    return metrics


def _drawn(ctx: GameContext, rounds: Sequence[Round], usable: NDArray[np.bool_]) -> Iterator[_Play]:
    """The play, or draws of it with failed decisions replaced by random usable ones."""
    game, played = ctx.game, history(rounds)
    spent = [round_.spent for round_ in rounds if round_.spent is not None]
    tokens = np.stack([round_.tokens for round_ in rounds if round_.tokens is not None]) if spent else None
    if usable.all() and all(each.all() for each in spent):
        yield _Play(played, tokens, payoffs(rounds))
        return
    rng = np.random.default_rng(derive(ctx.seed, "failed"))
    for _ in range(DRAWS):
        drawn = _filled(played, usable, rng)
        earned = np.asarray(game.payoffs(drawn), dtype=float)
        if tokens is not None:
            sanctions = _turned(_filled(_turned(tokens, 1), np.stack(spent), rng), -1)
            yield _Play(drawn, sanctions, game.sanctioned(earned, sanctions))
        else:
            yield _Play(drawn, None, earned)


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
