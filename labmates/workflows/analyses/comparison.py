"""Comparisons of matched runs: outcomes, tests, sentences, tables and the figure of paired differences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from labmates.errors import UsageError, unknown_name
from labmates.models.roster import traits_of
from labmates.records.run import ENDED, RunRecord
from labmates.stats.domains import ANY, SHARE, Domain
from labmates.stats.figures import GREY, Drawing, add_legend_beside, error_bars, look, new_figure
from labmates.stats.intervals import LEVEL, Estimate, notes
from labmates.stats.multiplicity import holm
from labmates.stats.paired import FEWEST, Pair, blocks, difference, is_settled, more_blocks, possible
from labmates.stats.tables import Column, P, Table
from labmates.util.display_names import in_words, references_first
from labmates.util.grouping import grouped
from labmates.workflows.analyses.matching import (
    CONTINUATION,
    COSTS,
    ORIGIN,
    PLAYER,
    Factor,
    Matched,
    Observed,
    balanced,
    chosen,
    condition_parts,
    factor_of,
    factor_of_conditions,
    observed,
    players,
    varying,
    with_blocks,
)
from labmates.workflows.protocol.analysis import Result, Runs, TooFewRunsError
from labmates.workflows.protocol.experiment import EXPERIMENTS, Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from labmates.workflows.analyses.compare_params import CompareParams

_ROWS: Final = 8
_MOST_DRAWN: Final = 12
_LONGEST_HEAD: Final = 11
_DEFAULT_MARGIN: Final = 0.05
_SAME: Final = 0.005


@dataclass(frozen=True)
class Outcome:
    """A compared outcome; `sign` is 1 if higher values are better, -1 if lower ones, else 0.

    Its `role` is ``primary``, ``secondary`` or ``cost``.
    """

    name: str
    role: str
    domain: Domain
    sign: int
    words: str = ""

    @property
    def text(self) -> str:
        """Its name in sentences and headings."""
        return self.words or self.name.replace("_", " ")


@dataclass(frozen=True)
class Compared:
    """An outcome of two levels: `first` minus `second`."""

    matched: Matched
    outcome: Outcome
    pairs: Sequence[Pair]
    means: tuple[float, float]
    # For the primary outcome, the interval is simultaneous for all pairs, and so is p; other p values are Holm's.
    difference: Estimate
    # For the primary outcome, the interval that assumes only the range, whatever lost runs would have got.
    possible: tuple[float | None, float | None] = (None, None)

    @property
    def is_told(self) -> bool:
        """Whether the interval excludes 0."""
        low, high = self.difference.low, self.difference.high
        return low is not None and high is not None and not low <= 0 <= high

    @property
    def names(self) -> tuple[str, str]:
        """The names of the levels."""
        return self.matched.first.name, self.matched.second.name

    def row(self) -> dict[str, Any]:
        """Its values as a table's row."""
        names = ("factor", "first", "second", "outcome", "role", "first_mean", "second_mean")
        outcome = self.outcome.name.replace("_", " ")
        head = (self.matched.factor.name, *self.names, outcome, self.outcome.role, *self.means)
        usable = fmean(pair.usable for pair in self.pairs)
        more = {"p": self.difference.p, "pairs": len(self.pairs), "usable": usable}
        possible = dict(zip(("possible_low", "possible_high"), self.possible, strict=True))
        return {**dict(zip(names, head, strict=True)), **self.difference.row("difference"), **possible, **more}

    def reversed(self) -> Compared:
        """The same with the levels exchanged, for display."""
        shown = self.difference
        low, high, least, most = (
            None if end is None else -end for end in (shown.high, shown.low, *self.possible[::-1])
        )
        matched = replace(self.matched, first=self.matched.second, second=self.matched.first)
        exchanged = replace(shown, value=-shown.value, low=low, high=high)
        pairs = [replace(pair, value=-pair.value) for pair in self.pairs]
        return replace(
            self, matched=matched, pairs=pairs, means=self.means[::-1], difference=exchanged, possible=(least, most)
        )


