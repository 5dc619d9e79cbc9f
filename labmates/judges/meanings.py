"""What words mean: the same idea, the same word in another form, or the name of a thing."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from labmates.judges.rows import words_of

PREFIX: Final = 3
"""Least letters of a word that may stand for a longer one."""
_ALIKE: Final = (
    words_of("average mean typical"),
    words_of("warm warmer warmth temperature temp warming"),
    words_of("treatment active act arm drug ate"),
    words_of("share fraction proportion percent part"),
    words_of("decline declining decrease drop ratio change fall lower pre post"),
    words_of("increase increasing rise ratio change grow higher pre post"),
    words_of("shift shifts step steps break breaks change changepoint changepoints bp bps"),
    words_of("forecast predict prediction predicted expected abundance count counts"),
    words_of("subtype subtypes cluster clusters group groups class classes component components k"),
    words_of("event events anomaly anomalies anomalous abnormal flagged alarm episode episodes"),
    words_of("drift drifting trend slope"),
    words_of("wrong outlier outliers bad unit factor ratio resid residual expected beyond"),
    words_of("repeated repeat repeats duplicate duplicates duplicated dup dups"),
    words_of("worst lowest least min"),
    words_of("benefit helped positive"),
    words_of("covariates ols linear nonspatial"),
)
"""Words for one idea, in reports and in code."""


class Names:
    """Names, as words mention them: whole, by a word of theirs, or by a prefix."""

    def __init__(self, names: Iterable[str]) -> None:
        self.parts = {name: words_of(name) for name in dict.fromkeys(names)}
        self._meant: dict[str, frozenset[str]] = {}
        self._mentioned: dict[frozenset[str], frozenset[str]] = {}

    def mentioned(self, words: frozenset[str]) -> frozenset[str]:
        """The names that words mention without ambiguity."""
        if words not in self._mentioned:
            meant = (self.meaning(word) for word in words if not word.isdigit())
            whole = (name for name, parts in self.parts.items() if parts <= words)
            self._mentioned[words] = frozenset[str](whole).union(*meant)
        return self._mentioned[words]

    def meaning(self, word: str) -> frozenset[str]:
        """The name that a word stands for, if it is one."""
        if word not in self._meant:
            same = [name for name, parts in self.parts.items() if word in parts and (len(word) > 1 or len(parts) == 1)]
            if not same and len(word) >= PREFIX and word.isalpha():
                same = [n for n, parts in self.parts.items() if any(part.startswith(word) for part in parts)]
            self._meant[word] = frozenset(same if len(same) == 1 else ())
        return self._meant[word]


@lru_cache(maxsize=200_000)
def alike(words: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether one of the printed words stands for one of the wanted ones."""
    return any(_stands(word, wanted) or any(word in group and group & wanted for group in _ALIKE) for word in words)


@lru_cache(maxsize=50_000)
def same_word(words: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether one of the printed words is one of the wanted ones, or begins alike."""
    return any(_stands(word, wanted) for word in words)


def has_all(words: frozenset[str], wanted: frozenset[str]) -> bool:
    """Whether each of the wanted words is one of the printed ones, or begins alike."""
    return all(same_word(words, frozenset({word})) for word in wanted)


@lru_cache(maxsize=200_000)
def _stands(word: str, wanted: frozenset[str]) -> bool:
    return word in wanted or (
        len(word) >= PREFIX
        and any(other.startswith(word) or (len(other) >= PREFIX and word.startswith(other)) for other in wanted)
    )
