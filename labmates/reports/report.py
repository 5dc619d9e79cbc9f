"""Reports of runs in a store: contents, and the self-contained HTML page without scripts."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from labmates.budgets.money import show_dollars
from labmates.errors import LabmatesError, UsageError, telling
from labmates.models.redact import MASK, Redactor
from labmates.pages.rendering import explain, hiding
from labmates.pages.rendering import render as render_template
from labmates.pages.section import Section
from labmates.records.made import MixedRunsError, mixtures_of
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.records.studies import study_counts, study_record
from labmates.reports import runs as run_parts
from labmates.studies.spec import StudySpec
from labmates.util.safe_text import clean
from labmates.workflows.protocol.analysis import TooFewRunsError, shown_analyses
from labmates.workflows.protocol.glossary import glossary

_USER = re.compile(r"(?<=://)[^/\s@]+@")
_QUERY = re.compile(r"(?<=[?&])((?:api[-_]?key|key|token|secret|password)=)[^&\s'\"]+", re.IGNORECASE)


@dataclass(frozen=True)
class Report:
    """The content of a report on runs.

    `facts` are the first numbers, each with its label; `warnings` come before everything else.
    """

    title: str
    description: str
    facts: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    parts: tuple[Section, ...]


def render(report: Report) -> str:
    """A report as a page.

    Texts are escaped and stripped of control characters, of everything that looks like a key, and of keys in this
    process's environment. A content security policy allows only this page's style sheet and pictures.
    """
    style = (files("labmates.reports") / "page.css").read_text("utf-8").strip()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    with hiding_secrets():
        page = render_template("report.html", report=report, style=Markup(style), digest=Markup(digest))  # noqa: S704
    return str(page)


def hiding_secrets() -> AbstractContextManager[None]:
    """Hide everything that looks like a key, and keys in this process's environment, in texts of pages."""
    redact = Redactor.from_environment(os.environ)
    return hiding(lambda text: _QUERY.sub(rf"\1{MASK}", _USER.sub(f"{MASK}@", redact(clean(text)))))


ENDINGS = (".html", ".htm")
MOST_FIGURES = 24


def check_report(path: Path) -> None:
    """Check that a report can be written to a file, before anything is read.

    Raises `UsageError` if its extension is not in `ENDINGS`, it is a folder, or its folder can't be created.
    """
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"a report is an HTML page: its file ends in {' or '.join(ENDINGS)}, not '{path.name}'")
    if path.is_dir():
        raise UsageError(f"can't write a report to '{path}': it is a folder")
    with telling(f"can't write a report to '{path}'"):
        path.parent.mkdir(parents=True, exist_ok=True)


def write_report(report: Report, path: Path) -> None:
    """Write a report as one page that loads nothing; an existing report is replaced when the new one is complete.

    Raises `UsageError` if it can't be written.
    """
    check_report(path)
    text = render(report)
    with (
        telling(f"can't write a report to '{path}'"),
        tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder,
    ):
        whole = Path(folder) / path.name
        whole.write_text(text, "utf-8")
        whole.replace(path)


def study_report(store: Store, name: str | None = None, *, allow_mixed: bool = False) -> Report:
    """The report of a study; without a name, of the only one in the store.

    Raises `UsageError` if the study is unknown or has no started runs; `MixedRunsError` if runs were made with
    different prompts, rules or code, unless `allow_mixed`.
    """
    study = study_record(store, name)
    spec = StudySpec.model_validate(study.spec)
    runs = list(store.runs(study=study.name))
    if not runs:
        raise UsageError(
            f"the study '{study.name}' has no started runs; start it with: labmates study run {study.name}"
        )
    counts = dict(study_counts(store, study.name).runs)
    written = {"name": spec.name, "kind": spec.kind, **spec.model_dump(mode="json", exclude_defaults=True)}
    _refuse_mixed(runs, allow_mixed)
    return _report(store, f"Study {study.name}", spec.description, runs, counts, written, study.name)