@dataclass(frozen=True)
class Comparison:
    """The compared levels of each factor."""

    records: Sequence[RunRecord]  # all runs, compared or not
    forks: Sequence[RunRecord]  # the forks among them that were left out
    factors: Sequence[Factor]
    paired: Sequence[Matched]
    # By pair of levels and outcome; those of one factor have common blocks, if these are enough.
    results: Sequence[Compared]
    number: int  # of pairs for which intervals and p are simultaneous
    usable: str
    params: CompareParams

    @property
    def primary(self) -> Sequence[Compared]:
        """The results of the primary outcome."""
        return [result for result in self.results if result.outcome.role == "primary"]

    def sentences(self) -> Iterator[str]:
        """The answer for each factor."""
        outcome = self.primary[0].outcome
        level, margin = level_of(self.number), self.params.within or _margin(outcome.domain)
        for factor in self.factors:
            mine = [result for result in self.results if result.matched.factor is factor]
            for sentence in _sentences(factor, mine, self.params, level, margin) if mine else ():
                yield sentence if len(self.factors) == 1 else f"{factor.name}: {sentence}"

    def scope(self) -> str:
        """For what the answer holds."""
        return _scope(self.primary, self.params, self.number, self.usable, len(self.lacking()))

    def lacking(self) -> set[str]:
        """The runs without the primary outcome, failed ones included."""
        wanted = [each for factor in self.factors for level in factor.levels for each in level.observed]
        name = self.primary[0].outcome.name
        return {each.run.id for each in wanted} - {each.run.id for each in wanted if name in each.values}

    def levels(self, fewest: int = 2) -> list[dict[str, Any]]:
        """The rows of all levels of factors with enough of them."""
        some = [factor for factor in self.factors if len(factor.levels) >= fewest]
        return [row for factor in some for row in _level_rows(factor, self.results)]


def level_of(number: int) -> float:
    """The level of each of several simultaneous intervals."""
    return 1 - (1 - LEVEL) / number


def comparison(runs: Runs, params: CompareParams, among: int = 1) -> Comparison:
    """Compare runs, as one of several simultaneous comparisons."""
    records = _of_studies(runs.records(forks=True), params.conditions)
    kinds = dict.fromkeys(run.kind for run in records)
    if len(kinds) > 1:
        raise UsageError(f"the runs are of several experiments; choose one with --kind: {', '.join(kinds)}")
    experiment = EXPERIMENTS.get(records[0].kind)
    ended = [run for run in records if run.status in ENDED]
    if not ended:
        raise TooFewRunsError("none of these runs has ended")
    with_scores = params.all or "." in (params.metric or "")
    scores = runs.store.score_values([run.id for run in ended]) if with_scores else {}
    is_of_forks = all(run.origin for run in ended) or any(test.startswith(ORIGIN) for test in params.where)
    forks = [] if is_of_forks else [run for run in ended if run.origin]
    counted = [run for run in records if run.status in (*ENDED, "failed") and (run.origin is None or is_of_forks)]
    everything = with_blocks(chosen(params.where, observed(counted, scores)))
    if not everything:
        raise TooFewRunsError(f"no ended run matches --where {' --where '.join(params.where)}")
    runs.together(each.run for each in everything if each.run.status in ENDED)
    factors = list(_factors(runs, everything, params))
    matches = [Matched.of(factor, *pair) for factor in factors for pair in combinations(factor.levels, 2)]
    paired = [match for match in matches if match.cells]
    if not paired:
        raise TooFewRunsError("; ".join([_nothing(factors, params), *_forks_told(forks)]))
    outcomes = _outcomes(experiment, everything, params)
    whole = [match for match in paired if match.pairs(outcomes[0].name)]
    of_factors = grouped((id(match.factor), match) for match in whole).values()
    both = [both for some in of_factors for both in zip(balanced(some, outcomes[0].name), some, strict=True)]
    both = [(match, with_lost) for match, with_lost in both if match.cells]
    paired = [match for match, _ in both]
    if len(paired) > 1 and not params.all:
        outcomes = [outcome for outcome in outcomes if outcome.role != "secondary"]
    number = len(paired) * among
    results = [
        result
        for match, with_lost in both
        for outcome in outcomes
        if (result := _compared(match, with_lost, outcome, params, level_of(number), number))
    ]
    adjusted = _adjusted(results)
    results = [result for factor in factors for result in _directed(factor, adjusted)]
    made = Comparison(records, forks, factors, paired, results, number, experiment.usable, params)
    if not made.primary:
        raise TooFewRunsError(f"no pair of runs has the metric {outcomes[0].name}")
    return made


