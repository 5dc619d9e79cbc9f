"""Findings of several independent researchers, merged by a fixed rule that favours no researcher and no value.

Each field is merged separately: numbers by their median, words by their frequency, and lists by choosing the one that
shares most items with the others; numbers within items are compared to two significant digits. Of equally good values,
such as the two middle numbers, a digest of them draws one: neither their order nor their size decides.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from math import isclose
from statistics import median_high, median_low
from typing import Any

from labmates.tasks.base import FindingsT


def merge_findings(stated: Sequence[FindingsT]) -> FindingsT:
    """The merged findings of one or more researchers, in any order; see the docstring of this module."""
    blocks = [findings.model_dump(mode="json", exclude_none=True) for findings in stated]
    names = dict.fromkeys(name for block in blocks for name in block)
    merged = {name: _merged([block[name] for block in blocks if name in block]) for name in names}
    return type(stated[0]).model_validate(merged)


def _merged(values: Sequence[Any]) -> Any:
    if isinstance(values[0], list):
        items = [Counter(json.dumps(_rounded(item), sort_keys=True) for item in value) for value in values]
        shared = [_shared(items, place) for place in range(len(values))]
        return _drawn(value for value, share in zip(values, shared, strict=True) if isclose(share, max(shared)))
    if isinstance(values[0], int | float) and not isinstance(values[0], bool):
        return _drawn([median_low(values), median_high(values)])
    counts = Counter(values)
    return _drawn(value for value, number in counts.items() if number == max(counts.values()))


def _drawn(values: Iterable[Any]) -> Any:
    texts = sorted({json.dumps(value, sort_keys=True) for value in values})
    digest = hashlib.sha256("\n".join(texts).encode()).digest()
    return json.loads(texts[int.from_bytes(digest) % len(texts)])


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
