"""The design of a comparison, read from the runs: levels, and pairs of runs that are equal in all else.

A level is a value of a parameter, or a condition such as ``organisation=solo,budget!=1``. Runs of two levels are paired
if their seeds are equal, and so their data, seating and chance, and all other parameters. A parameter that one level
lacks, or of which it has a single value that the other level never has (a solo run has no team size), can't be equal;
it is left out and named. Runs of a data set, which is a task or game with a seed, are one block.

A continuation of a fork is paired with that of the same number from the same event of the same run. If their data sets
are too few to tell a difference, the continuations are the blocks, and the answer holds for these origins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Final

from labmates.errors import UsageError, unknown_name
from labmates.records.run import RunRecord
from labmates.stats.paired import FEWEST, FEWEST_TOLD, Pair
from labmates.util.display_names import is_reference
from labmates.util.grouping import grouped, varying_columns
from labmates.workflows.protocol.analysis import Runs, TooFewRunsError
from labmates.workflows.protocol.experiment import EXPERIMENTS, flat_condition

DATA: Final = ("task", "game")
"""The parameters that name what the seed varies: the data of a task, the chance of a game."""
STUDY: Final = "study"
PLAYER: Final = "player"
"""The factor of models that played in the same run."""
NONE: Final = "none"
"""The value of a parameter that a condition lacks."""
ORIGIN: Final = "origin"
"""The run of which a run is a fork."""
CONTINUATION: Final = "continuation"
_UNTOLD: Final = (STUDY, ORIGIN, "prices")
"""Never part of what has to be equal, unless compared: a model's prices follow from the model."""


@dataclass(frozen=True)
class Observed:
    """What a run, or one of its players, got.

    Attributes
    ----------
    settings
        The parameters of its condition, as texts.
    values
        By outcome.
    place
        What has to be equal beside the parameters, such as a seat in a run.
    usable
        Whether the result is usable, such as a readable report; 0 stands in for one that is not.
    block
        What is independent within its task; by default its data set.
    """

    run: RunRecord
    settings: Mapping[str, str]
    values: Mapping[str, float]
    place: tuple[object, ...] = ()
    usable: bool = True
    block: str = ""


@dataclass(frozen=True)
class Level:
    """One of the things compared, and its observations."""

    name: str
    observed: Sequence[Observed]

    def values(self, parameter: str) -> set[str]:
        """The values of a parameter."""
        return {each.settings.get(parameter, NONE) for each in self.observed}


@dataclass(frozen=True)
class Factor:
    """Levels that are compared with each other.

    Attributes
    ----------
    compared
        The parameters that make the levels.
    """

    name: str
    levels: Sequence[Level]
    compared: frozenset[str]


@dataclass(frozen=True)
class Matched:
    """Two levels and the observations that are equal in all else, by task, block, model and further parameters.

    Attributes
    ----------
    same
        The parameters that are equal in pairs.
    mixed
        The parameters of both levels that differ too.
    """

    factor: Factor
    first: Level
    second: Level
    same: Sequence[str] = ()
    mixed: Sequence[str] = ()
    cells: Mapping[tuple[Any, ...], tuple[Sequence[Observed], Sequence[Observed]]] = field(default_factory=dict)

    @classmethod
    def of(cls, factor: Factor, first: Level, second: Level) -> Matched:
        """Match the observations of two levels."""
        observed = (*first.observed, *second.observed)
        names = {name for each in observed for name in each.settings} - factor.compared
        names = {name for name in names if name.split(".")[0] not in _UNTOLD}
        mixed = sorted(name for name in names if _is_apart(first.values(name), second.values(name)))
        same = sorted(names.difference(mixed))
        key = _key(same)
        sides = [grouped((key(each), each) for each in level.observed) for level in (first, second)]
        shared = [at for at in sides[0] if at in sides[1]]
        told = [name for name in mixed if NONE not in first.values(name) | second.values(name)]
        return cls(factor, first, second, same, told, {at: (sides[0][at], sides[1][at]) for at in shared})

    def pairs(
        self, outcome: str, lost: tuple[float | None, float | None] = (None, None)
    ) -> tuple[list[Pair], tuple[float, float]] | None:
        """Paired differences in an outcome, first minus second, and both means over their blocks; None without any.

        `lost` are the values of conditions without one, by side; without these, they are left out.
        """
        pairs: list[Pair] = []
        sides: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for (task, block, model, *_), cell in self.cells.items():
            one, other = (_mean(side, outcome, value) for side, value in zip(cell, lost, strict=True))
            if one is not None and other is not None:
                pairs.append(Pair(task, block, model, one - other, all(each.usable for side in cell for each in side)))
                sides.setdefault((task, block), []).append((one, other))
        if not pairs:
            return None
        one, other = map(fmean, zip(*(map(fmean, zip(*both, strict=True)) for both in sides.values()), strict=True))
        return pairs, (one, other)

    @property
    def unit(self) -> str:
        """What a block is."""
        are_forks = any(each.block for sides in self.cells.values() for side in sides for each in side)
        return CONTINUATION if are_forks else "data set"


