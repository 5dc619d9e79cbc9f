"""What runs were made with, and which sets of runs mix what can't be compared.

A run records a hash of each part of its prompts, rules and code (`labmates.studies.made`). After a change of a part,
later runs of the same condition are no replicates of earlier ones.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import sqlalchemy as sa

from labmates.errors import UsageError
from labmates.records import schema
from labmates.records.database import Database
from labmates.records.run import RunRecord

Made = Mapping[str, str]
"""Hashes by part; several of one part, separated by spaces, if a run was continued with another one."""
UNKNOWN: Final = "unknown"
"""In place of hashes of runs from before hashes were recorded."""
_RUNS = schema.runs


class MixedRunsError(UsageError):
    """Runs were made with different prompts, rules or code."""

    def __init__(self, what: str, mixtures: Iterable[str]) -> None:
        super().__init__(
            f"{what} would mix different prompts, rules or code: {'; '.join(mixtures)}. "
            "Allow it with --allow-mixed (allow_mixed)"
        )


def joined(before: Made | None, now: Made) -> dict[str, str]:
    """What a run was made with that is continued with `now`."""
    return {
        part: " ".join(dict.fromkeys([*(before or {}).get(part, UNKNOWN).split(), new])) for part, new in now.items()
    }


def mixtures(groups: Iterable[tuple[str, Made | None, int]]) -> list[str]:
    """One text for each part that differs between runs, given as groups: kind, what they were made with, number.

    A group of 0 runs is what would be made now.
    """
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for kind, made, number in groups:
        # A baseline plays each kind of experiment by other code.
        for part, known in (made or {kind: UNKNOWN}).items():
            counts[part, kind][known] += number
    return [
        f"{part} ({', '.join(_group(known, number) for known, number in by.items())})"
        for (part, _kind), by in sorted(counts.items())
        if len(by) > 1 or any(" " in known for known in by)
    ]


def _group(known: str, number: int) -> str:
    hashes = known.replace(" ", ", then ")
    return f"{number} {'run' if number == 1 else 'runs'} with {hashes}" if number else f"now {hashes}"


def mixtures_of(runs: Iterable[RunRecord]) -> list[str]:
    """One text for each part, and each namesake from files, that differs between runs that have begun."""
    begun = [run for run in runs if run.chain]
    return [*mixtures((run.kind, run.made, 1) for run in begun), *_namesakes(begun)]


def _namesakes(runs: Iterable[RunRecord]) -> list[str]:
    """One text for each name of several organisations or games, of which at least one is from a file."""
    meant: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for run in {run.key: run for run in runs}.values():
        for parameter, value in run.condition.items():
            if isinstance(value, Mapping) and "name" in value:
                meant[run.kind, parameter, value["name"]].add(json.dumps(value, sort_keys=True))
            elif isinstance(value, str):
                meant[run.kind, parameter, value].add("built in")
    return [f"{what} {name} ({len(each)} of this name)" for (_, what, name), each in meant.items() if len(each) > 1]


def study_mixtures(database: Database, study: str) -> list[str]:
    """One text for each part that differs between the begun runs of a study."""
    return mixtures(group[:3] for group in begun_groups(database, study))


def begun_groups(database: Database, study: str) -> list[tuple[str, Made | None, int, str]]:
    """Begun runs of a study by what they were made with: kind, this, number, and the id of one of them."""
    text = sa.cast(_RUNS.c.made, sa.Text)
    query = sa.select(_RUNS.c.kind, sa.func.count().label("number"), sa.func.min(_RUNS.c.id).label("one"))
    groups = query.where(_RUNS.c.study == study, _RUNS.c.chain != "").group_by(_RUNS.c.kind, text).subquery()
    rows = database.rows(sa.select(groups, _RUNS.c.made).join(_RUNS, _RUNS.c.id == groups.c.one))
    return [(row.kind, row.made, row.number, row.one) for row in rows]
