"""Comparison of findings with the truth: tolerances with partial credit, lists robust against padding."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, TypeVar

from labmates.tasks.base import Credit
from labmates.tasks.choices import Sign

StatedT = TypeVar("StatedT")
TrueT = TypeVar("TrueT")

NOT_STATED = "not stated"
FULL_ERRORS, ZERO_ERRORS = 2.0, 6.0
"""The rule of all tolerances: full credit within two standard errors of an ideal fit, none from six on."""


def plain_name(name: str) -> str:
    """`name` without insignificant differences: case, surrounding and repeated blanks, punctuation."""
    return " ".join(re.findall(r"[^\W_]+", name.casefold()))


def fading(error: float, full: float, zero: float) -> float:
    """The credit for an `error`: 1 up to `full`, 0 from `zero` on, linear in between."""
    if error <= full:
        return 1.0
    return max(0.0, (zero - error) / (zero - full))


def relative_error(stated: float, true: float) -> float:
    """The distance of `stated` from `true` in units of `true`; infinite for a missed zero."""
    if stated == true:
        return 0.0
    return abs(stated - true) / abs(true) if true else float("inf")


def within(full: float, zero: float, *, relative: bool = False) -> Callable[[float, float], float]:
    """A credit function of stated and true number: `fading` of their distance, absolute or `relative` to the truth."""
    return lambda stated, true: fading(relative_error(stated, true) if relative else abs(stated - true), full, zero)


def matches(
    stated: Sequence[StatedT], true: Sequence[TrueT], similarity: Callable[[StatedT, TrueT], float]
) -> list[tuple[int, int, float]]:
    """The one-to-one matching of stated and true items with the largest sum of similarities.

    Pairs without similarity are omitted. The sum is independent of the order of both lists.

    Returns
    -------
    list of (int, int, float)
        Index in `stated`, index in `true`, and their similarity in (0, 1], the most similar first.
    """
    pairs = [(i, j, value) for i, a in enumerate(stated) for j, b in enumerate(true) if (value := similarity(a, b)) > 0]
    pairs.sort(key=lambda pair: (-pair[2], pair[0], pair[1]))
    best_of_stated: dict[int, float] = {}
    best_of_true: dict[int, float] = {}
    taken_stated: set[int] = set()
    taken_true: set[int] = set()
    matched = []
    for i, j, value in pairs:
        best_of_stated.setdefault(i, value)
        best_of_true.setdefault(j, value)
        if i not in taken_stated and j not in taken_true:
            taken_stated.add(i)
            taken_true.add(j)
            matched.append((i, j, value))
    # Usually each item gets its best match, and the assignment problem (and scipy) is not needed.
    most = min(math.fsum(best_of_stated.values()), math.fsum(best_of_true.values()))
    if math.fsum(value for _, _, value in matched) < most:
        matched = _largest_sum(pairs, len(stated), len(true))
    return matched


def _largest_sum(pairs: Sequence[tuple[int, int, float]], n_stated: int, n_true: int) -> list[tuple[int, int, float]]:
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    table = np.zeros((n_stated, n_true))
    for i, j, value in pairs:
        table[i, j] = value
    chosen = set(zip(*(index.tolist() for index in linear_sum_assignment(table, maximize=True)), strict=True))
    return [pair for pair in pairs if pair[:2] in chosen]


def guarded_f1(hits: float, n_stated: int, n_true: int) -> float:
    """The F1 of a list, scaled down if its precision is below one half.

    With `hits` the summed similarity of the matched items, precision is hits / n_stated and recall hits / n_true.
    Below a precision of one half the F1 is multiplied by twice the precision, so that listing everything earns almost
    nothing, while a list with some errors keeps its plain F1. Two empty lists agree (1.0).
    """
    if not n_stated and not n_true:
        return 1.0
    if not n_stated or not n_true:
        return 0.0
    f1 = 2 * hits / (n_stated + n_true)
    return f1 * min(1.0, 2 * hits / n_stated)


def by_error(error: float, *, relative: bool = False) -> Callable[[float, float], float]:
    """A credit function from the standard `error` of an ideal fit, absolute or `relative` to the truth."""
    return within(FULL_ERRORS * error, ZERO_ERRORS * error, relative=relative)


def score_number(
    finding: str, stated: float | None, true: float, *, weight: float, credit: Callable[[float, float], float]
) -> Credit:
    """The credit of one number; `credit` maps (stated, true) to [0, 1]."""
    if stated is None:
        return Credit(finding, 0.0, weight, NOT_STATED)
    return Credit(finding, credit(stated, true), weight, f"stated {stated:g}, true {true:g}")


def score_count(finding: str, stated: int | None, true: int, *, weight: float) -> Credit:
    """The credit of a number that must be exact."""
    return score_number(finding, stated, true, weight=weight, credit=lambda a, b: float(a == b))


def score_names(
    finding: str,
    stated: Iterable[str] | None,
    true: Collection[str],
    *,
    weight: float,
    denied: Iterable[str] = (),
    unclear: Iterable[str] = (),
) -> Credit:
    """The credit of a set of names by guarded F1.

    A name that is also listed as `denied` can't be a hit; names that are `unclear` by the data don't count either way.
    """
    if stated is None:
        return Credit(finding, 0.0, weight, NOT_STATED)
    said, right, other, open_ = ({plain_name(name) for name in names} for names in (stated, true, denied, unclear))
    names, true_names = said - open_, right - open_
    hits = names & true_names - other
    reason = f"{len(hits)} right of {len(names)} stated and {len(true_names)} true"
    if both := len((said | right) & open_):
        reason += f", without {both} that the data can't tell"
    return Credit(finding, guarded_f1(len(hits), len(names), len(true_names)), weight, reason)


def score_list(
    finding: str,
    stated: Sequence[StatedT] | None,
    true: Sequence[TrueT],
    *,
    weight: float,
    similarity: Callable[[StatedT, TrueT], float],
) -> Credit:
    """The credit of a list of items by guarded F1 over the best one-to-one matching (see `matches`)."""
    if stated is None:
        return Credit(finding, 0.0, weight, NOT_STATED)
    matched = matches(stated, true, similarity)
    hits = sum(value for _, _, value in matched)
    reason = f"{len(matched)} matched (similarity {hits:.2f}) of {len(stated)} stated and {len(true)} true"
    return Credit(finding, guarded_f1(hits, len(stated), len(true)), weight, reason)


class Effect(NamedTuple):
    """A signed effect: the plain names of what it goes from and to, or of its one thing; its sign, and its size."""

    names: tuple[str, ...]
    sign: Sign | None
    size: float


def score_effects(
    finding: str,
    sizes: str,
    stated: Sequence[Effect] | None,
    true: Sequence[Effect],
    *,
    weights: tuple[float, float],
    error: float,
    words: tuple[str, str],
    once: bool = False,
) -> tuple[Credit, Credit]:
    """The credit of a list of effects by names and sign, and of the sizes of those that are matched.

    An effect without a sign, or with its names exchanged, counts half; a wrong sign, or both signs for the same effect,
    count nothing.

    Parameters
    ----------
    finding, sizes
        Names of both credits, with their `weights`.
    error
        Standard error of a size in an ideal fit.
    words
        What the effects and their sizes are called in reasons.
    once
        Whether repeated effects count once: the last one with a sign.
    """
    if stated is None:
        return Credit(finding, 0.0, weights[0], NOT_STATED), Credit(sizes, 0.0, weights[1], NOT_STATED)
    signs = {effect.names: {one.sign for one in stated if one.names == effect.names} - {None} for effect in stated}
    if once:
        last = {effect.names: effect for effect in stated}
        stated = [*(last | {effect.names: effect for effect in stated if effect.sign}).values()]

    def similarity(a: Effect, b: Effect) -> float:
        if b.names not in (a.names, a.names[::-1]) or len(signs[a.names]) > 1 or a.sign not in (None, b.sign):
            return 0.0
        return 1.0 if a.names == b.names and a.sign else 0.5

    found = matches(stated, true, similarity)
    near = [by_error(error)(abs(stated[i].size), abs(true[j].size)) for i, j, value in found if value == 1.0]
    most, mean = max(len(true), len(stated)), sum(near) / max(len(near), 1)
    reason = f"{len(near)} {words[0]} found of {len(true)}, mean closeness of their {words[1]} {mean:.2f}"
    return (
        score_list(finding, stated, true, weight=weights[0], similarity=similarity),
        Credit(sizes, sum(near) / most if most else 1.0, weights[1], reason),
    )
