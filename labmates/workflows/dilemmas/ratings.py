"""Ratings of models without those with too many failed decisions.

A failed choice is replaced by the rules with a mix of all actions, so that co-players can play on. A model above
`MOST_FAILED` is left out and the others are rated among themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from labmates.stats.answers import highest
from labmates.stats.intervals import notes
from labmates.stats.ratings import ALL_GAMES, EVOLUTION, Cell, Evolution, Rated, Summary, rate, summarise
from labmates.stats.replicator import AT_REST, STEPS
from labmates.stats.tables import Column, Table
from labmates.stats.validity import MOST_FAILED, Tally, invalid, totals
from labmates.workflows.dilemmas.records import CrossPlay, Use

RATINGS = ("mean", "fitness", "population", "deviation", "rank")
FAILED = "failed decisions"
"""The row of a summary with the shares of failed decisions."""
_EVOLVED = ("fitness", "population")


def cells_table(rated: Sequence[Rated], *, steps: int = STEPS) -> Table:
    """The ratings of every model in every cell, with the models left out."""
    rows: list[dict[str, Any]] = []
    for ratings in rated:
        cell = ratings.cell
        for place, model in enumerate((*cell.models, *cell.left_out)):
            row: dict[str, Any] = {"game": cell.game, "mechanism": cell.mechanism, "run": cell.run, "model": model}
            for name in RATINGS:
                values = getattr(ratings, name)
                row[name] = None if values is None or model in cell.left_out else float(values[place])
            row |= {"converged": ratings.converged, "unconverged": ratings.converged is False}
            tally = cell.failed(model)
            row |= {"failed": tally and tally.rate, "validity": _validity(cell, model)}
            rows.append(row)
    columns = [*(Column(name, once=True) for name in ("game", "mechanism", "run")), Column("model")]
    columns += [
        Column(name, form=".1f" if name == "rank" else ".4f", marked="unconverged" if name in _EVOLVED else "")
        for name in RATINGS
    ]
    columns += [Column("failed", "failed decisions", ".1%"), Column("validity")]
    remarks = ["A rank of 1 is best. – is not defined without a metagame."]
    if moving := sum(each.converged is False for each in rated):
        remarks.append(_moving(moving, sum(each.converged is not None for each in rated), steps))
    remarks += dict.fromkeys(
        _left_out(cell.mechanism, cell.game, model, tally.rate)
        for cell in (each.cell for each in rated)
        for model, tally in cell.left_out.items()
    )
    return Table("ratings", "Ratings", columns, rows, remarks)


def cells_answer(table: Table) -> list[str]:
    """Which model earns most in each cell of `cells_table`."""
    cells = {tuple(row[name] for name in ("game", "mechanism")): row["run"] for row in table.rows}
    within = [
        "game",
        "mechanism",
        *(["run"] if len({*cells.values()}) < len({row["run"] for row in table.rows}) else []),
    ]
    return highest(table, "mean", ["model"], within, "mean payoff")


def summaries_answer(summaries: Sequence[Summary]) -> list[str]:
    """Which model earns most under each mechanism: over all games, or in each where these have no common scale."""
    means = [each for each in summaries if each.rating == "mean"]
    told = [each for each in means if each.game == ALL_GAMES] or means
    rows = [
        {"game": each.game, "mechanism": each.mechanism, "model": model, **mean.row("mean")}
        for each in told
        for model, mean in zip(each.models, each.each, strict=True)
    ]
    columns = [*map(Column, ("game", "mechanism", "model")), Column("mean", form=".3f", shows="both")]
    what = "mean payoff, normalised" if told and told[0].normalised else "mean payoff"
    return highest(Table("means", "", columns, rows), "mean", ["model"], ["game", "mechanism"], what)


def _validity(cell: Cell, model: str) -> str:
    if model in cell.left_out:
        return "left out"
    tally = cell.failed(model)
    return "unknown" if tally is None else "valid" if tally.is_valid else "invalid"


def _left_out(mechanism: str, game: str, model: str, failed: float) -> str:
    return (
        f"{model} is left out of {game} under {mechanism}: {failed:.0%} of its decisions failed, more than "
        f"{MOST_FAILED:.0%}. The others are rated among themselves (--keep-failed rates all)."
    )


def summaries_table(summaries: Sequence[Summary], *, steps: int = STEPS) -> Table:
    """Ratings over runs: a row for each game, mechanism and rating, a column for each model."""
    rows: list[dict[str, Any]] = []
    models = list(dict.fromkeys(model for each in summaries for model in (*each.models, *each.left_out)))
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
    columns += [
        Column(name, name, ".3f", "both", marked="unconverged", meaning="Mean rating of all models, or of this one.")
        for name in ("average", *models)
    ]
    remarks = [
        "Mean: over all seatings; fitness: after replicator dynamics; rank: by deviation rating, 1 is best. "
        "Normalised: 0 at full defection, 1 at full cooperation. Failed decisions: their share, – if unknown.",
        *notes(mean for each in summaries for mean in (each.average, *each.each)),
    ]
    fitness = [each for each in summaries if each.rating == "fitness" and each.game != ALL_GAMES]
    if moving := sum(each.unconverged for each in fitness):
        remarks.append(_moving(moving, sum(each.runs for each in fitness), steps))
    for (game, mechanism), summary in by_game.items():
        for model, failed in summary.left_out.items():
            if summary.game == ALL_GAMES:
                remarks.append(f"{model} is left out of all games under {mechanism}, as it is of one of them.")
            else:
                remarks.append(_left_out(mechanism, game, model, failed))
    return Table("ratings", "Ratings over runs", columns, rows, remarks)


def _moving(cells: int, of: int, steps: int) -> str:
    return (
        f"† In {cells} of {of} cells the population is not at rest after {steps:,} steps: some model exceeds the "
        f"average by over {AT_REST:.0%} of the range of payoffs, so more steps would change fitness."
    )


def rate_play(
    play: CrossPlay,
    use: Use = "expected",
    *,
    leave_out: Collection[str] | None = None,
    evolution: Evolution = EVOLUTION,
) -> Rated:
    """The ratings of a cross-play.

    Raises `UsageError` if not every seating was played.

    Parameters
    ----------
    leave_out
        Models without ratings; by default those above `MOST_FAILED`.
    """
    out = invalid(play.failures) if leave_out is None else leave_out
    return rate(play.without(out).cell(use), evolution)


def summarise_plays(
    plays: Sequence[CrossPlay],
    use: Use = "expected",
    *,
    keep_failed: bool = False,
    evolution: Evolution = EVOLUTION,
) -> list[Summary]:
    """Every rating over runs, as in `summarise`, without models with too many failed decisions.

    A model is left out of a game under a mechanism if more than `MOST_FAILED` of its decisions failed there, over all
    runs; and out of the mean over games if it is left out of one of them, so that all games have the same models.
    """
    groups: dict[tuple[str, tuple[str, ...]], dict[str, list[CrossPlay]]] = {}
    for play in plays:
        groups.setdefault((play.mechanism, play.models), {}).setdefault(play.game, []).append(play)
    each: list[Rated] = []
    over_games: list[Rated] = []
    for games in groups.values():
        out = {game: () if keep_failed else invalid(pooled(members)) for game, members in games.items()}
        rated = [
            rate_play(play, use, leave_out=out[game], evolution=evolution)
            for game, members in games.items()
            for play in members
        ]
        all_out = dict.fromkeys(model for models in out.values() for model in models)
        together = rated
        if any(set(models) != set(all_out) for models in out.values()):
            together = [rate(play.without(all_out).cell(use), evolution) for plays in games.values() for play in plays]
        each += rated
        over_games += together
    return summarise(each, together=over_games)


def pooled(plays: Sequence[CrossPlay]) -> dict[str, Tally]:
    """The tallies of each model's decisions over several cross-plays."""
    return totals(each for play in plays for each in play.failures.items())