def _of_studies(records: Sequence[RunRecord], conditions: Sequence[str]) -> Sequence[RunRecord]:
    """The runs of the studies that conditions name; all of them if a condition names none."""
    tests = [test for text in conditions for test in condition_parts(text)[1]]
    named = [test.removeprefix("study=") for test in tests if test.startswith("study=")]
    if not conditions or len(named) < len(conditions):
        return records
    known = dict.fromkeys(run.study for run in records if run.study)
    if unknown := [name for name in named if name not in known]:
        raise unknown_name("study", unknown[0], known)
    return [run for run in records if run.study in named]


def compared(runs: Runs, params: CompareParams) -> Result:
    """The result of a comparison; see `labmates.workflows.analyses.compare`."""
    made = comparison(runs, params)
    outcome = made.primary[0].outcome
    levels = made.levels(3)
    tables = [levels_table(levels, outcome, params.all)] if levels else []
    if params.all or any(len(factor.levels) == 2 for factor in made.factors):
        few = [each for each in made.primary if len(each.matched.factor.levels) == 2]
        if shown := few if len(made.factors) > 1 and not params.all else made.results:
            tables.append(_pairs_table(shown, params.all))
    return Result(
        tables,
        [_drawing(made.primary)],
        [*made.sentences(), made.scope()],
        objects=[result.row() for result in made.results],
        remarks={"Runs": [*_runs_told(made, outcome), *_forks_told(made.forks)]},
    )


def _factors(runs: Runs, everything: Sequence[Observed], params: CompareParams) -> Iterator[Factor]:
    if params.conditions:
        if params.by:
            raise UsageError("--by: leave it out beside conditions")
        yield factor_of_conditions(params.conditions, everything)
        return
    for name in params.by or varying(everything):
        if name != PLAYER:
            # What is varied usually comes after what it is varied from.
            factor = factor_of(name, everything)
            levels = {level.name: level for level in factor.levels}
            yield replace(factor, levels=[levels[each] for each in references_first(levels)[::-1]])
    of_players = players(runs, everything) if PLAYER in (params.by or (PLAYER,)) else []
    if len({each.settings[PLAYER] for each in of_players}) > 1:
        yield factor_of(PLAYER, of_players)


def _nothing(factors: Sequence[Factor], params: CompareParams) -> str:
    if params.by == (PLAYER,):
        return "nothing to compare: no run has results of players of several models"
    if not factors:
        return "nothing to compare: all of these runs have one condition but for their data"
    levels = "; ".join(f"{factor.name}: {', '.join(level.name for level in factor.levels)}" for factor in factors)
    return (
        "nothing to compare: no two levels have runs with the same seed and otherwise equal parameters "
        f"({levels}); run the missing ones with the same seeds (--seed)"
    )


