"""A leaderboard: one static page that ranks models by the runs of checked bundles."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from labmates.budgets.money import show_dollars
from labmates.pages.section import Section
from labmates.records.run import ENDED, RunRecord
from labmates.reports.report import Report, check_report, write_report
from labmates.reports.results import estimates, parameters, shown_name, varying
from labmates.reports.runs import by_kind, is_baseline, section
from labmates.stats.intervals import Estimate, notes
from labmates.stats.tables import Column, Table
from labmates.util.grouping import grouped
from labmates.workflows.protocol.experiment import EXPERIMENTS, Metric
from labmates_doors.bundles.checking import Checked, checking
from labmates_doors.bundles.container import encode

PAGE = "index.html"
LEADING = "Models ranked by runs that were replayed from bundles. Whoever has a bundle can repeat its check."


@dataclass
class Ranked:
    """A written leaderboard: the digests of verified bundles and the reasons for the others, by file."""

    verified: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Entry:
    """A run of a bundle."""

    file: str
    run: RunRecord

    @property
    def code(self) -> str:
        """A hash of the prompts, rules and code that the run was made with, its models apart."""
        made = {part: known for part, known in (self.run.made or {}).items() if not is_baseline(part)}
        return hashlib.sha256(encode(sorted(made.items())).encode()).hexdigest()[:8]


async def ranked(files: Sequence[Path], site: Path, sandbox: str, watch: Callable[[str], None]) -> Ranked:
    """Check bundles, and write the page of those of which everything was checked and matches.

    Parameters
    ----------
    files
        The bundles; of runs that several hold, those of the first count.
    site
        The folder of the page.
    sandbox
        Where agents' code runs again, one of `labmates_doors.bundles.checking.SANDBOXES`.
    watch
        Receives what is being done.

    Raises
    ------
    UsageError
        If a bundle can't be read, or the page can't be written.
    """
    check_report(site / PAGE)
    made, entries, rows = Ranked(), dict[str, _Entry](), list[dict[str, Any]]()
    for file in files:

        def tell(text: str, name: str = file.name) -> None:
            watch(f"{name}: {text}")

        async with checking(file, sandbox=sandbox, first_only=True, watch=tell) as checked:
            if why := _reason(checked):
                made.refused[file.name] = why
                continue
            made.verified[file.name] = checked.digest
            assert checked.store is not None
            runs = [run for run in checked.store.runs() if run.status in ENDED and run.origin is None]
            new = {run.id: _Entry(file.name, run) for run in runs if run.id not in entries}
            entries |= new
        rows.append(_row(file.name, checked, len(runs) - len(new)))
    write_report(_page(list(entries.values()), rows, made), site / PAGE)
    return made


def _reason(checked: Checked) -> str:
    """Why a bundle is left out; empty if it is verified."""
    for text in checked.faults:
        return f"refused: {text}"
    more = len(checked.unchecked) - 1
    for text in checked.unchecked:
        return f"could not be checked here: {text}" + (f" (and {more} more)" if more else "")
    return ""


def _row(file: str, checked: Checked, repeated: int) -> dict[str, Any]:
    return {
        "bundle": file,
        "study": checked.study,
        "runs": checked.runs,
        "replayed": checked.replayed,
        "repeated": repeated,
        "events": checked.events,
        "tables": checked.tables,
        "labmates": checked.version,
        "digest": checked.digest,
    }


def _page(entries: Sequence[_Entry], rows: Sequence[dict[str, Any]], made: Ranked) -> Report:
    runs = [entry.run for entry in entries]
    models = {model for run in runs for model in run.models}
    warnings = [
        "Everything on this page follows from the replies in the bundles. That a model gave these replies, and when, "
        "rests on whoever published the digest of the bundle: compare it."
    ]
    if models and all(map(is_baseline, models)):
        warnings.append("All of these models are baselines (programs that ship with labmates).")
    parts = [_board(kind, [entry for entry in entries if entry.run.kind == kind]) for kind in by_kind(runs)]
    hidden = () if any(row["repeated"] for row in rows) else ("repeated",)
    shown = [Column(name) for name in (rows[0] if rows else ()) if name not in hidden]
    remarks = ["repeated: runs that an earlier bundle of this table holds, too; they count once."][len(hidden) :]
    parts.append(section("Bundles", Table("bundles", "Verified bundles", shown, rows, remarks)))
    if made.refused:
        refused = [{"bundle": name, "reason": why[:300]} for name, why in made.refused.items()]
        parts.append(section("Left out", Table("refused", "Bundles that are not counted", None, refused)))
    facts = (
        ("bundles verified", str(len(made.verified))),
        ("bundles left out", str(len(made.refused))),
        ("runs", f"{len(runs):,}"),
        ("models", str(len(models))),
    )
    return Report("Leaderboard", LEADING, facts, tuple(warnings), tuple(parts))


def _board(kind: str, entries: Sequence[_Entry]) -> Section:
    """The ranks of an experiment's models, a table for each condition."""
    experiment = EXPERIMENTS.get(kind)
    present = {name for entry in entries for name in entry.run.metrics}
    primary = [metric for metric in experiment.metrics if experiment.primary in (metric.name, metric.same_as)]
    first = min(primary, key=lambda metric: (metric.name not in present, metric.name != experiment.primary))
    headline = [metric for metric in experiment.metrics if metric.name in experiment.headline]
    metrics = [first, *(metric for metric in headline if metric is not first)]
    names = varying([entry.run for entry in entries])

    def condition(entry: _Entry) -> str:
        values = parameters(entry.run, names).items()
        return ", ".join(f"{shown_name(name)} {value}" for name, value in values) or f"all runs of the kind {kind}"

    tables = grouped((condition(entry), entry) for entry in entries)
    name = first.name.replace("_", " ")
    direction = f"is better if {first.better}" if first.better else "has no better direction, so there are no ranks"
    text = (
        f"By {name}, which {direction}: the mean over data sets with its 95 % interval. Models whose intervals overlap "
        "are not told apart. Of the other numbers the means are given."
    )
    return section(f"Leaderboard: {kind}", text, *(_table(title, mine, metrics) for title, mine in tables.items()))