def store_report(store: Store, *, kind: str | None = None, allow_mixed: bool = False) -> Report:
    """The report of all runs in a store but forks, or of a kind's.

    Raises `UsageError` if there are no runs; `MixedRunsError` as for `study_report`.
    """
    runs = [run for run in store.runs(kind=kind) if run.origin is None]
    if not runs:
        raise UsageError(f"the store {store.shown_url} has no run{f' of the kind {kind}' if kind else ''}")
    _refuse_mixed(runs, allow_mixed)
    title = f"All runs of the kind {kind}" if kind else "All runs of the store"
    return _report(store, title, "", runs, {}, None, None)


def _refuse_mixed(runs: Sequence[RunRecord], allowed: bool) -> None:
    if not allowed and (mixed := mixtures_of(runs)):
        raise MixedRunsError("this report", mixed)


def _report(
    store: Store,
    title: str,
    description: str,
    runs: Sequence[RunRecord],
    planned: dict[str, int],
    spec: dict[str, Any] | None,
    study: str | None,
) -> Report:
    explain(glossary)
    warnings = list(_warnings(runs, planned))
    parts: list[Section] = []
    for kind, mine in run_parts.by_kind(runs).items():
        with hiding_secrets():
            main, further = run_parts.results(kind, mine)
        analysed = list(_analyses(kind, store, mine, warnings))
        heads = [(part.title + ":" * (not part.title.endswith("?")), answer) for part, answer in analysed]
        answers = [f"{head} {said}" for head, answer in heads for said in answer]
        parts += [run_parts.section(main.title, *answers, *main.bodies), *(part for part, _ in analysed)]
        parts += [further] if further.bodies else []
    parts += [
        run_parts.how_they_ended(runs, planned),
        run_parts.section("Budget, bill and time", run_parts.usage_table(runs)),
    ]
    parts += [run_parts.what_was_run(runs), run_parts.repeat(spec, study, runs)]
    ended = sum(run.status in ENDED for run in runs)
    facts = (
        (f"of {sum(planned.values()) or len(runs)} runs ended", str(ended)),
        ("conditions", str(len({run.key for run in runs}))),
        ("models", str(len({model for run in runs for model in run.models}))),
        ("tokens", f"{sum(run.usage.input_tokens + run.usage.output_tokens for run in runs):,}"),
        ("cost", show_dollars(sum(run.spent for run in runs))),
        ("bill", run_parts.shown_bill(runs)),
    )
    return Report(title, description, facts, tuple(warnings), tuple(parts))


def _warnings(runs: Sequence[RunRecord], planned: dict[str, int]) -> list[str]:
    warnings = []
    if going := sum(run.status == "running" for run in runs):
        warnings.append(f"Runs in progress: {going}. This report shows the state at the time of writing.")
    if waiting := planned.get("planned", 0):
        warnings.append(f"Runs of the study that have not started yet: {waiting}.")
    if failed := sum(run.status == "failed" for run in runs):
        warnings.append(f"Failed runs: {failed}. No table of results counts them.")
    if invalid := sum(run.invalid is not None for run in runs):
        warnings.append(
            f"Invalid runs: {invalid}, for the reasons under “{run_parts.ENDS}”. Their results "
            "stand in the tables that count every run; ratings and profiles leave out what was not played."
        )
    warnings += [f"The runs were made with different {mixture}." for mixture in mixtures_of(runs)]
    models = {model for run in runs for model in run.models}
    if models and all(map(run_parts.is_baseline, models)):
        warnings.append(
            "All of these models are baselines (programs that ship with labmates); no language model took part."
        )
    return warnings


def _analyses(
    kind: str, store: Store, runs: Sequence[RunRecord], warnings: list[str]
) -> Iterator[tuple[Section, Sequence[str]]]:
    """The analyses of an experiment's runs, each with the sentences that lead the report: one, or all of its own.

    One that fails, for instance as this version can't read the record of a run, becomes a warning.
    """
    ended = [run for run in runs if run.status in ENDED]
    if not ended:
        return
    analyses, broken = shown_analyses(kind)
    warnings += map(str, broken)
    for analysis in analyses:
        try:
            result = analysis.shown(store, ended)
            part = run_parts.section(analysis.title, *result.verdict, *result.figures[:MOST_FIGURES], *result.tables)
            yield part, analysis.leading(result.verdict)
        except TooFewRunsError:
            continue
        except LabmatesError as error:
            warnings.append(run_parts.failure_note(f"{analysis.title} ({kind})", error))