def balanced(matches: Sequence[Matched], outcome: str) -> list[Matched]:
    """The same pairs of levels where all of them have the outcome, or `matches` if these blocks are too few.

    A level that lost runs would else be compared with others by means over other data.
    """
    levels = {level.name: level for match in matches for level in (match.first, match.second)}
    key = _key(sorted(set.intersection(*(set(match.same) for match in matches))), with_place=False)
    known = {
        name: [(key(each), each) for each in level.observed if outcome in each.values] for name, level in levels.items()
    }
    keys = set.intersection(*({at for at, _ in some} for some in known.values()))
    if len({at[:2] for at in keys}) < FEWEST:
        return list(matches)
    whole = {name: replace(levels[name], observed=[o for at, o in some if at in keys]) for name, some in known.items()}
    return [Matched.of(match.factor, whole[match.first.name], whole[match.second.name]) for match in matches]


def _is_apart(first: set[str], second: set[str]) -> bool:
    return first.isdisjoint(second) and (len(first) == 1 or len(second) == 1)


def _key(same: Sequence[str], *, with_place: bool = True) -> Callable[[Observed], tuple[Any, ...]]:
    """What has to be equal in pairs: task, block, model, place, and the other parameters that are the `same`."""
    task = next((name for name in DATA if name in same), None)
    model = "model" if "model" in same else None

    def key(each: Observed) -> tuple[Any, ...]:
        get = each.settings.get
        return (
            get(task, NONE) if task else "",
            each.block or each.run.data_set[1],
            get(model, NONE) if model else "",
            each.place if with_place else (),
            *[get(name, NONE) for name in same],
        )

    return key


def _mean(side: Sequence[Observed], outcome: str, lost: float | None) -> float | None:
    """The mean over conditions of the means over their runs."""
    known = grouped((each.run.key, each.values[outcome]) for each in side if outcome in each.values)
    some = [fmean(values) for values in known.values()]
    if lost is not None:
        some += [lost] * len({each.run.key for each in side}.difference(known))
    return fmean(some) if some else None


def observed(runs: Sequence[RunRecord], scores: Mapping[str, Mapping[tuple[str, str], float | None]]) -> list[Observed]:
    """What runs of one kind got: metrics, costs, and scores of judges as ``JUDGE.METRIC``; failed ones got nothing."""
    usable = EXPERIMENTS.get(runs[0].kind).usable
    everything = []
    for run in runs:
        judged = {".".join(name): value for name, value in scores.get(run.id, {}).items() if value is not None}
        values = {**judged, **run.metrics, **costs(run)} if run.status != "failed" else {}
        place = (run.origin,) if run.origin else ()
        everything.append(Observed(run, settings_of(run), values, place, bool(run.metrics.get(usable, 1))))
    return everything


def with_blocks(everything: Sequence[Observed]) -> list[Observed]:
    """Observations with continuations as blocks, if those of forks have too few data sets."""
    few = len({each.run.data_set for each in everything}) < FEWEST_TOLD
    return [replace(each, block=each.run.origin) if few and each.run.origin else each for each in everything]


COSTS: Final = ("dollars", "tokens", "seconds")


def costs(run: RunRecord) -> dict[str, float]:
    """What a run took: dollars of its pool (without one, of its bill), tokens and seconds."""
    dollars = run.budget["spent"] if run.budget else run.bill
    tokens = run.usage.input_tokens + run.usage.output_tokens
    return {**({} if dollars is None else {"dollars": float(dollars)}), "tokens": float(tokens), "seconds": run.seconds}


def players(runs: Runs, everything: Sequence[Observed]) -> list[Observed]:
    """What the models got that played in the same run; only they are compared."""
    told = EXPERIMENTS.get(everything[0].run.kind).players
    by_run = {each.run.id: each for each in everything}
    return [
        replace(
            by_run[player.run],
            settings={**by_run[player.run].settings, PLAYER: player.model},
            values=player.values,
            place=(player.run, player.place),
        )
        for player in (() if told is None else told(runs))
        if player.run in by_run and by_run[player.run].run.status != "failed"
    ]


