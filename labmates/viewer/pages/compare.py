"""Two runs beside each other: what differs in their conditions, their numbers, and their first pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from markupsafe import Markup

from labmates.pages.links import Links
from labmates.pages.reader import RunReader
from labmates.pages.rendering import as_text, render
from labmates.records.run import RunRecord
from labmates.viewer.pages.run import sections
from labmates.viewer.pages.runs import headline

_TOLD_ABOVE = ("record",)


def compare_page(one: RunReader, other: RunReader, links: Links) -> Markup:
    """Return two runs beside each other."""
    readers = (one, other)
    columns = [
        {part.anchor: part for part in sections(reader, links) if part.anchor not in _TOLD_ABOVE} for reader in readers
    ]
    order = list(dict.fromkeys(anchor for column in columns for anchor in column))
    return render(
        "compare.html",
        links=links,
        runs=[reader.run for reader in readers],
        differences=_pairs(*(_flat(_settings(reader.run)) for reader in readers), only_different=True),
        numbers=_pairs(*(_numbers(reader) for reader in readers)),
        order=order,
        columns=columns,
    )


def _settings(run: RunRecord) -> dict[str, Any]:
    return {"kind": run.kind, "study": run.study, "seed": run.seed, **run.condition, "version": run.version}


def _numbers(reader: RunReader) -> dict[str, Any]:
    run = reader.run
    scores = {f"{score.judge}: {score.metric}": score.value for score in reader.all("score")}
    usage = {name.replace("_", " "): value for name, value in asdict(run.usage).items()}
    first = {name: run.metrics[name] for name in headline(run.kind) if name in run.metrics}
    return {**first, **run.metrics, **scores, **usage, "seconds": run.seconds}


def _pairs(one: Mapping[str, Any], other: Mapping[str, Any], *, only_different: bool = False) -> list[tuple[Any, ...]]:
    """Return name, both values, and their difference where both are numbers."""
    rows = []
    for name in dict.fromkeys([*one, *other]):
        a, b = one.get(name), other.get(name)
        if only_different and a == b:
            continue
        is_number = all(isinstance(value, int | float) and not isinstance(value, bool) for value in (a, b))
        rows.append((name, a, b, b - a if is_number and b is not None and a is not None else None))
    return rows


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict) and value:
            found |= _flat(value, f"{before}{name}.")
        else:
            found[f"{before}{name}"] = as_text(value) if isinstance(value, list | dict) else value
    return found
