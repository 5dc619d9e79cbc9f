"""Conformance check of games: `check_game`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import get_args

import numpy as np

from labmates.games.base import Array, Framing, Game
from labmates.games.references import doubts, references_or_none
from labmates_author.trial import faults

_PLAYS = 50
_TOLERANCE = 1e-9


def check_game(game: Game, *, seed: int = 0) -> list[str]:
    """The faults of a game; empty for a sound one.

    Random plays test that decisions are within bounds; that payoffs are finite, have the right shape, and agree between
    one play and many, between exact and floating-point numbers, and between seats; that the game is not degenerate;
    that no play is better for all than the optimum; that the rules can be rendered and name every value; that the
    default decision is allowed; and that sanctions raise no payoff.

    Parameters
    ----------
    seed
        Of the random plays.
    """
    problems = list(_of_decisions(game))
    if problems:
        return problems
    decisions = random_decisions(game, _PLAYS, np.random.default_rng(seed))
    for check, name in _CHECKS.items():
        problems += faults(name, check, game, decisions)
    return problems


def random_decisions(game: Game, plays: int, rng: np.random.Generator) -> Array:
    """Uniformly random decisions for a number of rounds; shape ``(plays, groups, ...)``."""
    allowed = np.array(list(game.decisions()))
    return allowed[rng.integers(len(allowed), size=(plays, game.groups, game.group_size))]


def _of_decisions(game: Game) -> Iterator[str]:
    names = [quantity.name for quantity in game.quantities]
    if len(set(names)) < len(names):
        yield f"two quantities have the same name: {', '.join(names)}"
    if game.primary not in names:
        yield f"the primary quantity '{game.primary}' is unknown; the game has: {', '.join(names) or 'none'}"
    if (game.rest in names) is (game.total is None):
        yield "a game with a total needs the name of the quantity that is its rest, and one without has none"
    for quantity in game.quantities:
        if quantity.low > quantity.high:
            yield f"'{quantity.name}' has no allowed value: minimum {quantity.low}, maximum {quantity.high}"
    if next(iter(game.decisions()), None) is None:
        yield "players have no possible decision"


def _of_payoffs(game: Game, decisions: Array) -> Iterator[str]:
    payoffs = np.asarray(game.payoffs(decisions))
    if payoffs.shape != decisions.shape[:-1]:
        yield f"payoffs have the shape {payoffs.shape}, not {decisions.shape[:-1]}"
        return
    if not np.isfinite(payoffs.astype(float)).all():
        yield "a payoff is not finite"
    for play, together in zip(decisions, payoffs, strict=True):
        alone = np.asarray(game.payoffs(play), dtype=float)
        exact = np.asarray(game.payoffs(_exact(play)), dtype=float)
        for other, how in ((alone, "by itself"), (exact, "in exact numbers")):
            if not np.allclose(other, together.astype(float), rtol=0, atol=_TOLERANCE):
                yield f"a play has different payoffs {how}: {play.tolist()}"
                return


def _of_seats(game: Game, decisions: Array) -> Iterator[str]:
    payoffs = np.asarray(game.payoffs(decisions), dtype=float)
    seats, groups = np.arange(game.group_size)[::-1], np.arange(game.groups)[::-1]
    for swapped, expected, who in (
        (decisions[:, :, seats], payoffs[:, :, seats], "members of a group"),
        (decisions[:, groups], payoffs[:, groups], "groups"),
    ):
        if not np.allclose(np.asarray(game.payoffs(swapped), dtype=float), expected, rtol=0, atol=_TOLERANCE):
            yield f"payoffs change when {who} swap places"


def _of_references(game: Game, decisions: Array) -> Iterator[str]:
    yield from doubts(game)
    if (plays := references_or_none(game)) is None:
        return
    if plays.optimum.payoff < plays.nash.payoff:
        yield "the optimum is worse for all than the equilibrium: the candidates lack the social optimum"
    rng = np.random.default_rng(len(decisions))
    strategies = list(game.strategies())
    for _ in range(_PLAYS):
        chosen = rng.integers(len(strategies), size=(game.groups, game.group_size))
        profile = _exact(np.array([[strategies[index] for index in group] for group in chosen]))
        if Fraction(np.asarray(game.expected(profile), dtype=object).sum()) > plays.optimum.payoff * game.players:
            yield f"a play is better for all than the optimum: {chosen.tolist()}"
            return


def _of_rules(game: Game, _decisions: Array) -> Iterator[str]:
    if game.default_decision not in set(game.decisions()):
        yield f"the default decision {game.default_decision} is not allowed"
    for framing in get_args(Framing):
        try:
            rules = game.rules(framing)
        except (KeyError, ValueError) as error:
            yield f"the {framing} rules can't be rendered: {type(error).__name__}: {error}"
            continue
        words = set(re.findall(r"\d+(?:[./]\d+)?", rules))
        for name, figure in game.figures().items():
            if name not in Game.model_fields and figure not in words:
                yield f"the {framing} rules omit the value of '{name}' ({figure})"


def _of_rounds(game: Game, decisions: Array) -> Iterator[str]:
    history = decisions[: game.rounds]
    kept = game.keeps(history)
    if not 0 <= kept <= 1:
        yield f"the probability of keeping savings is {kept}, not between 0 and 1"
    facts = [*game.public(history), *game.group_facts(history[-1], 0)]
    if any(not isinstance(fact, str) or "\n" in fact for fact in facts):
        yield "each fact of a round's result must be one line of text"
    for name, value in {**game.notes(history), **game.outcome(history)}.items():
        if not np.isfinite(value):
            yield f"'{name}', computed from the rounds, is not finite: {value}"
    if game.sanction_limit:
        tokens = np.ones((game.groups, game.group_size, game.group_size), dtype=int)
        paid = np.asarray(game.payoffs(history[-1]), dtype=float)
        if (np.asarray(game.sanctioned(paid, tokens), dtype=float) > paid).any():
            yield "sanctions raise a payoff"


def _exact(decisions: Array) -> Array:
    return np.asarray(np.vectorize(Fraction, otypes=[object])(decisions))


_CHECKS: dict[Callable[[Game, Array], Iterator[str]], str] = {
    _of_payoffs: "payoffs",
    _of_seats: "swapping places",
    _of_references: "reference plays",
    _of_rules: "rendering the rules",
    _of_rounds: "results of rounds",
}
