"""The results of tournaments: rates with intervals, curves, comprehension, behaviour, and the two hypotheses.

Rates have two intervals. One is over players and replicates, as in the paper; it treats players of one tournament as
independent, which they are not. The other is over tournaments, which are independent.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, groupby
from statistics import fmean
from typing import Any

from labmates.games.iterated.match import Action
from labmates.games.iterated.questions import QUESTIONS
from labmates.stats.advantages import advantage
from labmates.stats.domains import SHARE
from labmates.stats.intervals import Estimate, mean
from labmates.stats.validity import Tally
from labmates.util.display_names import labels_apart
from labmates.workflows.tournament.results import MEASURES, Measure, Tournament, answered

STRUCTURES = {"ri": "repeated interaction", "gc": "group competition", "sa": "super-additive"}
_TOTAL = "rounds_per_player"
_FREE = ("structure", _TOTAL, "prices")
"""Fields in which compared tournaments may differ; a player's rounds follow from the structure."""


@dataclass(frozen=True)
class Rate:
    """A rate, as mean over players and replicates.

    Attributes
    ----------
    over_players
        The mean of all players, with an interval that treats them as independent.
    over_tournaments
        The mean of the tournaments' means.
    """

    over_players: Estimate
    over_tournaments: Estimate

    @property
    def value(self) -> float:
        """The mean over players."""
        return self.over_players.value


@dataclass(frozen=True)
class Point:
    """A point of a curve: the mean over players so far, with its interval over players and replicates."""

    at: int
    value: float
    players: int
    low: float | None
    high: float | None


@dataclass(frozen=True)
class PlayerProfile:
    """Behaviour of one player in one tournament."""

    run: str
    player: str
    rounds: int
    traits: Mapping[str, float | None]
    affinity: Mapping[str, float | None]


@dataclass(frozen=True)
class Group:
    """The players of one model in tournaments of one structure.

    Attributes
    ----------
    among
        All models in these tournaments.
    settings
        The other settings; includes a player's rounds if they vary within a structure.
    cooperation, one_shot, within, between
        Rates of all moves, of first moves, of moves in matches within and between teams; None without any.
    curve
        Cooperative share of a player's moves so far, by the number of rounds played (figure 2).
    one_shot_curve
        Cooperative share of its first moves so far, by the number of matches (figure 3).
    comprehension
        Share of right answers to all questions.
    questions
        Share of right answers by question.
    profiles
        Behaviour of each player.
    failures
        Tally of the decisions of the model's players.
    """

    structure: str
    model: str
    among: tuple[str, ...]
    settings: Mapping[str, Any]
    runs: tuple[str, ...]
    cooperation: Rate | None
    one_shot: Rate | None
    within: Rate | None
    between: Rate | None
    curve: tuple[Point, ...]
    one_shot_curve: tuple[Point, ...]
    comprehension: Rate | None
    questions: Mapping[str, Rate]
    profiles: tuple[PlayerProfile, ...]
    failures: Tally


@dataclass(frozen=True)
class Hypothesis:
    """A rate in super-additive tournaments against the larger of those in the two other structures.

    Attributes
    ----------
    name
        ``H1`` for cooperation, ``H2`` for one-shot cooperation.
    settings
        As in `Group`.
    rates
        Means of tournaments, by structure.
    difference
        Super-additive minus the larger of the others, over tournaments.
    p
        One-sided, by the same bootstrap, against the hypothesis of no advantage.
    reason
        Why there is no test; else empty.
    """

    name: str
    measure: str
    model: str
    among: tuple[str, ...]
    settings: Mapping[str, Any]
    rates: Mapping[str, float]
    tournaments: Mapping[str, int]
    difference: Estimate | None
    p: float | None
    reason: str = ""


@dataclass(frozen=True)
class Report:
    """All groups, and the hypotheses for each model and setting."""

    groups: tuple[Group, ...]
    hypotheses: tuple[Hypothesis, ...]


def labels_of(groups: Sequence[Group]) -> list[str]:
    """A label of each group, from the settings that differ and the models that it plays among."""
    return labels_apart(settings_by_group(groups), ("model", "model_for"))


def settings_by_group(groups: Sequence[Group] | Sequence[Hypothesis]) -> list[dict[str, Any]]:
    """The settings of groups or hypotheses, with the models that one plays among if these vary."""
    among: dict[str, set[tuple[str, ...]]] = {}
    for group in groups:
        among.setdefault(group.model, set()).add(group.among)
    varies = any(len(distinct) > 1 for distinct in among.values())
    return [{**({"among": group.among} if varies else {}), **group.settings} for group in groups]


def report(tournaments: Sequence[Tournament]) -> Report:
    """The results of tournaments by model, structure and settings."""
    groups: list[Group] = []
    hypotheses: list[Hypothesis] = []
    for same, free in _alike(tournaments):
        settings = {name: value for name, value in same[0].condition.items() if name not in free}
        among = tuple(dict.fromkeys(same[0].models.values()))
        for model in among:
            by_structure = {
                name: matching
                for name in STRUCTURES
                if (matching := [tournament for tournament in same if tournament.structure == name])
            }
            groups += [_group(name, model, among, settings, members) for name, members in by_structure.items()]
            hypotheses += [
                _hypothesis("H1", "cooperation", model, among, settings, by_structure, MEASURES["cooperation"]),
                _hypothesis(
                    "H2", "one-shot cooperation", model, among, settings, by_structure, MEASURES["one_shot_cooperation"]
                ),
            ]
    return Report(tuple(groups), tuple(hypotheses))


