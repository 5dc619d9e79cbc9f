"""Grouping of values by key, in order of appearance, and columns that vary."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of (key, value) pairs by key; keys and values keep their order."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def varying_columns(columns: Mapping[str, Sequence[Hashable]], first: Iterable[str] = ()) -> list[str]:
    """The names of `first`, and of columns with several values that are not determined by an earlier name's."""
    chosen = list(first)
    for name, values in columns.items():
        pairs = (set(zip(columns[other], values, strict=True)) for other in chosen)
        is_new = all(len(pair) > len(set(columns[other])) for other, pair in zip(chosen, pairs, strict=True))
        if is_new and len(set(values)) > 1:
            chosen.append(name)
    return chosen