def settings_of(run: RunRecord) -> dict[str, str]:
    """The parameters of a run's condition as texts; those of nested objects joined by dots, files by their names."""
    more = {STUDY: run.study, ORIGIN: run.fork_point.partition("@")[0]}
    row = flat_condition(run.kind, run.condition)
    texts = {name: _text(value) for name, value in row.items() if value is not None}
    return texts | {name: value for name, value in more.items() if value}


def _text(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def varying(observations: Sequence[Observed]) -> list[str]:
    """The parameters with several values that follow from no earlier one, but for data sets, prices and studies."""
    names = dict.fromkeys(name for each in observations for name in each.settings)
    told = [name for name in names if name.split(".")[0] not in _UNTOLD]
    columns = {name: [each.settings.get(name, NONE) for each in observations] for name in told}
    return [name for name in varying_columns(columns, [name for name in DATA if name in told]) if name not in DATA]


def factor_of(parameter: str, observations: Sequence[Observed]) -> Factor:
    """The levels of a parameter, in order of appearance, references last: they are subtracted.

    Raises
    ------
    UsageError
        If no run has the parameter.
    """
    names = dict.fromkeys(name for each in observations for name in each.settings)
    compared = [name for name in names if name == parameter or name.startswith(f"{parameter}.")]
    if not compared:
        raise unknown_name("parameter of these runs", parameter, names)

    def value(settings: Mapping[str, str]) -> str:
        return ", ".join(settings.get(name, NONE) for name in compared)

    groups = grouped((value(each.settings), each) for each in observations)
    ordered = sorted(groups, key=is_reference)
    return Factor(parameter, [Level(name, groups[name]) for name in ordered], frozenset(compared))


def factor_of_conditions(conditions: Sequence[str], observations: Sequence[Observed]) -> Factor:
    """Levels from conditions: ``[LABEL:]NAME=VALUE[,NAME!=VALUE…]``.

    Raises
    ------
    UsageError
        If a condition is malformed, unknown or has no runs, or a run belongs to two.
    """
    if len(conditions) < 2:
        raise UsageError("name at least two conditions, or compare the values of a parameter with --by")
    levels, compared, taken = [], set[str](), dict[str, str]()
    for text in conditions:
        label, tests = condition_parts(text)
        compared |= {name for name, _, _ in _tests(tests, observations)}
        some = chosen(tests, observations)
        for each in some:
            if taken.setdefault(each.run.id, text) != text:
                raise UsageError(f"run {each.run.id} matches '{taken[each.run.id]}' and '{text}'")
        levels.append(Level(label or text, some))
    for level in levels:
        if not level.observed:
            known = (f"{name}: {', '.join(_values(name, observations))}" for name in sorted(compared))
            raise TooFewRunsError(f"no run matches '{level.name}'; {'; '.join(known)}")
    return Factor("condition", levels, frozenset(compared))


def condition_parts(text: str) -> tuple[str, list[str]]:
    """The label of a condition, which may be empty, and its tests."""
    head, equals, value = text.partition("=")
    label, _, name = head.rpartition(":")
    return label, f"{name}{equals}{value}".split(",")


def _values(name: str, observations: Sequence[Observed]) -> Sequence[str]:
    return list(dict.fromkeys(each.settings.get(name, NONE) for each in observations))


def chosen(tests: Sequence[str], observations: Sequence[Observed]) -> list[Observed]:
    """The observations for which all of ``NAME=VALUE`` and ``NAME!=VALUE`` hold; a `UsageError` for other texts."""
    parsed = _tests(tests, observations)
    return [each for each in observations if _holds(parsed, each.settings)]


_Test = tuple[str, bool, str]
"""A parameter, whether it has the value, and the value."""


def _tests(parts: Sequence[str], observations: Sequence[Observed]) -> list[_Test]:
    known = dict.fromkeys(name for each in observations for name in each.settings)
    tests = []
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals:
            raise UsageError(f"a condition is NAME=VALUE, several joined by commas, not '{part}'")
        if name.removesuffix("!") not in known:
            raise unknown_name("parameter of these runs", name.removesuffix("!"), known)
        tests.append((name.removesuffix("!"), not name.endswith("!"), value))
    return tests


def _holds(tests: Sequence[_Test], settings: Mapping[str, str]) -> bool:
    return all((settings.get(name, NONE) == value) == is_equal for name, is_equal, value in tests)
