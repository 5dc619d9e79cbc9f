"""Ratings of models that have played, without those of which too many decisions failed, and what these might have been.

A failed choice is replaced by the rules with a mix of all actions, so that co-players can play on. A model above
`MOST_FAILED` is left out and the others are rated among themselves. For every model with failed choices there are
bounds: each failed choice is replaced by the action that is worst, or best, for the model in that round, everything
else as it was recorded. For the mean payoff that is exact, given how co-players went on; the rank is that of these two
plays. Where a proposal, a vote or a signature failed, nobody can say what would have been agreed on, so there are none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from labmates.stats.ratings import EVOLUTION, Bounds, Evolution, Rated, Summary, rate, summarise
from labmates.stats.validity import Tally, invalid
from labmates.workflows.dilemmas.records import CrossPlay, Round, Use

CHOICE = "choose"
"""The stage at which an action is chosen."""


def rate_play(
    play: CrossPlay,
    use: Use = "expected",
    *,
    leave_out: Collection[str] | None = None,
    evolution: Evolution = EVOLUTION,
) -> Rated:
    """The ratings of a cross-play.

    Parameters
    ----------
    leave_out
        Models that are not rated; by default those above `MOST_FAILED`.

    Raises
    ------
    UsageError
        If not every seating was played.
    """
    out = invalid(play.failures) if leave_out is None else leave_out
    bounds = {model: bounds_of(play, model, use, out) for model, tally in play.failures.items() if tally.failed}
    return replace(rate(play.without(out).cell(use), evolution), bounds=bounds)


def summarise_plays(
    plays: Sequence[CrossPlay],
    use: Use = "expected",
    *,
    keep_failed: bool = False,
    evolution: Evolution = EVOLUTION,
) -> list[Summary]:
    """Every rating over runs, as `summarise` does, without the models that have failed.

    A model is left out of a game under a mechanism if more than `MOST_FAILED` of its decisions failed there, all runs
    together; and out of the mean over games if it is left out of one of them, so that all games have the same models.
    """
    groups: dict[tuple[str, tuple[str, ...]], dict[str, list[CrossPlay]]] = {}
    for play in plays:
        groups.setdefault((play.mechanism, play.models), {}).setdefault(play.game, []).append(play)
    each: list[Rated] = []
    over_games: list[Rated] = []
    for games in groups.values():
        out = {game: () if keep_failed else invalid(pooled(some)) for game, some in games.items()}
        rated = [
            rate_play(play, use, leave_out=out[game], evolution=evolution)
            for game, some in games.items()
            for play in some
        ]
        all_out = dict.fromkeys(model for models in out.values() for model in models)
        together = rated
        if any(set(models) != set(all_out) for models in out.values()):
            together = [rate(play.without(all_out).cell(use), evolution) for some in games.values() for play in some]
        each += rated
        over_games += together
    return summarise(each, together=over_games)


def pooled(plays: Sequence[CrossPlay]) -> dict[str, Tally]:
    """Count the decisions of each model over several cross-plays."""
    tallies: dict[str, Tally] = {}
    for play in plays:
        for model, tally in play.failures.items():
            tallies[model] = tallies.get(model, Tally(0, 0)) + tally
    return tallies


def bounds_of(play: CrossPlay, model: str, use: Use, leave_out: Collection[str] = ()) -> Bounds | None:
    """The worst and the best rating of a model over what its failed choices could have been.

    Parameters
    ----------
    leave_out
        Models among which it is not rated, apart from itself.

    Returns
    -------
    Bounds or None
        None if decisions other than choices failed, or the record does not tell which game was played in a round.
    """
    place = play.models.index(model)
    if any(one.failed and one.stage != CHOICE for one in play.decided if one.entrant == place):
        return None
    means, ranks = [], []
    for sign in (-1, 1):
        rounds = []
        for round_ in play.rounds:
            imputed = _imputed(play, round_, place, use, sign)
            if imputed is None:
                return None
            rounds.append(imputed)
        others = [name for name in leave_out if name != model]
        cell = replace(play, rounds=tuple(rounds)).without(others).cell(use)
        ratings = rate(cell)
        at = cell.models.index(model)
        means.append(float(ratings.mean[at]))
        ranks.append(None if ratings.rank is None else float(ratings.rank[at]))
    return Bounds(means[0], means[1], ranks[0], ranks[1])


def _imputed(play: CrossPlay, round_: Round, entrant: int, use: Use, sign: int) -> Round | None:
    """A round whose failed choices of an entrant are the worst (-1) or the best (1) for it; None if unknown."""
    failed = [seat for seat, who in enumerate(round_.entrants) if who == entrant and round_.failed[seat]]
    if not failed:
        return round_
    game = play.form(round_)
    if game.labels != round_.labels:
        return None
    mixes = [np.array(mix) / 100 for mix in round_.mixes]
    if not np.allclose(game.expected([list(mix) for mix in mixes]), round_.expected, rtol=1e-9, atol=1e-9):
        return None  # A mechanism has changed the payoffs.
    if use == "sampled":
        mixes = [np.eye(len(own))[own.index(action)] for own, action in zip(round_.labels, round_.actions, strict=True)]
    outcomes = game.table
    for seat in reversed(range(len(mixes))):
        if seat not in failed:
            outcomes = np.tensordot(mixes[seat], outcomes, axes=(0, seat))
    own = sum(outcomes[..., seat] for seat, who in enumerate(round_.entrants) if who == entrant)
    best = np.unravel_index(int(np.argmax(sign * np.asarray(own))), np.shape(own))
    payoffs = tuple(map(float, outcomes[best]))
    return replace(round_, expected=payoffs, payoffs=payoffs)
