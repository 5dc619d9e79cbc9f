"""Comparison of runs: parameters, numbers, and differences of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from markupsafe import Markup

from labmates.budgets.money import MICRO
from labmates.pages.links import Links
from labmates.pages.rendering import render
from labmates.records.event_text import artifact_text
from labmates.records.events import ScoreEvent
from labmates.records.reading import RunReader
from labmates.records.run import RunRecord
from labmates.records.view import flatten
from labmates.reports.results import headline
from labmates.viewer.event_items import changes, message_texts
from labmates.viewer.pages.run import sections
from labmates.workflows.protocol.experiment import EXPERIMENTS

MOST_COLUMNS: Final = 6
"""Maximum runs in a comparison."""
_SKIPPED = ("record",)
_MOST_LINES: Final = 2_000
"""Maximum compared lines of a text."""
_MOST_AGENTS: Final = 30


@dataclass(frozen=True)
class Difference:
    """A text with a diff from the first column's: its name, the column's index, and the diff."""

    name: str
    place: int
    lines: Sequence[tuple[str, str]]


def compare_page(readers: Sequence[RunReader], links: Links) -> Markup:
    """The comparison of runs."""
    beside = readers if len(readers) == 2 else []
    parts = [
        {part.anchor: part for part in sections(reader, links) if part.anchor not in _SKIPPED} for reader in beside
    ]
    settings = [_settings(reader.run) for reader in readers]
    numbers = [_numbers(reader) for reader in readers]
    own = {name for reader, has in zip(readers, numbers, strict=True) for name in has.keys() - _counted(reader)}
    differences, equal = _texts_that_differ(readers)
    return render(
        "compare.html",
        links=links,
        columns=readers,
        settings=[
            (name, values)
            for name, values, _ in _rows(settings)
            if differ(values) and all(name in column for column in settings)
        ],
        numbers=[row for row in _rows(numbers) if row[0] in own and differ(row[1])],
        differences=differences,
        equal=equal,
        order=list(dict.fromkeys(anchor for column in parts for anchor in column)),
        parts=parts,
    )


def _settings(run: RunRecord) -> dict[str, Any]:
    row: dict[str, Any] = {"kind": run.kind, "study": run.study, "seed": run.seed, "version": run.version}
    for name, value in run.condition.items():
        if isinstance(value, Mapping) and "name" in value:  # beside one that is a name alone
            row[name] = value["name"]
        flatten(name, value, row)
    return row


def differ(values: Sequence[Any]) -> bool:
    """Whether not all values are equal."""
    return any(value != values[0] for value in values)


def _numbers(reader: RunReader) -> dict[str, Any]:
    run = reader.run
    scores = {_name(score): score.value for score in reader.all("score")}
    money = {"bill": None if run.bill is None else float(run.bill), "uncertain": run.usage.uncertain / MICRO}
    usage = {name.replace("_", " "): value for name, value in {**asdict(run.usage), **money}.items()}
    first = {name: run.metrics[name] for name in headline(run.kind) if name in run.metrics}
    return {**first, **run.metrics, **scores, **usage, "seconds": run.seconds}


def _counted(reader: RunReader) -> set[str]:
    """The names of the scores whose values are metrics of the run."""
    run = reader.run
    judged = EXPERIMENTS.get(run.kind).judged if run.kind in EXPERIMENTS else None
    if judged is None:
        return set()
    made = {_name(score): judged([score]).items() for score in reader.all("score") if score.value is not None}
    return {name for name, metrics in made.items() if metrics and metrics <= run.metrics.items()}


def _name(score: ScoreEvent) -> str:
    return f"{score.judge}: {score.metric}"


def _rows(columns: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Any], float | None]]:
    """Name, values, and the difference of two numbers; None for other values."""
    rows = []
    for name in dict.fromkeys(name for column in columns for name in column):
        values = [column.get(name) for column in columns]
        numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        rows.append((name, values, numbers[1] - numbers[0] if len(numbers) == len(values) == 2 else None))
    return rows


def _texts_that_differ(readers: Sequence[RunReader]) -> tuple[list[Difference], int]:
    """The prompts and artifacts that differ from the first run's, and the number of equal ones."""
    texts = [_texts(reader) for reader in readers]
    differences, equal = [], 0
    for name in dict.fromkeys(name for each in texts for name in each):
        first = texts[0].get(name, "")
        others = [each.get(name, "") for each in texts[1:]]
        equal += all(other == first for other in others)
        differences += [
            Difference(name, place, changes(_start(first), _start(other)))
            for place, other in enumerate(others, start=1)
            if other != first
        ]
    return differences, equal


def _texts(reader: RunReader) -> dict[str, str]:
    """The first prompt of each agent, and the newest version of each artifact, by name."""
    first: dict[str, list[int]] = {}
    for row in reader.rows("llm_call"):
        if len(first) < _MOST_AGENTS:
            first.setdefault(f"prompt of {row.agent or row.team or 'the run'}", row.data["messages"])
    artifacts = reader.all("artifact")
    teams = {
        artifact.name: {event.team for event in artifacts if event.name == artifact.name} for artifact in artifacts
    }
    newest = {
        event.name if len(teams[event.name]) == 1 else f"{event.team} {event.name}": event.content
        for event in artifacts
    }
    bodies = reader.bodies
    texts = {name: artifact_text(bodies.get(number, "")) for name, number in newest.items()}
    for name, numbers in first.items():
        parts = [text.body for number in numbers for text in message_texts(bodies.get(number))]
        texts[name] = "\n".join(parts)
    return texts


def _start(text: str) -> str:
    return "\n".join(text.splitlines()[:_MOST_LINES])
