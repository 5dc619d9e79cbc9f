"""A leaderboard: one static page that ranks models by the runs of checked bundles."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from labmates.pages.section import Section
from labmates.records.run import ENDED, RunRecord
from labmates.reports.report import Report, check_report, write_report
from labmates.reports.results import Cell, cells, results_table
from labmates.reports.runs import by_kind, is_baseline, section
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
    made, runs, rows = Ranked(), dict[str, RunRecord](), list[dict[str, Any]]()
    for file in files:

        def tell(text: str, name: str = file.name) -> None:
            watch(f"{name}: {text}")

        async with checking(file, sandbox=sandbox, first_only=True, watch=tell) as checked:
            if why := _reason(checked):
                made.refused[file.name] = why
                continue
            made.verified[file.name] = checked.digest
            assert checked.store is not None
            mine = {run.id: run for run in checked.store.runs() if run.status in ENDED and run.origin is None}
            rows.append(_row(file.name, checked, len(mine.keys() & runs)))
            runs = {**mine, **runs}
    write_report(_page(list(runs.values()), rows, made), site / PAGE)
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


def _page(runs: Sequence[RunRecord], rows: Sequence[dict[str, Any]], made: Ranked) -> Report:
    models = {model for run in runs for model in run.models}
    warnings = [
        "Everything on this page follows from the replies in the bundles. That a model gave these replies, and when, "
        "rests on whoever published the digest of the bundle: compare it."
    ]
    if models and all(map(is_baseline, models)):
        warnings.append("All of these models are baselines (programs that ship with labmates).")
    parts = [_board(kind, mine) for kind, mine in by_kind(runs).items()]
    remark = "repeated: runs that an earlier bundle of this table holds, too; they count once."
    parts.append(section("Bundles", Table("bundles", "Verified bundles", None, rows, [remark])))
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


def _board(kind: str, runs: Sequence[RunRecord]) -> Section:
    """The ranks of an experiment's models, a table for each condition and each state of prompts, rules and code."""
    experiment = EXPERIMENTS.get(kind)
    present = {name for run in runs for name in run.metrics}
    primary = [metric for metric in experiment.metrics if experiment.primary in (metric.name, metric.same_as)]
    first = min(primary, key=lambda metric: (metric.name not in present, metric.name != experiment.primary))
    metrics = [first.name, *(name for name in experiment.headline if name != first.name)]
    codes = grouped((_code(run), run) for run in runs)
    tables = [
        _ranked(", ".join(filter(None, (label or f"all runs of the kind {kind}", code))), group, first, metrics)
        for code, mine in (codes if len(codes) > 1 else {"": runs}).items()
        for label, group in grouped((cell.label, cell) for cell in cells(mine, metrics)).items()
    ]
    name = first.name.replace("_", " ")
    direction = f"is better if {first.better}" if first.better else "has no better direction, so there are no ranks"
    text = (
        f"By {name}, which {direction}: the mean over data sets with its 95 % interval. Models whose intervals overlap "
        "are not told apart."
    )
    return section(f"Leaderboard: {kind}", text, *tables)


def _code(run: RunRecord) -> str:
    """What a run was made with, its models apart."""
    made = {part: known for part, known in (run.made or {}).items() if not is_baseline(part)}
    return f"code {hashlib.sha256(encode(sorted(made.items())).encode()).hexdigest()[:8]}"


def _ranked(title: str, group: Sequence[Cell], metric: Metric, metrics: Sequence[str]) -> Table:
    """The models of a condition, the best first; a metric without a better direction ranks none."""
    sign = {"higher": -1.0, "lower": 1.0, None: 0.0}[metric.better]
    values = {cell.models: cell.means.get(metric.name) for cell in group}
    places = {models: math.inf if mean is None else sign * mean.value for models, mean in values.items()}
    ordered = sorted(group, key=lambda cell: (places[cell.models], cell.models))
    table = results_table("board", title, [replace(cell, varies={}) for cell in ordered], metrics)
    if not sign:
        return table
    best = sorted(places.values())
    ranks = {models: None if math.isinf(place) else best.index(place) + 1 for models, place in places.items()}
    rows = [{"rank": ranks[row["models"]], **row} for row in table.rows]
    return Table("board", title, [Column("rank"), *table.columns], rows, table.notes)
