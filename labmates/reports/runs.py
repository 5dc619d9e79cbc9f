"""The common parts of reports: runs, completion, results, usage, and how to repeat them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from statistics import fmean
from typing import Any

import yaml

from labmates.budgets.money import show_dollars
from labmates.errors import LabmatesError
from labmates.pages.section import Body, Code, Section
from labmates.records.digests import digest_of_all
from labmates.records.run import ENDED, NO_WORK, RunRecord, usage_sum
from labmates.reports.results import (
    by_model,
    cells,
    equal_parameters,
    headline_figures,
    measures,
    parameters,
    results_table,
    shown_name,
    varying,
)
from labmates.stats.tables import Column, Table
from labmates.util.grouping import grouped
from labmates.workflows.protocol.experiment import EXPERIMENTS

MOST_REASONS = 50
MOST_CELLS = 400
"""Maximum rows of a table on a page; a note has the number of further rows."""
BASELINE = "scripted:"
_SUMS = ("input_tokens", "output_tokens", "reasoning_tokens", "tool_calls", "failed_replies")


ENDS = "Completion and failures"
"""The title of the part on completion."""


def section(title: str, *bodies: Body) -> Section:
    """A part of a report, with an address made from its title."""
    return Section("".join(letter if letter.isalnum() else "-" for letter in title.lower()), title, bodies)


def is_baseline(model: str) -> bool:
    """Whether a model is a scripted baseline."""
    return model.startswith(BASELINE)


def date(seconds: float) -> str:
    """A Unix time in display form."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC") if seconds else "–"


def what_was_run(runs: Sequence[RunRecord]) -> Section:
    """Models, conditions, versions, sandboxes and dates, by kind."""
    tables = []
    models = Counter(model for run in runs for model in run.models)
    if models:
        rows = [
            {"model": model, "what": "scripted baseline" if is_baseline(model) else "language model", "runs": number}
            for model, number in models.items()
        ]
        tables.append(Table("models", "Models", [Column("model"), Column("what", "what it is"), Column("runs")], rows))
    for kind, mine in by_kind(runs).items():
        tables.append(_parameters(kind, mine))
    rows = [
        {"what": "first run started", "value": date(min(run.started for run in runs))},
        {"what": "last run started", "value": date(max(run.started for run in runs))},
        {"what": "labmates", "value": _names(run.version for run in runs)},
        {
            "what": "prompts, rules and code",
            "value": _names(f"{part} {known}" for run in runs for part, known in (run.made or {}).items()),
        },
        {"what": "agents' code ran in", "value": _names(run.sandbox or "no sandbox" for run in runs)},
        {
            "what": "judges that are models",
            "value": _names(str(j) for run in runs for j in run.settings.get("judges", ())),
        },
        {"what": "seeds", "value": _names(str(run.seed) for run in runs)},
    ]
    if digests := [run.digest for run in runs if run.digest is not None]:
        rows.append({"what": f"digest of its {len(digests)} ended runs", "value": digest_of_all(digests)})
    tables.append(Table("circumstances", "Circumstances", [Column("what"), Column("value")], rows))
    return section("What was run", *tables)


def how_they_ended(runs: Sequence[RunRecord], planned: Mapping[str, int]) -> Section:
    """The numbers of runs by status, and the reasons of failed and invalid runs.

    `planned` are numbers of all runs of the study by status.
    """
    statuses: list[str] = list(dict.fromkeys(run.status for run in sorted(runs, key=lambda run: run.status)))
    rows: list[dict[str, Any]] = [
        {
            "models": models,
            "kind": kind,
            "runs": len(mine),
            **dict.fromkeys(statuses, 0),
            **Counter(run.status for run in mine),
            "invalid": sum(run.invalid is not None for run in mine),
            NO_WORK: sum(run.idle for run in mine),
        }
        for (kind, models), mine in _grouped(runs).items()
    ]
    statuses += [mark for mark in ("invalid", NO_WORK) if any(row[mark] for row in rows)]
    columns = [Column("models"), Column("kind"), Column("runs"), *map(Column, statuses)]
    text = [f"{planned['planned']} runs of the study have not started."] if planned.get("planned") else []
    failed = [run for run in runs if run.status not in ENDED and run.status != "running"]
    if not failed and not text:
        text.append("Every run has ended.")
    return section(
        ENDS,
        *text,
        Table("completion", "Runs by status", columns, rows),
        *_reasons("reasons", "Reasons for failed or stopped runs", {run.id: run.error for run in failed}),
        *_reasons("invalid", "Reasons for invalid runs", {run.id: run.invalid for run in runs if run.invalid}),
    )


