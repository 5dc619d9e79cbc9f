"""Scores by a person: the reports of a study in turn, without models and other judges' scores."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from markupsafe import Markup

from labmates.errors import UsageError
from labmates.pages.links import Links
from labmates.pages.rendering import as_text, render
from labmates.records.events import HUMAN, ArtifactEvent, ScoreEvent
from labmates.records.reading import RunReader
from labmates.records.run import ENDED
from labmates.records.store import Store

_VERSION = "1"
_USUAL = ("quality",)
_LONGEST_NAME, _LONGEST_REASON = 60, 4_000


def judging_page(store: Store, study: str, judge: str, links: Links, *, form_token: str, note: str = "") -> Markup:
    """The next report of a study that the judge has not scored, in an order that mixes conditions.

    Without a judge's name, the page asks for it. `note` is the reason for a refused score.
    """
    name = judge.strip()[:_LONGEST_NAME]
    texts: dict[str, str] = {}
    run_id, left, metrics = "", 0, list[str]()
    if name:
        waiting, metrics = _waiting(store, study, HUMAN + name)
        left = len(waiting)
        run_id = waiting[0] if waiting else ""
        texts = _report(RunReader(store, store.run(run_id))) if run_id else {}
    values = {"study": study, "judge": name, "run_id": run_id, "left": left, "metrics": metrics, "texts": texts}
    return render("judging.html", links=links, form_token=form_token, note=note, **values)


def take_scores(store: Store, form: Mapping[str, str]) -> None:
    """Add the scores of a form to the record of its run.

    Raises `UsageError` if the judge has no name, the run has not ended, or a value is not a number from 0 to 1.
    """
    name, run = form.get("judge", "").strip(), store.run(form.get("run", ""))
    if not name or len(name) > _LONGEST_NAME:
        raise UsageError(f"give your name, of at most {_LONGEST_NAME} characters")
    if run.status not in ENDED:
        raise UsageError(f"run {run.id} has not ended; only ended runs are scored")
    values = {
        field.removeprefix("value-"): _number(field.removeprefix("value-"), text)
        for field, text in form.items()
        if field.startswith("value-") and text.strip()
    }
    if not values:
        raise UsageError("give at least one score")
    reason = form.get("reason", "").replace("\0", "").strip()[:_LONGEST_REASON]
    scores = [
        ScoreEvent(judge=HUMAN + name, version=_VERSION, metric=metric, value=value, reason=reason)
        for metric, value in values.items()
    ]
    first = RunReader(store, run).last + 1
    store.add(run.id, list(enumerate(scores, start=first)), [])


def _number(metric: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"{metric[:60]}: '{text[:40]}' is not a number from 0 to 1")
    return value


def _waiting(store: Store, study: str, judge: str) -> tuple[list[str], list[str]]:
    """The ended runs with artifacts that the judge has not scored, and the other judges' metrics."""
    ended = [run.id for run in store.runs(study=study) if run.status in ENDED]
    scores = store.score_values(ended)
    metrics = dict.fromkeys(metric for values in scores.values() for by, metric in values if not by.startswith(HUMAN))
    open_runs = [run for run in ended if not any(by == judge for by, _ in scores[run])]
    mixed = sorted(open_runs, key=lambda run: hashlib.sha256(f"{judge} {run}".encode()).digest())
    written = {run for run, _ in store.events_of(mixed, ArtifactEvent)}
    return [run for run in mixed if run in written], list(metrics or _USUAL)


def _report(reader: RunReader) -> dict[str, str]:
    """The newest version of each artifact of a run, last artifact first."""
    newest = {event.name: event.content for event in reader.all("artifact")}
    return {name: as_text(reader.bodies.get(number)) for name, number in reversed(newest.items())}
