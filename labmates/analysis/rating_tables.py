"""Tables of ratings: one for each cell, and means over runs in the layout of CoopEval's table 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labmates.analysis.ratings import ALL_GAMES, Interval, Rated, Summary
from labmates.analysis.tables import Column, Table

RATINGS = ("mean", "fitness", "population", "deviation", "rank")


def cells_table(rated: Sequence[Rated]) -> Table:
    """Return the ratings of every model in every cell."""
    rows: list[dict[str, Any]] = []
    for one in rated:
        cell = one.cell
        for place, model in enumerate(cell.models):
            row: dict[str, Any] = {"game": cell.game, "mechanism": cell.mechanism, "run": cell.run, "model": model}
            for name in RATINGS:
                values = getattr(one, name)
                row[name] = None if values is None else float(values[place])
            rows.append(row)
    columns = [*(Column(name, once=True) for name in ("game", "mechanism", "run")), Column("model")]
    columns += [Column(name, form=".1f" if name == "rank" else ".4f") for name in RATINGS]
    return Table("ratings", "Ratings", columns, rows, ["A rank of 1 is best. – is not defined without a metagame."])


def summaries_table(summaries: Sequence[Summary]) -> Table:
    """Return ratings over runs: a row for each game, mechanism and rating, a column for each model."""
    rows: list[dict[str, Any]] = []
    models = list(dict.fromkeys(model for one in summaries for model in one.models))
    for one in summaries:
        game = "all games" if one.game == ALL_GAMES else one.game
        rating = f"{one.rating}, normalised" if one.normalised else one.rating
        row: dict[str, Any] = {"game": game, "mechanism": one.mechanism, "rating": rating, "runs": one.runs}
        row |= _flat("average", one.average)
        for model, interval in zip(one.models, one.each, strict=True):
            row |= _flat(model, interval)
        rows.append(row)
    columns = [Column("game", once=True), Column("mechanism", once=True), Column("rating"), Column("runs")]
    columns += [Column(name, name, ".3f", "both") for name in ("average", *models)]
    notes = [
        "In brackets: 95 % intervals by bootstrap over runs. Mean: over all seatings; fitness: after replicator "
        "dynamics; rank: by deviation rating, 1 is best. Normalised: 0 where all defect, 1 where all cooperate."
    ]
    return Table("ratings", "Ratings over runs", columns, rows, notes)


def _flat(name: str, one: Interval) -> dict[str, float | None]:
    return {name: one.value, f"{name}_error": one.error, f"{name}_low": one.low, f"{name}_high": one.high}
