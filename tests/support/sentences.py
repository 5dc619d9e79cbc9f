"""Sentences that address a judge, and ordinary ones: what the screening of reports has to tell apart.

The rules of `labmates.judges.order_words` were written for the first set of each kind. The fresh sets were written
later and never used to change a rule, so their figures are the ones to expect. All sentences are our own: an author who
knows the rules, or a stranger, may write injections that are missed more often.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path


@cache
def sentence_sets() -> Mapping[str, Sequence[str]]:
    """The sentences of each set, by its name."""
    sets: dict[str, list[str]] = {}
    with Path(__file__).with_name("sentences.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            sets.setdefault(row["set"], []).append(row["sentence"])
    return sets
