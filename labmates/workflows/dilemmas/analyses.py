"""The analyses of social dilemmas: ratings of models, and their choices."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from labmates.errors import UsageError
from labmates.stats.figures import paged
from labmates.util.grouping import grouped
from labmates.workflows.protocol.analysis import Analysis, Drawing, Params, Result, Runs, TooFewRunsError
from labmates.workflows.protocol.experiment import EXPERIMENTS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from labmates.stats.ratings import Cell, Rated, Summary
    from labmates.stats.tables import Column
    from labmates.workflows.dilemmas.records import CrossPlay

    _Drawn = tuple[str, Callable[[pd.DataFrame], list[Callable[[], Figure]]]]
    """A title, and the pages of the figure of a table."""

KIND: Final = "dilemma"
TableName = Literal[
    "evolution",
    "pooled",
    "adoption",
    "outcomes",
    "designs",
    "actions",
    "responses",
    "failures",
    "matches",
]
TABLES: Final = {
    "evolution": "Cooperation with all models alike, and after evolution",
    "pooled": "Probability of each action over all models",
    "adoption": "Votes and adoption, by model",
    "outcomes": "Outcomes of votes",
    "designs": "Share of proposals that make full cooperation stable",
    "actions": "Probability of each action, by model",
    "responses": "Probability of each action after the co-players' actions in the previous round",
    "failures": "Failed decisions, by model, stage and seat",
    "matches": "Every play of every match, by seat",
}
_ON_REQUEST: Final = ("matches",)
"""Tables only printed by name."""
_ANSWERS: Final[Mapping[str, tuple[str, Sequence[str], Sequence[str], str]]] = {
    "evolution": ("evolved", ["mechanism"], ["game"], "cooperation after evolution"),
    "pooled": ("share", ["action"], ["game", "mechanism"], "probability of an action"),
    "actions": ("share", ["action"], ["game", "mechanism", "model"], "probability of an action"),
    "adoption": ("wins", ["model"], ["game", "mechanism"], "share of votes won"),
}
"""For each table in the verdict: the value, the columns that name a row, those that divide the table, and words."""
_ROWS: Final = 16
"""Rows on the screen of each of several tables."""


class RatingsParams(Params):
    """Parameters of ratings."""

    payoffs: Path | None = Field(
        None,
        description="Rate a JSON file of recorded payoffs instead of runs: models, and cells with the payoffs of "
        "matches.",
    )
    use: Literal["expected", "sampled"] = Field(
        "expected",
        description="Payoffs of runs: expected (from the players' distributions) or sampled (from the drawn actions).",
    )
    steps: int = Field(1000, ge=0, le=1_000_000, description="Steps of the replicator dynamics.")
    rate: float = Field(0.1, gt=0, le=100, description="Rate of the replicator dynamics, per unit of payoff.")
    summary: bool = Field(
        False, description="Print means over runs with 95 % intervals instead of ratings per run; also with --json."
    )
    keep_failed: bool = Field(False, description="Also rate models with too many failed decisions; they are marked.")


def ratings(runs: Runs, params: RatingsParams) -> Result:
    """Rate models by their payoffs against each other in social dilemmas and tournaments.

    For each cell (a run of a game under a mechanism): the mean payoff over all seatings, the fitness and the population
    at the end of the replicator dynamics, and the deviation rating with its rank. Under
    reputation, where co-players change, only means are available. A tournament is one cell, with points per round; if
    some models never met (a model with one player never meets itself), only means are available.

    A model with more than 20 % failed decisions is excluded, and the others are rated among themselves.
    """
    from labmates.workflows.dilemmas.ratings import cells_answer, cells_table, summaries_answer, summaries_table

    if params.payoffs is not None and (runs.ids or runs.study):
        raise UsageError("rate runs or a file of payoffs, not both")
    cells, make_summaries = _rated(runs, params)
    summaries = make_summaries() if params.summary else []
    is_rated = any(rated.cell.models for rated in cells) or any(summary.models for summary in summaries)
    games = dict.fromkeys([*(rated.cell.game for rated in cells), *(summary.game for summary in summaries)])
    if params.summary:
        tables, verdict = [summaries_table(summaries, steps=params.steps)], summaries_answer(summaries)
    else:
        tables = [cells_table(cells, steps=params.steps)]
        verdict = cells_answer(tables[0])
    fault = "no model is rated: too many decisions of each of them failed (see --keep-failed)"
    figures = rating_figures(cache(lambda: summaries or make_summaries()), games)
    return Result(tables, figures, verdict, fault=None if is_rated else fault)


def rating_figures(summarised: Callable[[], Sequence[Summary]], games: Iterable[str]) -> list[Drawing]:
    """The figures of ratings over runs, one for each game and one for all."""
    from labmates.stats.ratings import ALL_GAMES
    from labmates.workflows.dilemmas.dot_figures import ALL

    alt = "Mean payoff and fitness of each model in each game under each mechanism; the numbers are in the table."
    titles = [*(game for game in games if game != ALL_GAMES), ALL]
    return list(paged("ratings", "Ratings of models", alt, [partial(_figure, summarised, title) for title in titles]))


def _figure(summarised: Callable[[], Sequence[Summary]], title: str) -> Figure | None:
    from labmates.workflows.dilemmas.dot_figures import ratings_dots

    dots = ratings_dots(summarised()).get(title)
    return dots.figure() if dots is not None and dots.rows else None


def _rated(runs: Runs, params: RatingsParams) -> tuple[Sequence[Rated], Callable[[], Sequence[Summary]]]:
    """The ratings of each cell, empty if only summaries over runs are wanted, and a function that makes these."""
    from labmates.stats.ratings import Evolution, rate, summarise
    from labmates.workflows.dilemmas.payoff_files import read_cells
    from labmates.workflows.dilemmas.ratings import rate_play, summarise_plays
    from labmates.workflows.dilemmas.records import cross_plays

    evolution = Evolution(params.steps, params.rate)
    if params.payoffs is not None:
        cells = [rate(cell, evolution) for cell in read_cells(params.payoffs)]
        return cells, lambda: summarise(cells)
    by_kind = _rateable(runs)
    plays = cross_plays(by_kind[KIND]) if KIND in by_kind else []
    others = [
        rate(cell, evolution)
        for kind, chosen in by_kind.items()
        if (cells_of := EXPERIMENTS.get(kind).cells) is not None
        for cell in cells_of(chosen, params.keep_failed)
    ]
    if not plays and not others:
        raise TooFewRunsError("each of these runs has one model, so there is no other to rate it against")

    def summaries() -> Sequence[Summary]:
        over_runs = summarise_plays(plays, params.use, keep_failed=params.keep_failed, evolution=evolution)
        return [*over_runs, *summarise(others)]

    if params.summary:
        return [], summaries
    leave_out = () if params.keep_failed else None
    rated = (rate_play(play, params.use, leave_out=leave_out, evolution=evolution) for play in plays)
    return [*rated, *others], summaries


def _rateable(runs: Runs) -> dict[str, Runs]:
    """The completed runs that can be rated, by kind; a `UsageError` if there are none, or a given run is not one."""
    records = runs.records()
    kinds = dict.fromkeys(record.kind for record in records if record.kind in EXPERIMENTS)
    rateable = [kind for kind in kinds if kind == KIND or EXPERIMENTS.get(kind).cells is not None]
    if runs.ids and (other := next((record for record in records if record.kind not in rateable), None)):
        raise UsageError(f"the run '{other.id}' is of the kind {other.kind}, whose models can't be rated")
    completed = [record for record in records if record.kind in rateable and record.status == "completed"]
    if not completed:
        raise TooFewRunsError(f"none of these {len(records)} runs is a completed dilemma or tournament")
    return {kind: Runs.given(runs.store, each) for kind, each in grouped((run.kind, run) for run in completed).items()}


RATINGS = Analysis(
    "ratings",
    "Ratings",
    RatingsParams,
    ratings,
    example="labmates analyze ratings --study dilemmas --summary",
    has_figures=True,
    in_report=RatingsParams(summary=True),
    shown_for=("dilemma", "tournament"),
)


class ChoicesParams(Params):
    """Parameters of the analysis of choices."""

    tables: tuple[TableName, ...] = Field((), description="Print only this table; repeatable.")


def choices(runs: Runs, params: ChoicesParams) -> Result:
    """Show models' actions in social dilemmas under cooperation mechanisms.

    Tables show action frequencies, frequencies after the co-players' last actions (repetition, reputation), votes,
    adoption and delegation, and for each proposed mediator or contract whether it makes full cooperation a Nash
    equilibrium or weakly dominant (computed exactly). Shares have 95 % intervals over runs. Failed decisions count only
    in their own table. Figures also show metagame payoffs and the evolution of the population; they exclude models with
    more than 20 % failed decisions.

    --table matches prints every play of every match, and --out writes them.
    """
    from labmates.workflows.dilemmas.records import cross_plays

    return choices_in(cross_plays(runs), params)


def choices_in(plays: Sequence[CrossPlay], params: ChoicesParams) -> Result:
    """The tables and figures of choices in cross-plays."""
    from labmates.stats.answers import highest
    from labmates.stats.tables import Table
    from labmates.workflows.dilemmas import frames

    computed: dict[str, pd.DataFrame] = {
        name: getattr(frames, f"{name}_frame")(plays)
        for name in params.tables or (name for name in TABLES if name not in _ON_REQUEST)
    }
    if not params.tables and not computed["failures"]["failed"].any():
        del computed["failures"]
    filled = {name: frame for name, frame in computed.items() if len(frame)}
    rows = None if params.tables else _ROWS
    tables = [Table(name, TABLES[name], columns_of(frame), frame, shown=rows) for name, frame in filled.items()]
    answers = (highest(table, *_ANSWERS[table.name]) for table in tables if table.name in _ANSWERS)
    return Result(
        tables,
        figures=[*_drawings_of_tables(filled, plays), *_drawings_of_metagames(plays)],
        verdict=next(answers, []),
        objects=[{"table": table.name, **row} for table in tables for row in table.rows],
    )


def columns_of(frame: pd.DataFrame) -> list[Column]:
    """The columns of a table, with intervals beside shares."""
    from labmates.stats.tables import Column

    keys = [str(name) for name in frame.columns]
    ends = {f"{key}_{end}" for key in keys for end in ("low", "high", "reason")}
    return [Column(key, shows="both" if f"{key}_low" in keys else "value") for key in keys if key not in ends]


def _drawings_of_tables(tables: Mapping[str, pd.DataFrame], plays: Sequence[CrossPlay]) -> Iterator[Drawing]:
    from labmates.workflows.dilemmas import dot_figures as dots
    from labmates.workflows.dilemmas.frames import action_names

    names = action_names(plays)

    def of_games(make: Callable[[pd.DataFrame], list[dots.Dots]], frame: pd.DataFrame) -> list[Callable[[], Figure]]:
        return [each.figure for each in make(frame)]

    def shares(columns: Mapping[str, str], title: str) -> _Drawn:
        return title, partial(of_games, partial(dots.shares_dots, columns=columns, title=title))

    actions = partial(of_games, partial(dots.actions_dots, names=names))
    draw: Mapping[str, _Drawn] = {
        "actions": ("Actions", actions),
        "pooled": ("Actions of all models together", actions),
        "responses": ("Actions after the co-players' actions", actions),
        "adoption": shares(dots.ADOPTION, "Votes and adoption"),
        "outcomes": shares(dots.OUTCOMES, "Outcomes of votes"),
        "evolution": shares(dots.EVOLUTION, "Cooperation before and after evolution"),
        "designs": shares(dots.DESIGNS, "Proposals that make cooperation stable"),
    }
    for name, (title, drawn) in draw.items():
        if name in tables:
            alt = f"{TABLES[name]}; the numbers are in the table."
            yield from paged(name, title, alt, drawn(tables[name]))


def _drawings_of_metagames(plays: Sequence[CrossPlay]) -> Iterator[Drawing]:
    """The payoffs and the evolution of each game under each mechanism, over all runs with the same models."""
    from labmates.workflows.dilemmas import figures

    metagames = list(_metagames(plays))
    names = Counter((cells[0].game, cells[0].mechanism) for cells in metagames)
    for place, cells in enumerate(metagames):
        game, mechanism = cells[0].game, cells[0].mechanism
        name = re.sub(r"[^\w.+=-]+", "-", f"{game}-{mechanism}").strip("-")
        name += f"-{place}" if names[game, mechanism] > 1 else ""
        where = f"in {game} under {mechanism}"
        alt = f"Payoff of each model against each other model {where}, as a heat map."
        yield Drawing(f"payoffs-{name}", f"Payoffs {where}", alt, partial(figures.payoffs_figure, cells))
        if len(cells[0].models) > 1:
            alt = f"Shares of models under replicator dynamics {where}, and the payoff of each."
            yield Drawing(f"population-{name}", f"Evolution {where}", alt, partial(figures.population_figure, cells))


def _metagames(plays: Sequence[CrossPlay]) -> Iterator[list[Cell]]:
    """The cells of each metagame, without models with too many failed decisions."""
    from labmates.stats.validity import invalid
    from labmates.workflows.dilemmas.ratings import pooled

    groups = grouped(((play.game, play.mechanism, play.models), play) for play in plays if play.has_metagame)
    for (_, _, models), members in groups.items():
        left_out = invalid(pooled(members))
        if len(left_out) < len(models):
            yield [play.without(left_out).cell() for play in members]


CHOICES = Analysis(
    "dilemmas",
    "Choices",
    ChoicesParams,
    choices,
    example="labmates analyze dilemmas --table actions --plots figures",
    kind=KIND,
    objects="per row with its table",
    has_figures=True,
)
