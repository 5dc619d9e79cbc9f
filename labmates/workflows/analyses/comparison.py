"""Comparisons of matched runs: the outcomes, and the differences of paired runs with intervals and tests."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Any

from labmates.errors import UsageError, unknown_name
from labmates.models.roster import traits_of
from labmates.records.run import ENDED, RunRecord
from labmates.stats.domains import ANY, SHARE, Domain
from labmates.stats.intervals import LEVEL, Estimate
from labmates.stats.multiplicity import holm
from labmates.stats.paired import Pair, difference, possible
from labmates.util.display_names import in_words, references_first
from labmates.util.grouping import grouped
from labmates.workflows.analyses.matching import (
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
from labmates.workflows.protocol.analysis import Runs, TooFewRunsError
from labmates.workflows.protocol.experiment import EXPERIMENTS, Experiment

if TYPE_CHECKING:
    from labmates.workflows.analyses.compare_params import CompareParams


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

    def lacking(self) -> set[str]:
        """The runs without the primary outcome, failed ones included."""
        wanted = [each for factor in self.factors for level in factor.levels for each in level.observed]
        name = self.primary[0].outcome.name
        return {each.run.id for each in wanted} - {each.run.id for each in wanted if name in each.values}

    def levels(self, fewest: int = 2) -> list[dict[str, Any]]:
        """The rows of all levels of factors with enough of them."""
        some = [factor for factor in self.factors if len(factor.levels) >= fewest]
        return [row for factor in some for row in level_rows(factor, self.results)]


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
        raise TooFewRunsError("; ".join([_nothing(factors, params), *forks_told(forks)]))
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
    shown = difference(pairs, domain.difference(), over(params), level if is_primary else LEVEL)
    p = None if shown.p is None or outcome.role == "cost" else min(1.0, shown.p * (number if is_primary else 1))
    result = Compared(match, outcome, pairs, means, replace(shown, p=p))
    low, high = outcome.domain.low, outcome.domain.high
    if not is_primary or params.over or math.isinf(high - low):
        return result
    least, most = (with_lost.pairs(outcome.name, lost) or ((), ()) for lost in ((low, high), (high, low)))
    return replace(result, possible=possible(least[0], most[0], outcome.domain.difference(), level))


def over(params: CompareParams) -> tuple[str, ...]:
    """What differs in the runs that the answer is for; a new family brings a new model."""
    return tuple(dict.fromkeys("models" if each == "families" else each for each in params.over))


def _adjusted(results: Sequence[Compared]) -> list[Compared]:
    """Results with Holm's p for secondary outcomes."""
    secondary = [result.outcome.role == "secondary" for result in results]
    p_values = holm([each.difference.p if told else None for each, told in zip(results, secondary, strict=True)])
    return [
        replace(each, difference=replace(each.difference, p=p)) if told else each
        for each, told, p in zip(results, secondary, p_values, strict=True)
    ]


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


def level_rows(factor: Factor, results: Sequence[Compared]) -> list[dict[str, Any]]:
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


def forks_told(forks: Sequence[RunRecord]) -> Iterator[str]:
    """What is said of forks that were left out."""
    if forks:
        origins = dict.fromkeys(run.fork_point.partition("@")[0] for run in forks)
        named = in_words(list(origins))
        yield f"Forks, and left out ({len(forks)}): compare them with --where origin=RUN, of {named}"
