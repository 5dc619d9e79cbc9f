"""Merging of stores whose studies were planned on several machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from labmates.errors import UsageError
from labmates.records.copying import Copied, Watch, merge_stores

_DESIGN: Final = ("kind", "fixed", "seed", "sample", "judges", "extractor")
"""Fields that must agree in two plans of a study; the rest (addresses, concurrency, cap) is the target's."""


def merge(sources: Sequence[str], into: str, *, watch: Watch | None = None) -> Copied:
    """Merge stores into one; diverged plans of a study are united: all models, all values, most replicates.

    Raises
    ------
    UsageError
        As for `merge_stores`, and if plans of the same name are of different studies.
    """
    return merge_stores(sources, into, unite=united, watch=watch)


def united(name: str, target: dict[str, Any], source: dict[str, Any]) -> dict[str, Any]:
    """The union of two plans of a study, which are JSON data of a `StudySpec`.

    Raises
    ------
    UsageError
        If the plans are of different studies.
    """
    design = [*_DESIGN, *(("models", "grid") if target.get("sample") else ())]
    unlike = [field for field in design if target.get(field) != source.get(field)]
    if set(target["grid"]) != set(source["grid"]):
        unlike.append("names of the grid")
    if unlike:
        raise UsageError(
            f"the stores hold two studies called '{name}', which differ in {', '.join(unlike)}; nothing was changed"
        )
    grid = {field: _all_of(values, source["grid"][field]) for field, values in target["grid"].items()}
    more = {
        "models": _all_of(target["models"], source["models"]),
        "grid": grid,
        "replicates": max(target["replicates"], source["replicates"]),
    }
    return {**target, **more}


def _all_of(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [*first, *(value for value in second if value not in first)]
