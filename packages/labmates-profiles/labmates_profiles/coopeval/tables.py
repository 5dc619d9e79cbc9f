"""Tables of published ratings of CoopEval beside ours: Table 2, means of Tables 3 to 7, and each cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from labmates.stats.intervals import Estimate, mean
from labmates.stats.metagame import Array
from labmates.stats.tables import Column, Table
from labmates.util.grouping import grouped
from labmates_profiles.coopeval.records import DILEMMAS, RATINGS, Published


def published_tables(rated: Sequence[Published]) -> list[Table]:
    """Table 2, mean ratings, published and ours, by mechanism and game; and the cells individually."""
    return [_overall_table(rated), _ranks_table(rated), _cells_table(rated)]


def _overall_table(rated: Sequence[Published]) -> Table:
    """The published ratings over all dilemmas, normalised, with the standard error over games as in Table 2."""
    rows = []
    for mechanism in dict.fromkeys(each.rated.cell.mechanism for each in rated):
        games = [cells for other, game, cells in _groups(rated) if other == mechanism and game in DILEMMAS]
        for rating in ("mean", "fitness", "rank"):
            runs = [[_overall(each, rating) for each in cells if rating in each.values] for cells in games]
            if not games or not all(runs):
                continue
            models = games[0][0].rated.cell.models
            means = [mean(column) for column in zip(*(np.mean(values, axis=0) for values in runs), strict=True)]
            row = {"mechanism": mechanism, "rating": rating, "games": len(games)}
            rows.append(row | dict(zip(("average", *models), map(_with_error, means), strict=True)))
    names = dict.fromkeys(name for row in rows for name in row if name not in ("mechanism", "rating", "games"))
    columns = [Column("mechanism", once=True), Column("rating"), Column("games"), *map(Column, names)]
    notes = [
        "Table 2 of the paper: 0 at full defection, 1 at full cooperation; means over games ± the standard error over "
        "games. Rank: of the deviation rating, 1 is best. Only average fitness is ours."
    ]
    return Table("overall", "Published ratings over all dilemmas", columns, rows, notes)


def _overall(published: Published, rating: str) -> Array:
    """A published rating, normalised but for ranks: the average, and each model."""
    cell, values = published.rated.cell, published.values[rating]
    average = published.rated.average_fitness if rating == "fitness" else values.mean()
    row = np.array([average, *values], dtype=float)
    return row if rating == "rank" or cell.scale is None else cell.scale.normalise(row)


def _with_error(value: Estimate) -> str:
    return f"{value.value:.3f}" + ("" if value.error is None else f" ± {value.error:.3f}")


def _groups(rated: Sequence[Published]) -> Iterator[tuple[str, str, list[Published]]]:
    groups = grouped(((cell.rated.cell.mechanism, cell.rated.cell.game), cell) for cell in rated)
    yield from ((*key, cells) for key, cells in groups.items())


def _ranks_table(rated: Sequence[Published]) -> Table:
    models = list(dict.fromkeys(model for each in rated for model in each.rated.cell.models))
    rows = []
    for mechanism, game, cells in _groups(rated):
        for model in models:
            places = [(each, each.rated.cell.models.index(model)) for each in cells if model in each.rated.cell.models]
            if not places:
                continue
            row: dict[str, Any] = {"mechanism": mechanism, "game": game, "model": model, "runs": len(places)}
            for rating in ("mean", "fitness", "rank"):
                ours = [
                    getattr(each.rated, rating)[at] for each, at in places if getattr(each.rated, rating) is not None
                ]
                theirs = [each.values[rating][at] for each, at in places if rating in each.values]
                for name, numbers in ((rating, ours), (f"published_{rating}", theirs)):
                    row[name] = float(np.mean(numbers)) if numbers else None
            rows.append(row)
    columns = [Column("mechanism", once=True), Column("game", once=True), Column("model")]
    for rating, form in (("mean", ".3f"), ("fitness", ".3f"), ("rank", ".1f")):
        columns += [Column(f"published_{rating}", "published", form, group=rating)]
        columns += [Column(rating, "ours", form, group=rating)]
    notes = ["Means over runs, as in tables 3 to 7 of the paper. Rank: of the deviation rating, 1 is best."]
    return Table("averages", "Published ratings and ours", [*columns, Column("runs")], rows, notes)


def _cells_table(rated: Sequence[Published]) -> Table:
    rows: list[dict[str, Any]] = []
    for published in rated:
        cell = published.rated.cell
        row: dict[str, Any] = {"mechanism": cell.mechanism, "game": cell.game, "run": cell.run}
        row |= {f"{name}_apart": published.apart(name) for name in RATINGS}
        row |= {"published_ranks": _listed(published.values.get("rank")), "ranks": _listed(published.rated.rank)}
        rows.append({**row, "ranks_differ": bool(published.why), "why": published.why})
    columns = [Column("mechanism", once=True), Column("game", once=True), Column("run")]
    columns += [Column(f"{name}_apart", name, ".1e", group="largest difference") for name in RATINGS]
    columns += [Column("published_ranks", "published", group="ranks"), Column("ranks", "ours", group="ranks")]
    known = [each for each in rated if "rank" in each.values]
    differ = sum(bool(each.why) for each in known)
    names = ", ".join(rated[0].rated.cell.models)
    notes = [
        f"Ranks differ in {differ} of {len(known)} cells. Differences are shares of the payoffs' range.",
        f"Ranks are those of {names}, in this order.",
        "Frozen early: the published program freezes every constraint that is tight at one optimum of its solver; in "
        "these cells another equilibrium has smaller gains, the largest first.",
    ]
    return Table("cells", "Cells of the published study", [*columns, Column("why", "why ranks differ")], rows, notes)


def _listed(values: Array | None) -> str | None:
    return None if values is None else " ".join(f"{value:g}" for value in values)
