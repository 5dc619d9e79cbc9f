"""One comparison for each value of a further parameter: a sentence for each, and one figure of all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from labmates.errors import UsageError
from labmates.records.run import ENDED
from labmates.stats.figures import GREY, Drawing, add_legend_beside, look, new_figure
from labmates.stats.tables import Column
from labmates.util.grouping import grouped
from labmates.workflows.analyses.comparison import Comparison, comparison
from labmates.workflows.analyses.comparison_answer import scope, sentences
from labmates.workflows.analyses.comparison_result import levels_table
from labmates.workflows.analyses.matching import factor_of, observed
from labmates.workflows.protocol.analysis import Result, Runs, TooFewRunsError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from labmates.workflows.analyses.compare_params import CompareParams


def compared_each(runs: Runs, params: CompareParams) -> Result:
    """The result of comparisons for each value of ``params.each``; see `labmates.workflows.analyses.compare`."""
    if len(params.by) != 1 or not params.each:
        raise UsageError(f"--each {params.each}: name the one parameter whose values are compared with --by")
    ended = [run for run in runs.records() if run.status in ENDED]
    if not ended:
        raise TooFewRunsError("none of these runs has ended")
    [by], each = params.by, params.each
    values = [level.name for level in factor_of(each, observed(ended, {})).levels]
    if len(values) < 2:
        raise TooFewRunsError(
            f"all of these runs have {params.each} {values[0]}; ask: labmates compare --by {params.by[0]}"
        )
    made = {
        value: comparison(runs, params.model_copy(update={"where": (*params.where, f"{each}={value}")}), len(values))
        for value in values
    }
    first = made[values[0]]
    outcome = first.primary[0].outcome
    rows = [{each: value, **row} for value in values for row in made[value].levels()]
    title = f"{outcome.text.capitalize()} by {by}, for each {each}"
    alt = f"A row per {by}: its mean {outcome.text}, and a point per task; the table has the numbers."
    return Result(
        [levels_table(rows, outcome, True, Column(each, once=True), scope(first))],
        [Drawing("each", title, alt, partial(_figure, each, made))],
        [f"With {each} {value}: {next(sentences(made[value]))}" for value in values],
        objects=[{each: value, **found.row()} for value in values for found in made[value].results],
    )


def _figure(name: str, made: Mapping[str, Comparison]) -> Figure:
    """Draw a panel per value, with a row per level: a point per task, the mean, and its interval against the line."""
    rows = list(dict.fromkeys(level.name for each in made.values() for level in each.factors[0].levels))
    figure, panels = new_figure(7.2, 0.9 + 0.3 * len(rows), columns=len(made))
    tasks: list[str] = []
    for ax, (value, each) in zip(panels, made.items(), strict=True):
        levels, outcome = each.levels(), each.primary[0].outcome.name
        zero = next(row["mean"] for row in levels if "difference" not in row)
        for level in each.factors[0].levels:
            of_task = grouped((o.run.data_set[0], o.values[outcome]) for o in level.observed if outcome in o.values)
            for task, found in of_task.items():
                tasks += [] if task in tasks else [task]
                colour, marker = look(tasks.index(task))
                ax.plot([fmean(found)], [rows.index(level.name)], marker, color=colour, markersize=4, alpha=0.7)
        for row in levels:
            place = rows.index(row["level"])
            ax.plot([row["mean"]], [place], "|", color="black", markersize=12, zorder=3)
            if row.get("difference_low") is not None:
                ax.hlines(place, zero + row["difference_low"], zero + row["difference_high"], color="black")
        ax.axvline(zero, color=GREY, linewidth=0.8)
        ax.set_title(f"{name} {value}", fontsize=9)
        ax.sharex(panels[0])
        ax.set_yticks(range(len(rows)), rows if ax is panels[0] else [""] * len(rows), fontsize=7)
        ax.set_ylim(len(rows) - 0.5, -0.5)
    for place, task in enumerate(tasks):
        colour, marker = look(place)
        panels[-1].plot([], [], marker, color=colour, markersize=4, label=task)
    panels[len(panels) // 2].set_xlabel(f"{outcome.replace('_', ' ')}: mean, by task, and interval against the line")
    add_legend_beside(panels[-1])
    return figure