def _table(title: str, entries: Sequence[_Entry], metrics: Sequence[Metric]) -> Table:
    """The models of a condition; runs by another code have ranks of their own."""
    groups = grouped(((entry.code, entry.run.shown_models), entry) for entry in entries)
    runs = [[entry.run for entry in group] for group in groups.values()]
    means = {metric.name: estimates(runs, metric.name) for metric in metrics}
    rows = [
        {"code": code, "models": models, **_numbers(group, {name: each[place] for name, each in means.items()})}
        for place, ((code, models), group) in enumerate(groups.items())
    ]
    ranked = [row for mine in grouped((row["code"], row) for row in rows).values() for row in _ranks(mine, metrics[0])]
    is_mixed = len({row["code"] for row in rows}) > 1
    columns = [
        *([Column("code", once=True)] if is_mixed else []),
        *([Column("rank")] if metrics[0].better else []),
        Column("models"),
        Column(metrics[0].name, form=".3f", shows="both"),
        *(Column(metric.name, form=".3f") for metric in metrics[1:]),
        Column("data_sets"),
        Column("cost", "cost a run"),
        Column("bundles"),
    ]
    remarks = [*notes(each for each in means[metrics[0].name] if each is not None)]
    if is_mixed:
        remarks.append("code: a hash of the prompts, rules and code of the runs; ranks are within one.")
    return Table("board", title, columns, ranked, remarks)


def _numbers(group: Sequence[_Entry], means: Mapping[str, Estimate | None]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, each in means.items():
        row |= {name: None} if each is None else each.row(name)
    return {
        **row,
        "data_sets": len({entry.run.data_set for entry in group}),
        "cost": show_dollars(round(fmean(entry.run.spent for entry in group))),
        "bundles": ", ".join(dict.fromkeys(entry.file for entry in group)),
    }


def _ranks(rows: Sequence[dict[str, Any]], metric: Metric) -> Iterator[dict[str, Any]]:
    """Yield rows with their ranks, the best first; a metric without a better direction ranks none."""
    sign = {"higher": -1.0, "lower": 1.0, None: 0.0}[metric.better]

    def place(row: dict[str, Any]) -> float:
        value = row[metric.name]
        return math.inf if value is None else sign * value

    places = sorted(map(place, rows))
    for row in sorted(rows, key=lambda row: (place(row), row["models"])):
        yield {**row, "rank": places.index(place(row)) + 1 if sign and row[metric.name] is not None else None}
