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
from typing import Any

import numpy as np

from labmates.stats.intervals import notes
from labmates.stats.ratings import ALL_GAMES, EVOLUTION, Bounds, Cell, Evolution, Rated, Summary, rate, summarise
from labmates.stats.replicator import AT_REST, STEPS
from labmates.stats.tables import Column, Table
from labmates.stats.validity import MOST_FAILED, Tally, invalid
from labmates.workflows.dilemmas.records import CrossPlay, Round, Use

RATINGS = ("mean", "fitness", "population", "deviation", "rank", "alpha_rank")
FAILED = "failed decisions"
"""The row of a summary that says how much of what was played was none."""
_EVOLVED = ("fitness", "population")
_BOUNDS = {"mean": ("worst_mean", "best_mean"), "rank": ("best_rank", "worst_rank")}
CHOICE = "choose"
"""The stage at which an action is chosen."""


def cells_table(rated: Sequence[Rated], *, steps: int = STEPS) -> Table:
    """The ratings of every model in every cell; models that are left out have none, and bounds in dilemmas."""
    rows: list[dict[str, Any]] = []
    for ratings in rated:
        cell = ratings.cell
        for place, model in enumerate((*cell.models, *cell.left_out)):
            row: dict[str, Any] = {"game": cell.game, "mechanism": cell.mechanism, "run": cell.run, "model": model}
            for name in RATINGS:
                values = getattr(ratings, name)
                row[name] = None if values is None or model in cell.left_out else float(values[place])
            row |= {"converged": ratings.converged, "unconverged": ratings.converged is False}
            row |= {"failed": cell.failed_rate(model), "validity": _validity(cell, model)}
            bounds = ratings.bounds.get(model)
            for name, ends in _BOUNDS.items():
                for side, end in zip(("low", "high"), ends, strict=True):
                    row[f"{name}_bounds_{side}"] = None if bounds is None else getattr(bounds, end)
            rows.append(row)
    columns = [*(Column(name, once=True) for name in ("game", "mechanism", "run")), Column("model")]
    columns += [
        Column(name, form=".1f" if name == "rank" else ".4f", marked="unconverged" if name in _EVOLVED else "")
        for name in RATINGS
    ]
    columns += [Column("failed", "failed decisions", ".1%"), Column("validity")]
    remarks = ["A rank of 1 is best. – is not defined without a metagame."]
    if moving := sum(one.converged is False for one in rated):
        remarks.append(_moving(moving, sum(one.converged is not None for one in rated), steps))
    if any(one.bounds for one in rated):
        columns += [
            Column("mean_bounds", "mean, bounds", ".4f", "interval"),
            Column("rank_bounds", "rank, bounds", ".1f", "interval"),
        ]
        remarks.append(
            "Bounds: the worst and the best that a model could have got by its failed choices; none where a proposal, "
            "a vote or a signature failed."
        )
    remarks += dict.fromkeys(
        _left_out(cell.mechanism, cell.game, model, tally.rate)
        for cell in (one.cell for one in rated)
        for model, tally in cell.left_out.items()
    )
    return Table("ratings", "Ratings", columns, rows, remarks)


def _validity(cell: Cell, model: str) -> str:
    if model in cell.left_out:
        return "left out"
    return {None: "unknown", True: "valid", False: "invalid"}[cell.valid(model)]


def _left_out(mechanism: str, game: str, model: str, failed: float) -> str:
    return (
        f"{model} is left out of {game} under {mechanism}: {failed:.0%} of its decisions failed, more than "
        f"{MOST_FAILED:.0%}. The others are rated among themselves (--keep-failed rates all)."
    )


def summaries_table(summaries: Sequence[Summary], *, steps: int = STEPS) -> Table:
    """Ratings over runs: a row for each game, mechanism and rating, a column for each model."""
    rows: list[dict[str, Any]] = []
    models = list(dict.fromkeys(model for one in summaries for model in (*one.models, *one.left_out)))
    by_game: dict[tuple[str, str], Summary] = {}
    for summary in summaries:
        game = "all games" if summary.game == ALL_GAMES else summary.game
        rating = f"{summary.rating}, normalised" if summary.normalised else summary.rating
        row: dict[str, Any] = {"game": game, "mechanism": summary.mechanism, "rating": rating, "runs": summary.runs}
        row |= {"unconverged": summary.unconverged > 0, **summary.average.row("average")}
        for model, mean in zip(summary.models, summary.each, strict=True):
            row |= mean.row(model)
        rows.append(row)
        by_game[game, summary.mechanism] = summary
    for (game, mechanism), summary in by_game.items():
        shares = {**dict(zip(summary.models, summary.failed, strict=True)), **summary.left_out}
        rows.append({"game": game, "mechanism": mechanism, "rating": FAILED, "runs": summary.runs, **shares})
    rows.sort(key=lambda row: list(by_game).index((row["game"], row["mechanism"])))
    columns = [Column("game", once=True), Column("mechanism", once=True), Column("rating"), Column("runs")]
    columns += [Column(name, name, ".3f", "both", marked="unconverged") for name in ("average", *models)]
    remarks = [
        "Mean: over all seatings; fitness: after replicator dynamics; rank: by deviation rating, 1 is best. "
        "Normalised: 0 where all defect, 1 where all cooperate. Failed decisions: their share, – if unknown.",
        *notes(mean for one in summaries for mean in (one.average, *one.each)),
    ]
    fitness = [one for one in summaries if one.rating == "fitness" and one.game != ALL_GAMES]
    if moving := sum(one.unconverged for one in fitness):
        remarks.append(_moving(moving, sum(one.runs for one in fitness), steps))
    for (game, mechanism), summary in by_game.items():
        for model, failed in summary.left_out.items():
            if summary.game == ALL_GAMES:
                remarks.append(f"{model} is left out of all games under {mechanism}, as it is of one of them.")
            else:
                remarks.append(_left_out(mechanism, game, model, failed) + _bounded(summaries, summary, model))
    return Table("ratings", "Ratings over runs", columns, rows, remarks)


def _bounded(summaries: Sequence[Summary], like: Summary, model: str) -> str:
    """The bounds on the ratings of an excluded model."""
    parts = [
        f"its {one.rating} could have been {one.bounds[model][0]:.3f} to {one.bounds[model][1]:.3f}"
        for one in summaries
        if (one.mechanism, one.game, one.left_out) == (like.mechanism, like.game, like.left_out) and model in one.bounds
    ]
    return f" By its failed choices {', '.join(parts)}." if parts else ""


def _moving(cells: int, of: int, steps: int) -> str:
    return (
        f"† In {cells} of {of} cells the population has not come to rest after {steps:,} steps: some model gets over "
        f"{AT_REST:.0%} of the range of payoffs more than the average, so that more steps would change fitness."
    )


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