def _reasons(name: str, title: str, reasons: Mapping[str, str | None]) -> list[Table]:
    """The reasons of runs by id, the most frequent first, each with one of its runs; empty without runs."""
    by_reason = grouped((_first_line(reason or "no reason was recorded"), run) for run, reason in reasons.items())
    most = sorted(by_reason.items(), key=lambda item: -len(item[1]))
    rows = [{"reason": reason, "runs": len(ids), "run": ids[0]} for reason, ids in most[:MOST_REASONS]]
    columns = [Column("reason"), Column("runs"), Column("run", "for example run")]
    notes = _more(len(most), MOST_REASONS, "reasons")
    return [Table(name, title, columns, rows, notes)] if rows else []


def results(kind: str, runs: Sequence[RunRecord]) -> tuple[Section, Section]:
    """The metrics of a kind's runs: headline metrics by condition with a figure of the first, and all others."""
    metrics = EXPERIMENTS.get(kind).headline
    others = [name for name in measures(runs) if name not in metrics]
    title, further = f"Results: {kind}", f"Further results: {kind}"
    ended = [run for run in runs if run.status in ENDED]
    if not ended:
        return section(title, "None of these runs has ended."), section(further)
    models, by_cell = by_model(runs, metrics), cells(runs, metrics)
    by_models = results_table(f"{kind}-models", "By model", models, metrics)
    by_models.notes = (*by_models.notes, *_mixed(ended), *_without_result(runs))
    by_conditions = results_table(f"{kind}-conditions", "By model and condition", by_cell[:MOST_CELLS], metrics)
    by_conditions.notes = (*by_conditions.notes, *_more(len(by_cell), MOST_CELLS, "conditions"))
    rest = results_table(f"{kind}-others", "All other metrics, by model", by_model(runs, others), others)
    first, *later = [by_conditions, by_models] if len(by_cell) > len(models) else [by_models]
    drawings = list(headline_figures(kind, ended, by_cell, models))
    tables = [*later, *([rest] if others else [])]
    return section(title, *drawings[:1], first), section(further, *drawings[1:], *tables)


def _without_result(runs: Sequence[RunRecord]) -> Iterator[str]:
    """Yield remarks on models without ended runs, which have no row."""
    ended = {run.shown_models for run in runs if run.status in ENDED}
    failed = Counter(run.shown_models for run in runs if run.status == "failed" and run.shown_models not in ended)
    for models, count in failed.items():
        yield f"{models} has no result: {count} of its runs failed and none ended."


def shown_bill(runs: Sequence[RunRecord]) -> str:
    """The providers' bill for runs, in dollars, and apart from it what lost attempts may have cost."""
    bills = [run.bill for run in runs if run.usage.llm_calls]
    known = [Decimal(bill) for bill in bills if bill is not None]
    bill = f"${sum(known, Decimal()):.4f}" if len(known) == len(bills) else "unknown"
    uncertain = sum(run.usage.uncertain for run in runs)
    return f"{bill} + up to {show_dollars(uncertain)}" if uncertain else bill


def usage_table(runs: Sequence[RunRecord]) -> Table:
    """The usage of runs: calls, tokens, money, time, unusable replies."""
    rows = []
    for (kind, models), mine in _grouped(runs).items():
        used = usage_sum(run.usage for run in mine)
        # Replies of people and programs are not model calls.
        replies = sum(max(run.usage.llm_calls, run.usage.failed_replies) for run in mine)
        seconds = [run.seconds for run in mine if run.status in ENDED]
        rows.append(
            {
                "models": models,
                "kind": kind,
                "runs": len(mine),
                "calls": used.llm_calls,
                **{name: getattr(used, name) for name in _SUMS},
                "failed_reply_share": used.failed_replies / replies if replies else None,
                "cost": show_dollars(sum(run.spent for run in mine)),
                "bill": shown_bill(mine),
                "seconds_per_run": fmean(seconds) if seconds else None,
                "exhausted": sum(run.status == "exhausted" for run in mine),
            }
        )
    forms = {"failed_reply_share": ".1%", "seconds_per_run": ".1f"}
    columns = [Column(name, form=forms.get(name)) for name in rows[0]]
    notes = [
        "The cost counts against a study's cap: the bill where it is known, else credits at the price list of the "
        "conditions, also for baselines; judges are included. The bill is what the providers charge for the teams' "
        "calls; “up to” is for attempts without a reply, which may have been billed. Exhausted runs spent their budget "
        "before they ended."
    ]
    return Table("use", "Usage of the runs", columns, rows, notes)


