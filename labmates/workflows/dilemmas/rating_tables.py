"""Tables of ratings: one for each cell, and means over runs in the layout of CoopEval's table 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labmates.stats.intervals import notes
from labmates.stats.ratings import ALL_GAMES, Cell, Rated, Summary
from labmates.stats.replicator import AT_REST, STEPS
from labmates.stats.tables import Column, Table
from labmates.stats.validity import MOST_FAILED

RATINGS = ("mean", "fitness", "population", "deviation", "rank", "alpha_rank")
FAILED = "failed decisions"
"""The row of a summary that says how much of what was played was none."""
_EVOLVED = ("fitness", "population")
_BOUNDS = {"mean": ("worst_mean", "best_mean"), "rank": ("best_rank", "worst_rank")}


def cells_table(rated: Sequence[Rated], *, steps: int = STEPS) -> Table:
    """The ratings of every model in every cell; models that are left out have none, and bounds."""
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
