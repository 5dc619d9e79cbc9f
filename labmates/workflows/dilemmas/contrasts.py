"""Contrasts: which mechanisms, wordings and models of social dilemmas differ, over equal games, models and seatings.

Levels of a factor are compared where all else is equal: the same game, models and seatings, and the same levels of the
other factors. Each such stratum counts alike; what is independent in it are the runs. Models are compared within each
run: in the same seat, against the same co-players. P values are adjusted (Holm) for all pairs of a factor.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Any, Final, Literal

from labmates.display_names import settings_apart
from labmates.stats.intervals import ANY, CORRELATION, Domain, Estimate, Sample, against_zero, combination, holm, pooled
from labmates.stats.validity import invalid
from labmates.workflows.dilemmas.records import CrossPlay, completed_settings, told_apart

Outcome = Literal["cooperation", "payoff"]
OUTCOMES: Final[Mapping[Outcome, Domain]] = {"cooperation": CORRELATION, "payoff": ANY}
"""Probability of the cooperative action, and normalised expected payoff; with the values that differences can take."""
MECHANISM, MODEL = "mechanism", "model"
_NO_FACTOR: Final = frozenset({"game", "mechanism", "terms", "entrants", "prices", "seating"})


@dataclass(frozen=True)
class Observed:
    """What one agent did and got in one match.

    Attributes
    ----------
    place
        Its seat, with the models of its co-players where these are fixed.
    values
        By outcome, as far as the game has it.
    """

    model: str
    place: Hashable
    values: Mapping[Outcome, float]


@dataclass(frozen=True)
class Run:
    """One cross-play as contrasts see it.

    Attributes
    ----------
    same
        Game, models and seating: never compared across.
    levels
        By factor.
    """

    same: Hashable
    game: str
    levels: Mapping[str, str]
    observed: tuple[Observed, ...]


@dataclass(frozen=True)
class Contrast:
    """The difference between two levels of a factor: `first` minus `second`.

    Attributes
    ----------
    strata
        How many equal conditions it is the mean over.
    p, p_holm
        Two-sided; None where there is no interval.
    """

    factor: str
    outcome: Outcome
    first: str
    second: str
    strata: int
    difference: Estimate
    p: float | None
    p_holm: float | None = None


def observed_runs(conditions: Sequence[Mapping[str, Any]], plays: Sequence[CrossPlay]) -> list[Run]:
    """The runs to compare, without models of which too many decisions failed.

    Parameters
    ----------
    conditions
        The condition of each play, as JSON data.
    """
    complete = [completed_settings(condition) for condition in conditions]
    mechanisms = told_apart(
        [{name: one.get(name) for name in ("mechanism", "terms") if name in one} for one in complete]
    )
    others = [{name: value for name, value in one.items() if name not in _NO_FACTOR} for one in complete]
    factors = settings_apart(others)
    out = {play.models: set[str]() for play in plays}
    for play in plays:
        out[play.models].update(invalid(play.failures))
    return [
        Run(
            (play.game, play.models, condition["seating"]),
            play.game,
            {MECHANISM: mechanism, **{name: str(other.get(name)) for name in factors}},
            tuple(_observed(play.without(out[play.models]))),
        )
        for condition, play, mechanism, other in zip(complete, plays, mechanisms, others, strict=True)
    ]


def contrasts(runs: Sequence[Run]) -> list[Contrast]:
    """All contrasts of each factor that has two levels or more, models included."""
    factors = [name for name in runs[0].levels if len({run.levels[name] for run in runs}) > 1] if runs else []
    found: list[Contrast] = []
    for outcome in OUTCOMES:
        for factor in factors:
            found += _adjusted(_of_factor(runs, factor, outcome))
        found += _adjusted(_of_models(runs, outcome))
    return found


def _observed(play: CrossPlay) -> Iterator[Observed]:
    scale = play.scale
    cooperation = _cooperation(play)
    seats = {(one.match, agent): (seat, one.entrants) for one in play.rounds for seat, agent in enumerate(one.agents)}
    for who, (entrant, payoff) in play.totals("expected").items():
        values: dict[Outcome, float] = {}
        if who in cooperation:
            values["cooperation"] = fmean(cooperation[who])
        if scale is not None:
            values["payoff"] = (payoff - scale.defect) / (scale.cooperate - scale.defect)
        seat, entrants = seats[who]
        others = (*entrants[:seat], *entrants[seat + 1 :]) if play.has_metagame else ()
        yield Observed(play.models[entrant], (seat, others), values)


def _cooperation(play: CrossPlay) -> dict[tuple[str, int], list[float]]:
    """How likely each agent of each match takes the cooperative action, in each round that it decided itself."""
    found: dict[tuple[str, int], list[float]] = {}
    for one in play.rounds:
        for seat, likely in enumerate(play.cooperation(one)):
            if not one.failed[seat]:
                found.setdefault((one.match, one.agents[seat]), []).append(likely)
    return found


def _of_factor(runs: Sequence[Run], factor: str, outcome: Outcome) -> Iterator[Contrast]:
    values: dict[tuple[Hashable, str], list[float]] = {}
    for run in runs:
        if measured := [one.values[outcome] for one in run.observed if outcome in one.values]:
            stratum = (run.same, *(level for name, level in run.levels.items() if name != factor))
            values.setdefault((stratum, run.levels[factor]), []).append(fmean(measured))
    cells = _cells(values)
    levels = dict.fromkeys(level for _, level in cells)
    strata = dict.fromkeys(stratum for stratum, _ in cells)
    for second, first in combinations(levels, 2):
        both = [stratum for stratum in strata if {(stratum, first), (stratum, second)} <= cells.keys()]
        parts = [
            (sign / len(both), cells[stratum, level]) for stratum in both for level, sign in ((first, 1), (second, -1))
        ]
        if parts:
            yield _contrast(factor, outcome, first, second, parts)


def _of_models(runs: Sequence[Run], outcome: Outcome) -> Iterator[Contrast]:
    values: dict[tuple[Hashable, tuple[str, str]], list[float]] = {}
    for run in runs:
        by_place: dict[str, dict[Hashable, list[float]]] = {}
        for one in run.observed:
            if outcome in one.values:
                by_place.setdefault(one.model, {}).setdefault(one.place, []).append(one.values[outcome])
        for second, first in combinations(by_place, 2):
            shared = by_place[first].keys() & by_place[second].keys()
            gains = [fmean(by_place[first][place]) - fmean(by_place[second][place]) for place in shared]
            if gains:
                stratum = (run.same, *run.levels.values())
                values.setdefault((stratum, (first, second)), []).append(fmean(sorted(gains)))
    cells = _cells(values)
    for first, second in dict.fromkeys(pair for _, pair in cells):
        own = [cell for (_, pair), cell in cells.items() if pair == (first, second)]
        yield _contrast(MODEL, outcome, first, second, [(1 / len(own), cell) for cell in own])


def _cells(values: Mapping[tuple[Hashable, Any], Sequence[float]]) -> dict[tuple[Hashable, Any], Sample]:
    """Samples of runs, their variances pooled over the design."""
    return dict(zip(values, pooled([Sample.of(some, ANY) for some in values.values()]), strict=True))


def _contrast(
    factor: str, outcome: Outcome, first: str, second: str, parts: Sequence[tuple[float, Sample]]
) -> Contrast:
    domain = OUTCOMES[outcome]
    difference = combination(parts, domain)
    strata = sum(weight > 0 for weight, _ in parts)
    return Contrast(factor, outcome, first, second, strata, difference, against_zero(difference, domain))


def _adjusted(found: Iterable[Contrast]) -> list[Contrast]:
    all_ = list(found)
    return [replace(one, p_holm=adjusted) for one, adjusted in zip(all_, holm([one.p for one in all_]), strict=True)]
