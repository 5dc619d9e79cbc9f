"""Findings of several independent researchers, merged by a fixed rule.

Each field is merged separately: numbers by their median (the lower of two middle ones), words by their frequency, and
lists by choosing the one that shares most items with the others. Ties go to the first researcher. Numbers within items
are compared to two significant digits.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from statistics import median_low
from typing import Any

from labmates.tasks.base import FindingsT


def merge_findings(stated: Sequence[FindingsT]) -> FindingsT:
    """The merged findings of one or more researchers; see the docstring of this module."""
    blocks = [findings.model_dump(mode="json", exclude_none=True) for findings in stated]
    names = dict.fromkeys(name for block in blocks for name in block)
    merged = {name: _merged([block[name] for block in blocks if name in block]) for name in names}
    return type(stated[0]).model_validate(merged)


def _merged(values: Sequence[Any]) -> Any:
    if isinstance(values[0], list):
        items = [Counter(json.dumps(_rounded(item), sort_keys=True) for item in value) for value in values]
        return values[max(range(len(values)), key=lambda place: (_shared(items, place), -place))]
    if isinstance(values[0], int | float) and not isinstance(values[0], bool):
        return median_low(values)
    return Counter(values).most_common(1)[0][0]


def _shared(items: Sequence[Counter[str]], place: int) -> float:
    """Mean overlap of one list with the others, as a share of the items of both."""
    others = [other for at, other in enumerate(items) if at != place]
    return sum((items[place] & other).total() / max((items[place] | other).total(), 1) for other in others)


def _rounded(item: Any) -> Any:
    if isinstance(item, dict):
        return {name: _rounded(value) for name, value in item.items()}
    if isinstance(item, list):
        return [_rounded(value) for value in item]
    return f"{item:.2g}" if isinstance(item, int | float) and not isinstance(item, bool) else item
