"""Typed names back to the names that were meant."""

from __future__ import annotations

from difflib import get_close_matches

import pandas as pd


def names(column: pd.Series) -> pd.Series:
    """Spell each name as its most frequent likeness is spelt."""
    plain = column.astype(str).str.replace("_", " ").str.replace(r"\s+", " ", regex=True).str.strip().str.lower()
    counts = plain.value_counts()
    known = list(counts.index[counts > 0.1 * counts.iloc[0]])
    initials = {f"{name[0]}. {name.split()[-1]}": name for name in known}
    meant = {}
    for name in counts.index:
        near = [other for other in known if other.startswith(name)] or get_close_matches(name, known, 1, 0.6)
        meant[name] = name if name in known else initials.get(name, near[0] if near else name)
    spelt = column.astype(str).str.strip().groupby(plain.map(meant)).agg(lambda group: group.value_counts().index[0])
    return plain.map(meant).map(spelt)