def _outcomes(experiment: Experiment[Any], everything: Sequence[Observed], params: CompareParams) -> list[Outcome]:
    """The primary outcome, then secondary ones but for the same by another name or on another scale, then costs."""
    present = dict.fromkeys(name for each in everything for name in each.values)
    metrics = {metric.name: metric for metric in experiment.metrics}
    primary = params.metric or experiment.primary
    if primary not in present:
        if params.metric:
            raise unknown_name("metric of these runs", primary, present)
        raise TooFewRunsError(f"none of these runs has the metric {primary}; choose another with --metric")
    wanted = present if params.all else () if params.metric else experiment.headline
    copies = {primary, *COSTS, *(name for name, metric in metrics.items() if metric.same_as == primary)}
    runs = [each.run for each in everything]
    values = {name: tuple(each.values.get(name) for each in everything) for name in present}
    told = {values[name]: name for name in (*present, *wanted, primary) if name in present}  # the last of equal ones
    secondary = [
        name
        for name in wanted
        if name in present and name not in copies and (told[values[name]] == name or len({*values[name]}) == 1)
    ]
    outcomes = []
    for role, names in (
        ("primary", [primary]),
        ("secondary", secondary),
        ("cost", [name for name in COSTS if name != primary and any(each.values.get(name) for each in everything)]),
    ):
        for name in names:
            domain = _domain(name, runs)
            better = metrics[name].better if name in metrics else "lower" if name in COSTS else "higher"
            words = metrics[name].words if name in metrics else ""
            outcomes.append(Outcome(name, role, domain, {"higher": 1, "lower": -1, None: 0}[better], words))
    return outcomes


def _domain(name: str, runs: Sequence[RunRecord]) -> Domain:
    """The range of an outcome in these runs of one experiment: a metric's, a cost's or that of a judge's score."""
    experiment = EXPERIMENTS.get(runs[0].kind)
    known = name in (metric.name for metric in experiment.metrics)
    return experiment.domain_of(name, runs) if known else ANY if name in COSTS else SHARE


def _margin(domain: Domain) -> float:
    width = domain.high - domain.low
    return _DEFAULT_MARGIN * width if math.isfinite(width) else 0.0


def _compared(
    match: Matched, with_lost: Matched, outcome: Outcome, params: CompareParams, level: float, number: int
) -> Compared | None:
    """The result of an outcome; of the primary one also with the interval that assumes only the range."""
    paired = match.pairs(outcome.name)
    if paired is None:
        return None
    pairs, means = paired
    if "families" in params.over:
        known = traits_of({pair.model for pair in pairs})
        pairs = [replace(pair, model=known[pair.model].family if pair.model in known else pair.model) for pair in pairs]
    is_primary = outcome.role == "primary"
    domain = _domain(outcome.name, [each.run for side in (match.first, match.second) for each in side.observed])
    shown = difference(pairs, domain.difference(), _over(params), level if is_primary else LEVEL)
    p = None if shown.p is None or outcome.role == "cost" else min(1.0, shown.p * (number if is_primary else 1))
    result = Compared(match, outcome, pairs, means, replace(shown, p=p))
    low, high = outcome.domain.low, outcome.domain.high
    if not is_primary or params.over or math.isinf(high - low):
        return result
    least, most = (with_lost.pairs(outcome.name, lost) or ((), ()) for lost in ((low, high), (high, low)))
    return replace(result, possible=possible(least[0], most[0], outcome.domain.difference(), level))


def _over(params: CompareParams) -> tuple[str, ...]:
    return tuple(dict.fromkeys("models" if each == "families" else each for each in params.over))


def _adjusted(results: Sequence[Compared]) -> list[Compared]:
    """Results with Holm's p for secondary outcomes."""
    secondary = [result.outcome.role == "secondary" for result in results]
    p_values = holm([each.difference.p if told else None for each, told in zip(results, secondary, strict=True)])
    return [
        replace(each, difference=replace(each.difference, p=p)) if told else each
        for each, told, p in zip(results, secondary, p_values, strict=True)
    ]


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
    more = more_blocks(result.pairs, outcome.domain.difference(), _over(params), level, margin)
    needs = f"{more} more {unit}{'s' * (more > 1)} like these would" if more else f"more {unit}s alone may not"
    return f"Can't tell {first} from {second}: {size}; {needs}{cost}."


def _of_many(factor: Factor, results: Sequence[Compared], primary: Sequence[Compared]) -> Iterator[str]:
    """The best level, those that are not significantly worse, and the front of the outcome and money."""
    rows = _level_rows(factor, results)
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


def _directed(factor: Factor, results: Sequence[Compared]) -> list[Compared]:
    """Its results, all in the direction of sentences, tables and figures: the better of more than two is subtracted."""
    mine = [result for result in results if result.matched.factor is factor]
    if len(factor.levels) == 2:
        return mine
    places = {name: place for name, (place, *_) in _places(mine).items()}
    return [r.reversed() if places.get(r.names[0], ()) > places.get(r.names[1], ()) else r for r in mine]


