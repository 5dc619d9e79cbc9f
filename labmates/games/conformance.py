"""Conformance of games, ours and those of other packages: `check_game`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import get_args

import numpy as np

from labmates.errors import LabmatesError
from labmates.games.base import Array, Framing, Game
from labmates.games.references import references

_PLAYS = 50
_TOLERANCE = 1e-9


def check_game(game: Game, *, seed: int = 0) -> list[str]:
    """The faults of a game; none for a sound one.

    Checked, with random plays: decisions within their bounds; payoffs of the right shape and finite, the same for one
    play as among many, in exact numbers as in floating point, and whoever sits on which chair; reference plays, of
    which the optimum is no worse than the equilibrium or any random play; rules that can be told and name every figure;
    a default decision that is allowed; sanctions that raise no payoff.

    Parameters
    ----------
    seed
        Of the random plays.
    """
    problems = [*_of_decisions(game)]
    if problems:
        return problems
    decisions = random_decisions(game, _PLAYS, np.random.default_rng(seed))
    for check in (_of_payoffs, _of_seats, _of_references, _of_telling, _of_rounds):
        try:
            problems += check(game, decisions)
        except Exception as error:
            problems.append(f"{_WHAT[check]} failed: {type(error).__name__}: {error}")
    return problems


def random_decisions(game: Game, plays: int, rng: np.random.Generator) -> Array:
    """Random decisions for a number of rounds, each allowed one as likely; shape ``(plays, groups, ...)``."""
    allowed = np.array(list(game.decisions()))
    return allowed[rng.integers(len(allowed), size=(plays, game.groups, game.group_size))]


def _of_decisions(game: Game) -> Iterator[str]:
    names = [quantity.name for quantity in game.quantities]
    if len(set(names)) < len(names):
        yield f"two quantities have the same name: {', '.join(names)}"
    if game.primary not in names:
        yield f"the primary quantity '{game.primary}' is none of: {', '.join(names) or 'no quantity'}"
    for quantity in game.quantities:
        if quantity.low > quantity.high:
            yield f"'{quantity.name}' has no allowed value: at least {quantity.low}, at most {quantity.high}"
    if next(iter(game.decisions()), None) is None:
        yield "players have no possible decision"


def _of_payoffs(game: Game, decisions: Array) -> Iterator[str]:
    payoffs = np.asarray(game.payoffs(decisions))
    if payoffs.shape != decisions.shape[:-1]:
        yield f"payoffs have the shape {payoffs.shape}, not {decisions.shape[:-1]}"
        return
    if not np.isfinite(payoffs.astype(float)).all():
        yield "a payoff is not a finite number"
    for play, together in zip(decisions, payoffs, strict=True):
        alone = np.asarray(game.payoffs(play), dtype=float)
        exact = np.asarray(game.payoffs(_exact(play)), dtype=float)
        for found, how in ((alone, "by itself"), (exact, "in exact numbers")):
            if not np.allclose(found, together.astype(float), rtol=0, atol=_TOLERANCE):
                yield f"a play has other payoffs {how}: {play.tolist()}"
                return


def _of_seats(game: Game, decisions: Array) -> Iterator[str]:
    payoffs = np.asarray(game.payoffs(decisions), dtype=float)
    seats, groups = np.arange(game.group_size)[::-1], np.arange(game.groups)[::-1]
    for swapped, expected, who in (
        (decisions[:, :, seats], payoffs[:, :, seats], "members of a group"),
        (decisions[:, groups], payoffs[:, groups], "groups"),
    ):
        if not np.allclose(np.asarray(game.payoffs(swapped), dtype=float), expected, rtol=0, atol=_TOLERANCE):
            yield f"payoffs change when {who} change places"


def _of_references(game: Game, decisions: Array) -> Iterator[str]:
    try:
        plays = references(game)
    except LabmatesError as error:
        yield str(error)
        return
    if plays.optimum.payoff < plays.nash.payoff:
        yield "the optimum is worse for all than the equilibrium: the candidates lack the best profile"
    rng = np.random.default_rng(len(decisions))
    strategies = list(game.strategies())
    for _ in range(_PLAYS):
        chosen = rng.integers(len(strategies), size=(game.groups, game.group_size))
        profile = _exact(np.array([[strategies[one] for one in group] for group in chosen]))
        if Fraction(np.asarray(game.expected(profile), dtype=object).sum()) > plays.optimum.payoff * game.players:
            yield f"a play is better for all than the optimum: {chosen.tolist()}"
            return


def _of_telling(game: Game, decisions: Array) -> Iterator[str]:
    del decisions
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
                yield f"the {framing} rules omit the figure '{name}' ({figure})"


def _of_rounds(game: Game, decisions: Array) -> Iterator[str]:
    history = decisions[: game.rounds]
    kept = game.keeps(history)
    if not 0 <= kept <= 1:
        yield f"the probability of keeping savings is {kept}, which is not from 0 to 1"
    facts = [*game.public(history), *game.group_facts(history[-1], 0)]
    if any(not isinstance(fact, str) or "\n" in fact for fact in facts):
        yield "the result of a round for players must be one line of text for each fact"
    for name, value in {**game.notes(history), **game.outcome(history)}.items():
        if not np.isfinite(value):
            yield f"'{name}', computed from the rounds, is not a finite number: {value}"
    if game.sanction_limit:
        tokens = np.ones((game.groups, game.group_size, game.group_size), dtype=int)
        paid = np.asarray(game.payoffs(history[-1]), dtype=float)
        if (np.asarray(game.sanctioned(paid, tokens), dtype=float) > paid).any():
            yield "sanctions raise a payoff"


def _exact(decisions: Array) -> Array:
    return np.asarray(np.vectorize(Fraction, otypes=[object])(decisions))


_WHAT: dict[Callable[[Game, Array], Iterator[str]], str] = {
    _of_payoffs: "payoffs",
    _of_seats: "changing places",
    _of_references: "reference plays",
    _of_telling: "telling the rules",
    _of_rounds: "what comes of rounds",
}
