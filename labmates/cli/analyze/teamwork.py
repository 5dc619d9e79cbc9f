"""``labmates analyze teamwork``: teams beside one agent alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import json_option, store_option
from labmates.cli.console import clean, out, print_json
from labmates.cli.runs import run_choice
from labmates.cli.tables import out_option, print_grid, print_tables, write_files
from labmates.errors import UsageError

if TYPE_CHECKING:
    from labmates.records.run import RunRecord
    from labmates.workflows.science.teamwork import Contrast, Mean, Measure, Pair, Teamwork

SHOWN = {"task": "", "difficulty": "", "model": "", "budget": "budget $", "visibility": "visibility ", "team_size": ""}
"""What a condition is told by in a heading, and what stands before each value."""


@click.command("teamwork", epilog="Example: labmates analyze teamwork --task ecology")
@run_choice
@json_option()
@out_option
@store_option
def teamwork(
    run_ids: tuple[str, ...],
    study: str | None,
    kind: str | None,
    task: str | None,
    as_json: bool,
    files: tuple[Path, ...],
    store: str | None,
) -> int:
    """Tell whether teams do better or worse than one agent alone.

    Without runs or options, all runs of the store count. A run of teams is paired with the run of one agent alone
    (labmates run science --solo) of the same seed and of equal condition: task, difficulty, model, budget, visibility,
    prices and whatever else both have. First comes one answer over all conditions, with models and tasks as clusters,
    then each condition by itself. For each score (skill first), and for tokens and credits: both sides, the
    difference (teams minus solo), and its mean over pairs with a 95 % interval. Reports that can't be read count as
    accuracy 0; the mean over pairs that can be read stands beside it. For its references to other teams' work a
    report is scored by the artifacts that it names; those of one agent alone are its own.
    """
    from labmates.records.selection import select_runs
    from labmates.records.store import Store
    from labmates.workflows.experiment import EXPERIMENTS
    from labmates.workflows.science.teamwork import judged_runs, teamwork_table
    from labmates.workflows.science.teamwork import teamwork as compute
    from labmates.workflows.science.teamwork_pooled import pooled_table

    with Store(store, must_exist=True) as database:
        runs = _with_twins(select_runs(database, run_ids, study=study, kind=kind, task=task))
        found = compute(judged_runs(database, runs), EXPERIMENTS.get(runs[0].kind).domains)
    missing = list(_missing(found, runs, store))
    if found.contrasts:
        write_files([pooled_table(found.pooled), teamwork_table(found)], files)
    if not found.contrasts:
        raise UsageError("\n".join([f"no pair among these {len(runs)} runs", *missing]))
    if as_json:
        print_json(asdict(found))
        return 0
    print_tables([pooled_table(found.pooled)])
    for contrast in found.contrasts:
        _print(contrast)
    if missing:
        out().print("\nWithout a partner", style="bold")
    for line in missing:
        out().print(clean(line), markup=False)
    return 0


def _with_twins(runs: Sequence[RunRecord]) -> list[RunRecord]:
    from labmates.workflows.experiment import EXPERIMENTS

    found = [run for run in runs if "solo" in EXPERIMENTS.get(run.kind).condition.model_fields]
    if not found:
        raise UsageError("none of these runs is of a kind that one agent can do alone, as science is")
    return found


def _missing(found: Teamwork, runs: Sequence[RunRecord], store: str | None) -> Iterator[str]:
    """Yield what has no partner, and the commands that would make it one."""
    from labmates.workflows.science.teamwork import MIXED

    by_id = {run.id: run for run in runs}
    for one in found.unpaired:
        seeds = sorted(set(one.seeds))
        yield f"{_told(one.condition)}, seed {', '.join(map(str, seeds))}: {one.reason}"
        if one.reason != MIXED:
            yield "  make it with:" if len(seeds) == 1 else "  make them with:"
            yield from (f"    {command}" for command in _commands(by_id[one.runs[0]], seeds, store))
    if found.unfinished:
        yield f"left out, since they have not ended: {', '.join(found.unfinished)}"


def _commands(run: RunRecord, seeds: Sequence[int], store: str | None) -> Iterator[str]:
    """Yield a command for each stretch of seeds in a row."""
    from labmates.cli.command import command_of
    from labmates.workflows.experiment import condition_of

    twin = condition_of(run).twin()
    assert twin is not None
    for start in (seed for seed in seeds if seed - 1 not in seeds):
        replicates = next(n for n in range(1, len(seeds) + 1) if start + n not in seeds)
        yield command_of(twin, seed=start, replicates=replicates, settings=run.settings, store=store)


def _print(contrast: Contrast) -> None:
    from labmates.stats.intervals import notes
    from labmates.workflows.science.teamwork import INTENTION, SKILL, WITHOUT_SKILL

    heading = f"\n{_told(contrast.condition)} ({contrast.key}) beside one agent alone ({contrast.solo_key})"
    out().print(clean(heading), style="bold", markup=False)
    _print_rows(
        ["every pair", "teams", "solo", "difference"], [row for pair in contrast.pairs for row in _told_pair(pair)]
    )
    rows = []
    for mean in contrast.means:
        measure = mean.measure
        numbers = (_number(measure, value) for value in (mean.teams, mean.solo))
        difference = _number(measure, mean.difference.value, sign="+")
        protocol = "" if mean.per_protocol is None else _number(measure, mean.per_protocol, sign="+")
        rows.append([_name(measure), str(mean.pairs), *numbers, difference, _interval(mean), protocol])
    _print_rows(["mean of all pairs", "pairs", "teams", "solo", "difference", "95 % interval", "per protocol"], rows)
    read = f"{sum(pair.readable for pair in contrast.pairs)} of {len(contrast.pairs)} pairs can be read on both sides."
    without = [] if any(mean.measure.metric == SKILL for mean in contrast.means) else [WITHOUT_SKILL]
    remarks = ("Differences are teams minus solo.", f"{INTENTION} {read}", *without)
    for note in (*remarks, *notes(mean.difference for mean in contrast.means)):
        out().print(note, style="dim", markup=False)


def _print_rows(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    print_grid(headings, rows, [False, *(True for _ in headings[1:])])


def _told_pair(pair: Pair) -> Iterator[list[str]]:
    yield [f"seed {pair.seed}: {' '.join(pair.team_runs)} beside {' '.join(pair.solo_runs)}", "", "", ""]
    for one in pair.compared:
        numbers = (_number(one.measure, value) for value in (one.teams, one.solo))
        yield [f"  {_name(one.measure)}", *numbers, _number(one.measure, one.difference, sign="+")]


def _interval(mean: Mean) -> str:
    difference = mean.difference
    if difference.low is None or difference.high is None:
        return difference.reason
    low, high = (_number(mean.measure, value, sign="+") for value in (difference.low, difference.high))
    return f"[{low}, {high}]"


def _name(measure: Measure) -> str:
    return clean(" ".join(filter(None, (measure.judge, measure.version, measure.metric))))


def _number(measure: Measure, value: float, sign: str = "") -> str:
    if measure.judge or measure.metric not in ("tokens", "credits"):
        return f"{value:{sign}.3f}"
    return f"{value:{sign},.0f}" if measure.metric == "tokens" else f"{value:{sign}.4f}"


def _told(condition: Mapping[str, object]) -> str:
    parts = [f"{before}{condition[name]}" for name, before in SHOWN.items() if name in condition]
    who = "one agent alone" if condition.get("solo") else f"teams of {parts.pop()}"
    return ", ".join([*parts, *(["theory of mind"] if condition.get("theory_of_mind") else []), who])