def repeat(study: Mapping[str, Any] | None, name: str | None, runs: Sequence[RunRecord]) -> Section:
    """The file of the study and its command; for runs without a study, equivalent files."""
    if study is not None:
        text = (
            "Put this into a file and run it in an empty folder. Runs with deterministic models repeat exactly; "
            "other models give other replies."
        )
        return section("How to repeat it", text, Code(_yaml(study)), Code(f"labmates study run {name}.yaml"))
    specs = []
    for key in dict.fromkeys(run.key for run in runs):
        mine = [run for run in runs if run.key == key]
        seeds = [run.seed for run in mine]
        span = max(seeds) - min(seeds) + 1
        judges = list(dict.fromkeys(str(judge) for run in mine for judge in run.settings.get("judges", ())))
        spec = {"name": f"{mine[0].kind}-{key}", "kind": mine[0].kind, "fixed": mine[0].condition, "seed": min(seeds)}
        specs.append(_yaml({**spec, "replicates": span, **({"judges": judges} if judges else {})}))
    text = "These runs belong to no study. Each of these files repeats them: labmates study run FILE.yaml"
    more = _more(len(specs), 20, "conditions")
    return section("How to repeat it", text, *more, *map(Code, specs[:20]))


def by_kind(runs: Iterable[RunRecord]) -> dict[str, list[RunRecord]]:
    """Runs by kind, in order of appearance."""
    return grouped((run.kind, run) for run in runs)


def _parameters(kind: str, runs: Sequence[RunRecord]) -> Table:
    """The compared parameters, one per row; a note has those that are equal in all runs."""
    names = varying(runs)
    of_conditions = {run.key: run for run in runs}
    values = [parameters(run, names) for run in of_conditions.values()]
    rows = [{"parameter": shown_name(name), "values": _names(each[name] for each in values)} for name in names]
    per = Counter(run.key for run in runs).values()
    each = str(min(per)) if min(per) == max(per) else f"{min(per)} to {max(per)}"
    notes = [f"{len(of_conditions)} {_s('condition', len(of_conditions))} with {each} {_s('run', max(per))} each."]
    if equal := equal_parameters(runs):
        listed = "; ".join(f"{shown_name(name)} {value}" for name, value in equal.items())
        notes.append(f"Equal in all conditions: {listed}.")
    return Table(
        f"{kind}-parameters", f"What is compared: {kind}", [Column("parameter"), Column("values")], rows, notes
    )


def _grouped(runs: Iterable[RunRecord]) -> dict[tuple[str, str], list[RunRecord]]:
    return grouped(((run.kind, run.shown_models), run) for run in runs)


def _mixed(ended: Sequence[RunRecord]) -> list[str]:
    differ = varying(ended)
    if not differ:
        return []
    names = ", ".join(map(shown_name, differ))
    return [f"Runs of all conditions together ({names}): compare models only under the same conditions."]


def _names(values: Iterable[str], most: int = 12) -> str:
    names = list(dict.fromkeys(value for value in values if value))
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest or "–"


def _first_line(text: str) -> str:
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= 300 else f"{line[:297]}…"


def _s(word: str, number: int) -> str:
    return word if number == 1 else f"{word}s"


def _more(number: int, most: int, what: str) -> list[str]:
    if number <= most:
        return []
    return [f"{number - most} more {what} are not shown; they are in: labmates export --out runs.csv"]


def _yaml(spec: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(spec), sort_keys=False, allow_unicode=True, width=100)


def failure_note(what: str, error: LabmatesError) -> str:
    """The note on a failed part, with the reason."""
    return f"{what} failed: {error}"