def _places(results: Sequence[Compared]) -> dict[str, tuple[tuple[float, float], float, float | None]]:
    """The levels of a factor by name, the best first: what higher is better of, the mean, and the dollars."""
    means: dict[str, float] = {}
    dollars: dict[str, float] = {}
    for each in results:
        if each.outcome.role == "primary" or each.outcome.name == "dollars":
            (means if each.outcome.role == "primary" else dollars).update(zip(each.names, each.means, strict=True))
    sign = next((each.outcome.sign for each in results), 0) or 1
    # Sums of the same numbers in another order differ in their last digits.
    found = {
        name: ((round(sign * mean, 12), -dollars.get(name, 0.0)), mean, dollars.get(name))
        for name, mean in means.items()
    }
    return dict(sorted(found.items(), key=lambda item: item[1][0], reverse=True))


def _level_rows(factor: Factor, results: Sequence[Compared]) -> list[dict[str, Any]]:
    """A row per level, the best first: its mean, and its difference from the best, or from the second of two."""
    mine = [result for result in results if result.matched.factor is factor]
    primary = {result.names: result for result in mine if result.outcome.role == "primary"}
    places = _places(mine)
    reference = factor.levels[1].name if len(factor.levels) == 2 else next(iter(places), "")
    minus = reference if len(factor.levels) == 2 else "the best"
    rows = []
    for name, ((score, cheap), mean, dollars) in places.items():
        row: dict[str, Any] = {"factor": factor.name, "level": name, "mean": mean, "dollars": dollars, "minus": minus}
        if pair := primary.get((name, reference)):
            row |= {**pair.difference.row("difference"), "p": pair.difference.p}
        beaten = any(a >= score and b >= cheap and (a, b) != (score, cheap) for (a, b), *_ in places.values())
        rows.append({**row, "is_worse": pair is not None and pair.is_told, "on_front": not beaten})
    return rows


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


def _scope(primary: Sequence[Compared], params: CompareParams, number: int, usable: str, lost: int) -> str:
    """For what the answer holds, and how it is adjusted; `usable` is the metric of usable results."""
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
    elif usable:
        text += f"; all {'other ' if lost else ''}results are readable, and the interval is for readable ones"
    if is_t := any(result.difference.method.startswith("t") for result in primary):
        text += "; losses too rare to show here are not covered"
    if lost:
        text += f"; {lost} {'run has' if lost == 1 else 'runs have'} no result, assumed missing at random"
    low, high = primary[0].possible
    if low is not None and high is not None and len(primary) == 1 and (is_t or lost):
        text += f"; by the range of the outcome alone, the interval is [{_signed(low)}, {_signed(high)}]"
    return f"{text}{f'; intervals and p are simultaneous for {number} pairs' if number > 1 else ''}."


_DIFFERENCE: Final = Column("difference", form="+.3f", shows="both")


def levels_table(
    rows: Sequence[Mapping[str, Any]], outcome: Outcome, show_all: bool, more: Column | None = None, remark: str = ""
) -> Table:
    """A table of the rows of levels, behind a further column."""
    columns = [
        *([more] if more else []),
        Column("level"),
        Column("mean", outcome.text, meaning="Mean of the outcome over the level's runs."),
        replace(
            _DIFFERENCE,
            heading=f"minus {' or '.join(dict.fromkeys(row['minus'] for row in rows))}",
            meaning="Mean difference from the level in the heading, on common data sets.",
        ),
        Column("p", form=P),
    ]
    if any(row["dollars"] is not None for row in rows):
        columns += [Column("dollars"), Column("on_front", "on front")]
    if len({row["factor"] for row in rows}) > 1:
        columns.insert(0, Column("factor", once=True))
    title = f"{outcome.text.capitalize()}, and differences on common data sets"
    return Table("levels", title, columns, rows, [remark] if remark else (), shown=None if show_all else _ROWS)


