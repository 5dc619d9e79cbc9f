"""The tables of a study's report as data, and their comparison with tables computed anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distributions, version
from platform import machine, python_version, system
from typing import Any, Final

from labmates.records.store import Store
from labmates.registry import PluginError
from labmates.reports.report import study_report
from labmates.stats.tables import Row, Table
from labmates.util.sources import source_hash
from labmates.workflows.protocol.analysis import ANALYSES
from labmates.workflows.protocol.experiment import EXPERIMENTS

REPORT, REPLAY = "report", "replay"
_LIBRARIES: Final = ("numpy", "scipy", "pandas", "networkx")
"""Libraries that compute numbers of tables."""
_CLOSE: Final = 1e-6
"""Relative difference of numbers that other versions of the libraries may compute."""


def tables_of(store: Store, study: str) -> list[dict[str, Any]]:
    """The tables of the report on a study, each with its name, rows, and ``by``: the analysis that made it."""
    report = study_report(store, study, allow_mixed=True)
    titles = dict(_titles())
    return [
        {"by": titles.get(part.title, REPORT), "name": body.name, "rows": [dict(row) for row in body.rows]}
        for part in report.parts
        for body in part.bodies
        if isinstance(body, Table)
    ]


def code_of(makers: Iterable[str], kinds: Iterable[str]) -> dict[str, str]:
    """The hashes of the code here that makes the tables of these makers and replays runs of these kinds."""
    roots = {REPORT: "labmates.reports.report", REPLAY: "labmates.studies.replay"}
    roots |= {name: ANALYSES.module(name) for name in makers if name in ANALYSES}
    roots |= {f"kind {kind}": EXPERIMENTS.module(kind) for kind in kinds if kind in EXPERIMENTS}
    return {name: source_hash([root], _follow(root)) for name, root in sorted(roots.items())}


def libraries() -> dict[str, str]:
    """The versions of Python and of the libraries that compute tables, and the machine."""
    return {"python": python_version(), "machine": f"{system()} {machine()}", **dict(_versions(_LIBRARIES))}


def packages() -> dict[str, str]:
    """The versions of the installed packages of labmates, and of those that agents' code finds on this machine."""
    ours = sorted({each.name for each in distributions() if each.name.split("-")[0] == "labmates"})
    return dict(_versions([*ours, "matplotlib", "scikit-learn", "statsmodels", "langchain-core", "langgraph"]))


def table_fault(before: Sequence[Row], after: Sequence[Row], *, exactly: bool) -> str | None:
    """The first difference between a table's rows and the same computed anew; None without any.

    Unless `exactly`, numbers that differ by less than a millionth are equal: other libraries computed them.
    """
    if len(before) != len(after):
        return f"{len(before)} rows, and {len(after)} computed"
    for place, (old, new) in enumerate(zip(before, after, strict=True), start=1):
        for name in dict.fromkeys([*old, *new]):
            if name not in old or name not in new or not _is_equal(old[name], new[name], exactly):
                return f"row {place}, {name}: {_shown(old.get(name))}, and {_shown(new.get(name))} computed"
    return None


def _is_equal(old: Any, new: Any, exactly: bool) -> bool:
    if exactly or type(old) is not float or type(new) is not float:
        return type(old) is type(new) and bool(old == new)
    return abs(old - new) <= _CLOSE * max(abs(old), abs(new))


def _shown(value: Any) -> str:
    return "nothing" if value is None else f"{value!r:.80}"


def _follow(root: str) -> Callable[[str], bool]:
    tops = ("labmates.", f"{root.partition('.')[0]}.")
    return lambda module: module.startswith(tops)


def _titles() -> Iterator[tuple[str, str]]:
    for name in ANALYSES:
        with suppress(PluginError):  # the report warns of it
            yield ANALYSES.get(name).title, name


def _versions(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue
