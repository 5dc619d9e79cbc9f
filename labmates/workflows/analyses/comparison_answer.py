"""Sentences of a comparison: the answer for each factor, and for what it holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from labmates.stats.domains import Domain
from labmates.stats.intervals import Estimate
from labmates.stats.paired import FEWEST, blocks, is_settled, more_blocks
from labmates.util.display_names import in_words
from labmates.workflows.analyses.comparison import Compared, Comparison, level_of, level_rows, over
from labmates.workflows.analyses.matching import CONTINUATION, COSTS, Factor

if TYPE_CHECKING:
    from labmates.workflows.analyses.compare_params import CompareParams

_DEFAULT_MARGIN: Final = 0.05
_SAME: Final = 0.005


def sentences(made: Comparison) -> Iterator[str]:
    """The answer for each factor."""
    outcome = made.primary[0].outcome
    level, margin = level_of(made.number), made.params.within or _margin(outcome.domain)
    for factor in made.factors:
        mine = [result for result in made.results if result.matched.factor is factor]
        for sentence in _sentences(factor, mine, made.params, level, margin) if mine else ():
            yield sentence if len(made.factors) == 1 else f"{factor.name}: {sentence}"


def scope(made: Comparison) -> str:
    """For what the answer holds, and how it is adjusted."""
    primary, params, number, lost = made.primary, made.params, made.number, len(made.lacking())
    pairs = [pair for result in primary for pair in result.pairs]
    tasks, models = ({getattr(pair, name) for pair in pairs} - {""} for name in ("task", "model"))
    fixed = [(tasks, "task", "tasks" in params.over), (models, "model", bool({"models", "families"} & {*params.over}))]
    these = " and ".join(
        f"this {name}" if len(some) == 1 else f"these {len(some)} {name}s"
        for some, name, is_new in fixed
        if some and not is_new
    )
    unit = primary[0].matched.unit
    if unit == CONTINUATION:
        origins = {pair.block.partition("@")[0] for pair in pairs}
        these = "this run" if len(origins) == 1 else f"these {len(origins)} runs"
    new = " and ".join((f"{unit}s", *params.over))
    text = f"This holds for new {new}{f' of {these}' if these else ''}"
    data = {(result.matched.factor.name, frozenset(blocks(result.pairs))) for result in primary}
    if len(data) > len({name for name, _ in data}):
        text += f"; fewer than {FEWEST} {unit}s are common to all, so means are over different ones"
    unusable = sum(not pair.usable for pair in pairs)
    if unusable:
        text += f"; {unusable} of {len(pairs)} pairs have an unreadable result, which counts as 0"
    elif made.usable:
        text += f"; all {'other ' if lost else ''}results are readable, and the interval is for readable ones"
    if is_t := any(result.difference.method.startswith("t") for result in primary):
        text += "; losses too rare to show here are not covered"
    if lost:
        text += f"; {lost} {'run has' if lost == 1 else 'runs have'} no result, assumed missing at random"
    low, high = primary[0].possible
    if low is not None and high is not None and len(primary) == 1 and (is_t or lost):
        text += f"; by the range of the outcome alone, the interval is [{_signed(low)}, {_signed(high)}]"
    return f"{text}{f'; intervals and p are simultaneous for {number} pairs' if number > 1 else ''}."


def _margin(domain: Domain) -> float:
    width = domain.high - domain.low
    return _DEFAULT_MARGIN * width if math.isfinite(width) else 0.0


def _sentences(
    factor: Factor, results: Sequence[Compared], params: CompareParams, level: float, margin: float
) -> Iterator[str]:
    """The answer for a factor: of two levels, or the best of more."""
    primary = [result for result in results if result.outcome.role == "primary"]
    if len(factor.levels) == 2 and primary:
        yield _of_two(primary[0], _ratio(results, primary[0]), params, level, margin)
    elif primary:
        yield from _of_many(factor, results, primary)
    mixed = dict.fromkeys(name for result in primary for name in result.matched.mixed)
    if mixed:
        yield f"Confounded, since these differ too: {', '.join(mixed)}."


def _of_two(result: Compared, ratio: float | None, params: CompareParams, level: float, margin: float) -> str:
    outcome, shown, (first, second) = result.outcome, result.difference, result.names
    times = "" if ratio is None or abs(ratio - 1) < _SAME else f"{ratio:.2g} times "
    cost = "" if ratio is None or outcome.name in COSTS else f", and costs {times}as much"
    unit = result.matched.unit
    where = f"in {outcome.text}, {_units(shown, params, unit)}"
    if result.is_told:
        low, high = sorted(abs(end) for end in (shown.low or 0.0, shown.high or 0.0))
        size = f"{_number(abs(shown.value))} [{_number(low)}, {_number(high)}] {where}"
        words = ("better", "worse") if outcome.sign else ("higher", "lower")
        return f"{first} is {words[shown.value * (outcome.sign or 1) < 0]} than {second} by {size}{cost}."
    size = f"{_signed(shown.value)} {_ends(shown)}{where}"
    cost = cost.replace("and costs", f"and {first} costs")
    if is_settled(shown, margin):
        reach = max(abs(shown.low or 0.0), abs(shown.high or 0.0))
        return f"{first} and {second} are tied within ±{_number(reach)} ({size}){cost}."
    if shown.low is None and params.over:
        return f"Can't tell {first} from {second}: {size}; an interval needs {FEWEST}{cost}."
    more = more_blocks(result.pairs, outcome.domain.difference(), over(params), level, margin)
    needs = f"{more} more {unit}{'s' * (more > 1)} like these would" if more else f"more {unit}s alone may not"
    return f"Can't tell {first} from {second}: {size}; {needs}{cost}."


def _of_many(factor: Factor, results: Sequence[Compared], primary: Sequence[Compared]) -> Iterator[str]:
    """The best level, those that are not significantly worse, and the front of the outcome and money."""
    rows = level_rows(factor, results)
    if not rows:
        return
    outcome, size = primary[0].outcome, _number(rows[0]["mean"])
    best = [row["level"] for row in rows if abs(row.get("difference", 0.0)) < _SAME]
    others = [row for row in rows if row["level"] not in best]
    worse, open_ = ([row for row in others if row["is_worse"] is is_worse] for is_worse in (True, False))
    told = [f"{row['level']} (by {_number(abs(row['difference']))})" for row in worse]
    much, more = ("best", "better") if outcome.sign else ("highest", "higher")
    text = f"{in_words(best)} {'has' if len(best) == 1 else 'have'} the {much} {outcome.text} ({size})"
    text += f", significantly {more} than {in_words(told)}" if told else ""
    if open_:
        not_than = "but not than" if told else f"not significantly {more} than"
        text += f", {not_than} {in_words([row['level'] for row in open_])}"
    yield f"{text}."
    if all(row["dollars"] is not None for row in rows) and len({row["dollars"] for row in rows}) > 1:
        front = ", ".join(row["level"] for row in rows if row["on_front"])
        yield f"On the front of {outcome.text} and dollars: {front}."


def _ratio(results: Sequence[Compared], primary: Compared) -> float | None:
    """How many times the dollars of the second level the first one takes; None if unknown or nothing."""
    means = next((r.means for r in results if r.outcome.name == "dollars" and r.names == primary.names), (0.0, 0.0))
    return means[0] / means[1] if min(means) > 0 else None


def _units(shown: Estimate, params: CompareParams, unit: str) -> str:
    units = " and ".join(params.over) if params.over else f"{unit}s"
    return f"{shown.n} {units.removesuffix('s') if shown.n == 1 else units}"


def _number(value: float) -> str:
    text = f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"
    return text if float(text.replace(",", "")) else text.lstrip("-")


def _signed(value: float) -> str:
    return _number(value) if value <= 0 else f"+{_number(value)}"


def _ends(shown: Estimate) -> str:
    return "" if shown.low is None or shown.high is None else f"[{_signed(shown.low)}, {_signed(shown.high)}] "