def rate_of(values: Sequence[Sequence[float]]) -> Rate | None:
    """A rate from the values of players, by tournament; None without values."""
    by_tournament = [list(players) for players in values if players]
    if not by_tournament:
        return None
    return Rate(mean([*chain(*by_tournament)], SHARE), mean([fmean(players) for players in by_tournament], SHARE))


def _values(tournaments: Sequence[Tournament], model: str, measure: Measure) -> list[list[float]]:
    by_tournament = ([measure(each, player) for player in _players(each, model)] for each in tournaments)
    return [[value for value in values if value is not None] for values in by_tournament]


def _players(tournament: Tournament, model: str) -> list[str]:
    return sorted(player for player, name in tournament.models.items() if name == model)


def _group(
    structure: str, model: str, among: tuple[str, ...], settings: Mapping[str, Any], members: Sequence[Tournament]
) -> Group:
    def rates(measure: Measure) -> Rate | None:
        return rate_of(_values(members, model, measure))

    by_question = {question: rates(answered(question)) for question in QUESTIONS}
    has_teams = structure != "ri"
    players = [(tournament, player) for tournament in members for player in _players(tournament, model)]
    profiles = ((tournament, player, tournament.profile([player])) for tournament, player in players)
    return Group(
        structure=structure,
        model=model,
        among=among,
        settings=settings,
        runs=tuple(tournament.run_id for tournament in members),
        cooperation=rates(MEASURES["cooperation"]),
        one_shot=rates(MEASURES["one_shot_cooperation"]),
        within=rates(MEASURES["within_team_cooperation"]) if has_teams else None,
        between=rates(MEASURES["between_team_cooperation"]) if has_teams else None,
        curve=_curve(tournament.moves(player) for tournament, player in players),
        one_shot_curve=_curve(tournament.first_moves(player) for tournament, player in players),
        comprehension=rates(MEASURES["comprehension"]),
        questions={question: rate for question, rate in by_question.items() if rate is not None},
        profiles=tuple(
            PlayerProfile(tournament.run_id, player, profile.rounds, profile.traits, profile.affinity)
            for tournament, player, profile in profiles
        ),
        failures=sum((tournament.failures.get(model, Tally(0, 0)) for tournament in members), Tally(0, 0)),
    )


def _curve(moves: Iterable[Sequence[Action]]) -> tuple[Point, ...]:
    """The mean over players of the cooperative share of their moves so far, move by move."""
    shares = [
        [count / number for number, count in enumerate(accumulate(int(move == "C") for move in own), start=1)]
        for own in moves
    ]
    points = []
    for at in range(1, max(map(len, shares), default=0) + 1):
        values = [own[at - 1] for own in shares if len(own) >= at]
        estimate = mean(values, SHARE)
        points.append(Point(at, estimate.value, estimate.n, estimate.low, estimate.high))
    return tuple(points)


def _hypothesis(
    name: str,
    measure: str,
    model: str,
    among: tuple[str, ...],
    settings: Mapping[str, Any],
    by_structure: Mapping[str, Sequence[Tournament]],
    of: Measure,
) -> Hypothesis:
    means = {
        structure: means_of_structure
        for structure, members in by_structure.items()
        if (means_of_structure := [fmean(values) for values in _values(members, model, of) if values])
    }
    rates = {structure: fmean(values) for structure, values in means.items()}
    counts = {structure: len(values) for structure, values in means.items()}
    if missing := [structure for structure in STRUCTURES if counts.get(structure, 0) < 2]:
        reason = f"needs at least two tournaments of each structure; too few of: {', '.join(missing)}"
        return Hypothesis(name, measure, model, among, settings, rates, counts, None, None, reason)
    gain = advantage(means["sa"], [means["ri"], means["gc"]], SHARE.difference())
    reason = "all tournaments of each structure are equal" if gain.p is None else ""
    return Hypothesis(name, measure, model, among, settings, rates, counts, gain.difference, gain.p, reason)


def _alike(
    tournaments: Sequence[Tournament], free: tuple[str, ...] = _FREE
) -> list[tuple[list[Tournament], tuple[str, ...]]]:
    """Groups of tournaments that differ only in these fields and the seed, with these fields."""

    def key(tournament: Tournament) -> str:
        return json.dumps({k: v for k, v in tournament.condition.items() if k not in free}, sort_keys=True, default=str)

    ordered = sorted(tournaments, key=lambda tournament: (key(tournament), tournament.structure, tournament.seed))
    groups: list[tuple[list[Tournament], tuple[str, ...]]] = []
    for same in (list(same) for _, same in groupby(ordered, key=key)):
        totals = {(tournament.structure, tournament.condition.get(_TOTAL)) for tournament in same}
        if _TOTAL in free and len(totals) > len({structure for structure, _ in totals}):
            # Rounds per player vary within a structure, so they were chosen.
            groups += _alike(same, tuple(name for name in free if name != _TOTAL))
        else:
            groups.append((same, free))
    return groups


def mean_profile(group: Group) -> dict[str, float | None]:
    """The mean over players of each trait and affinity, over players with an occasion for it."""
    totals: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    names: dict[str, None] = {}
    for profile in group.profiles:
        likeness = {f"like {name}": value for name, value in profile.affinity.items()}
        for name, value in {**profile.traits, **likeness}.items():
            names[name] = None
            if value is not None:
                totals[name] += value  # type: ignore[assignment]
                counts[name] += 1
    return {name: totals[name] / counts[name] if counts[name] else None for name in names}