def _pairs_table(results: Sequence[Compared], show_all: bool) -> Table:
    order = {"primary": 0, "secondary": 1, "cost": 2}
    results = sorted(results, key=lambda each: order[each.outcome.role])
    rows = [result.row() for result in results]
    if len({result.names for result in results}) > 1:
        columns = [Column("first"), Column("second", "minus"), Column("outcome"), _DIFFERENCE]
        title = "Differences, all else equal"
    else:
        names = results[0].names
        # Longer ones would wrap every row of a screen of 80 columns.
        heads = names if max(map(len, names)) <= _LONGEST_HEAD else ("first", "second")
        means = (
            Column(key, head, meaning="Mean of the outcome in this condition.")
            for key, head in zip(("first_mean", "second_mean"), heads, strict=True)
        )
        columns = [Column("outcome"), *means, _DIFFERENCE]
        title = f"{' minus '.join(names)}, all else equal"
    columns += [Column("p", form=P), Column("difference_n", "n")]
    remarks = notes(result.difference for result in results if show_all or result.outcome.role == "primary")
    return Table("compare", title, columns, rows, remarks, shown=None if show_all else _ROWS)


def _runs_told(made: Comparison, outcome: Outcome) -> Iterator[str]:
    """Runs that don't count or have a fault, by name."""
    used = {each.run.id for match in made.paired for cell in match.cells.values() for side in cell for each in side}
    unknown = made.lacking()
    known = {each.run.id for factor in made.factors for level in factor.levels for each in level.observed} - unknown
    groups = {
        "Not ended, and not counted": [run for run in made.records if run.status not in ENDED],
        f"Without {outcome.text}, and not counted": [
            run for run in made.records if run.id in unknown and run.status in ENDED
        ],
        "Invalid, and counted as they are": [run for run in made.records if run.invalid and run.id in used],
        "Without a partner": [run for run in made.records if run.id in known - used],
    }
    for text, some in groups.items():
        if some:
            yield f"{text} ({len(some)}): {in_words([run.id for run in some])}"


def _forks_told(forks: Sequence[RunRecord]) -> Iterator[str]:
    if forks:
        origins = dict.fromkeys(run.fork_point.partition("@")[0] for run in forks)
        named = in_words(list(origins))
        yield f"Forks, and left out ({len(forks)}): compare them with --where origin=RUN, of {named}"


def _drawing(primary: Sequence[Compared]) -> Drawing:
    outcome, unit = primary[0].outcome.text, primary[0].matched.unit
    alt = f"Differences in {outcome}, a point per {unit}, and their means with intervals; the table has the numbers."
    return Drawing("compare", f"Paired differences in {outcome}", alt, partial(_figure, primary[:_MOST_DRAWN]))


def _figure(results: Sequence[Compared]) -> Figure:
    """Draw a row per pair of levels: a point per data set by task, and the mean with its interval."""
    figure, [ax] = new_figure(7.2, 1.0 + 0.45 * len(results))
    tasks = list(dict.fromkeys(pair.task for result in results for pair in result.pairs))
    named = set[str]()
    for place, result in enumerate(results):
        of_blocks = sorted(blocks(result.pairs).items())
        for at, ((task, _), value) in enumerate(of_blocks):
            colour, marker = look(tasks.index(task))
            y = place - 0.25 + 0.5 * (at + 0.5) / len(of_blocks)
            label = "" if task in named else task or "data set"
            ax.plot([value], [y], marker, color=colour, markersize=4, alpha=0.7, label=label)
            named.add(task)
        shown = result.difference
        ax.errorbar([shown.value], [place], xerr=error_bars([shown]), fmt="|", color="black", capsize=4, markersize=14)
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set_yticks(range(len(results)), [" − ".join(result.names) for result in results], fontsize=7)
    ax.set_ylim(len(results) - 0.5, -0.5)
    unit = results[0].matched.unit
    ax.set_xlabel(f"difference in {results[0].outcome.text}, a point per {unit}; mean with {LEVEL:.0%} interval")
    add_legend_beside(ax)
    return figure
