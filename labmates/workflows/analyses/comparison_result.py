"""The result of a comparison: its answer, tables, and the figure of paired differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from labmates.records.run import ENDED
from labmates.stats.figures import GREY, Drawing, add_legend_beside, error_bars, look, new_figure
from labmates.stats.intervals import LEVEL, notes
from labmates.stats.paired import blocks
from labmates.stats.tables import Column, P, Table
from labmates.util.display_names import in_words
from labmates.workflows.analyses.comparison import Compared, Comparison, Outcome, comparison, forks_told
from labmates.workflows.analyses.comparison_answer import scope, sentences
from labmates.workflows.protocol.analysis import Result, Runs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from labmates.workflows.analyses.compare_params import CompareParams

_ROWS: Final = 8
_MOST_DRAWN: Final = 12
_LONGEST_HEAD: Final = 11
_DIFFERENCE: Final = Column("difference", form="+.3f", shows="both")


def compared(runs: Runs, params: CompareParams) -> Result:
    """The result of a comparison; see `labmates.workflows.analyses.compare`."""
    made = comparison(runs, params)
    outcome = made.primary[0].outcome
    levels = made.levels(3)
    tables = [levels_table(levels, outcome, params.all)] if levels else []
    if params.all or any(len(factor.levels) == 2 for factor in made.factors):
        few = [each for each in made.primary if len(each.matched.factor.levels) == 2]
        if shown := few if len(made.factors) > 1 and not params.all else made.results:
            tables.append(_pairs_table(shown, params.all))
    return Result(
        tables,
        [_drawing(made.primary)],
        [*sentences(made), scope(made)],
        objects=[result.row() for result in made.results],
        remarks={"Runs": [*_runs_told(made, outcome), *forks_told(made.forks)]},
    )


def levels_table(
    rows: Sequence[Mapping[str, Any]], outcome: Outcome, show_all: bool, more: Column | None = None, remark: str = ""
) -> Table:
    """A table of the rows of levels, behind a further column."""
    columns = [
        *([more] if more else []),
        Column("level"),
        Column("mean", outcome.text, meaning="Mean of the outcome over the level's runs."),
        replace(
            _DIFFERENCE,
            heading=f"minus {' or '.join(dict.fromkeys(row['minus'] for row in rows))}",
            meaning="Mean difference from the level in the heading, on common data sets.",
        ),
        Column("p", form=P),
    ]
    if any(row["dollars"] is not None for row in rows):
        columns += [Column("dollars"), Column("on_front", "on front")]
    if len({row["factor"] for row in rows}) > 1:
        columns.insert(0, Column("factor", once=True))
    title = f"{outcome.text.capitalize()}, and differences on common data sets"
    return Table("levels", title, columns, rows, [remark] if remark else (), shown=None if show_all else _ROWS)


def _pairs_table(results: Sequence[Compared], show_all: bool) -> Table:
    order = {"primary": 0, "secondary": 1, "cost": 2}
    results = sorted(results, key=lambda each: order[each.outcome.role])
    rows = [result.row() for result in results]
    if len({result.names for result in results}) > 1:
        columns = [Column("first"), Column("second", "minus"), Column("outcome"), _DIFFERENCE]
        title = "Differences, all else equal"
    else:
        names = results[0].names
        # Longer ones would wrap every row of a screen of 80 columns.
        heads = names if max(map(len, names)) <= _LONGEST_HEAD else ("first", "second")
        means = (
            Column(key, head, meaning="Mean of the outcome in this condition.")
            for key, head in zip(("first_mean", "second_mean"), heads, strict=True)
        )
        columns = [Column("outcome"), *means, _DIFFERENCE]
        title = f"{' minus '.join(names)}, all else equal"
    columns += [Column("p", form=P), Column("difference_n", "n")]
    remarks = notes(result.difference for result in results if show_all or result.outcome.role == "primary")
    return Table("compare", title, columns, rows, remarks, shown=None if show_all else _ROWS)


def _runs_told(made: Comparison, outcome: Outcome) -> Iterator[str]:
    """Runs that don't count or have a fault, by name."""
    used = {each.run.id for match in made.paired for cell in match.cells.values() for side in cell for each in side}
    unknown = made.lacking()
    known = {each.run.id for factor in made.factors for level in factor.levels for each in level.observed} - unknown
    groups = {
        "Not ended, and not counted": [run for run in made.records if run.status not in ENDED],
        f"Without {outcome.text}, and not counted": [
            run for run in made.records if run.id in unknown and run.status in ENDED
        ],
        "Invalid, and counted as they are": [run for run in made.records if run.invalid and run.id in used],
        "Without a partner": [run for run in made.records if run.id in known - used],
    }
    for text, some in groups.items():
        if some:
            yield f"{text} ({len(some)}): {in_words([run.id for run in some])}"


def _drawing(primary: Sequence[Compared]) -> Drawing:
    outcome, unit = primary[0].outcome.text, primary[0].matched.unit
    alt = f"Differences in {outcome}, a point per {unit}, and their means with intervals; the table has the numbers."
    return Drawing("compare", f"Paired differences in {outcome}", alt, partial(_figure, primary[:_MOST_DRAWN]))


def _figure(results: Sequence[Compared]) -> Figure:
    """Draw a row per pair of levels: a point per data set by task, and the mean with its interval."""
    figure, [ax] = new_figure(7.2, 1.0 + 0.45 * len(results))
    tasks = list(dict.fromkeys(pair.task for result in results for pair in result.pairs))
    named = set[str]()
    for place, result in enumerate(results):
        of_blocks = sorted(blocks(result.pairs).items())
        for at, ((task, _), value) in enumerate(of_blocks):
            colour, marker = look(tasks.index(task))
            y = place - 0.25 + 0.5 * (at + 0.5) / len(of_blocks)
            label = "" if task in named else task or "data set"
            ax.plot([value], [y], marker, color=colour, markersize=4, alpha=0.7, label=label)
            named.add(task)
        shown = result.difference
        ax.errorbar([shown.value], [place], xerr=error_bars([shown]), fmt="|", color="black", capsize=4, markersize=14)
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set_yticks(range(len(results)), [" − ".join(result.names) for result in results], fontsize=7)
    ax.set_ylim(len(results) - 0.5, -0.5)
    unit = results[0].matched.unit
    ax.set_xlabel(f"difference in {results[0].outcome.text}, a point per {unit}; mean with {LEVEL:.0%} interval")
    add_legend_beside(ax)
    return figure
