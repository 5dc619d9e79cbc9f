"""Tournaments of the iterated prisoner's dilemma from their record: matches, moves, answers, metrics.

A rate is the share of a player's moves that cooperate, as it chose them: noise may flip what is executed. The rate of a
tournament is the mean over its players. Only played rounds count: after a failed move nothing is played, and only the
failure counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from labmates.games.iterated.behaviour import Profile, profile
from labmates.games.iterated.match import Action, Match, Payoffs
from labmates.records.run import ENDED
from labmates.stats.validity import Tally, total, totals
from labmates.workflows.protocol.experiment import Outcome

if TYPE_CHECKING:
    from labmates.records.events import Event
    from labmates.records.run import RunRecord
    from labmates.records.store import Store
    from labmates.workflows.tournament.context import TournamentContext, TournamentState

_MATCH = TypeAdapter(Match)
_ASKED = ("move", "questions", "message", "introduction", "wishes")
Marked = Mapping[str, Mapping[str, Any]]
"""Answers of a player after a match: answer, truth and agreement by question."""


@dataclass(frozen=True)
class Tournament:
    """An ended tournament.

    Attributes
    ----------
    condition
        The condition of its run, as plain data.
    models
        The model of each player with calls.
    matches
        In the order of the schedule, including matches not played.
    answers
        A player and its answers, for each match.
    failures
        Tally of the decisions (moves, plans and so on) of each model.
    """

    condition: Mapping[str, Any]
    models: Mapping[str, str]
    matches: tuple[Match, ...]
    answers: tuple[tuple[str, Marked], ...]
    failures: Mapping[str, Tally]
    run_id: str = ""
    seed: int = 0

    @property
    def structure(self) -> str:
        """The arrangement of matches and goals: ``ri``, ``gc`` or ``sa``."""
        return str(self.condition["structure"])

    @cached_property
    def payoffs(self) -> Payoffs:
        """The payoffs of a round."""
        return Payoffs(*(self.condition[name] for name in ("temptation", "reward", "punishment", "sucker")))

    @cached_property
    def played(self) -> tuple[Match, ...]:
        """Matches of at least one round."""
        return tuple(match for match in self.matches if match.rounds)

    def of(self, player: str) -> list[Match]:
        """The played matches of a player, in order."""
        return [match for match in self.played if player in match.players]

    def moves(self, player: str, *, within_team: bool | None = None) -> list[Action]:
        """The chosen moves of a player, in order: all, or those in matches within its team or with other teams."""
        matches = (match for match in self.of(player) if within_team in (None, match.within_team))
        return [move for match in matches for move in match.chosen_by(player)]

    def first_moves(self, player: str) -> list[Action]:
        """A player's chosen moves in the first rounds of its matches, in order."""
        return [match.chosen_by(player)[0] for match in self.of(player)]

    def profile(self, players: Iterable[str]) -> Profile:
        """The joint behaviour of players."""
        played = [(match, player) for player in players for match in self.of(player)]
        return profile([(match.seen_by(player), match.chosen_by(player)) for match, player in played], self.payoffs)

    def mean(self, measure: Measure) -> float | None:
        """The mean of a measure over players; None without values."""
        values = [value for player in self.models if (value := measure(self, player)) is not None]
        return fmean(values) if values else None

    def metrics(self) -> dict[str, float]:
        """The metrics of the run by name, without those that had no occasion."""
        played, ends = self.played, Counter(match.end for match in self.matches)
        metrics: dict[str, float | None] = {
            **{name: self.mean(measure) for name, measure in MEASURES.items()},
            "rounds": sum(len(match.rounds) for match in played),
            "matches": len(played),
            "matches_not_played": ends["not_played"],
            "matches_left": ends["leave"],
            "matches_forfeited": ends["forfeit"],
            "failed_decision_rate": total(self.failures.values()).rate if self.failures else None,
        }
        if not self.condition.get("noise"):
            metrics["executed_cooperation"] = None
        if self.structure == "ri":  # without teams for players
            metrics["within_team_cooperation"] = metrics["between_team_cooperation"] = None
        return {name: value for name, value in metrics.items() if value is not None}


Measure = Callable[[Tournament, str], float | None]
"""A measure of a player; None without an occasion."""


def answered(question: str | None) -> Measure:
    """The measure of the share of right answers to a question; None means all questions."""

    def measure(tournament: Tournament, player: str) -> float | None:
        marks = [
            bool(row["right"])
            for name, rows in tournament.answers
            if name == player
            for key, row in rows.items()
            if question in (None, key) and row["right"] is not None
        ]
        return fmean(marks) if marks else None

    return measure


def _points_per_round(tournament: Tournament, player: str) -> float | None:
    rounds = [both for match in tournament.of(player) for both in match.seen_by(player)]
    return tournament.payoffs.total(rounds) / len(rounds) if rounds else None


MEASURES: Mapping[str, Measure] = {
    "cooperation": lambda tournament, player: rate(tournament.moves(player)),
    "executed_cooperation": lambda tournament, player: rate(
        [own for match in tournament.of(player) for own, _ in match.seen_by(player)]
    ),
    "one_shot_cooperation": lambda tournament, player: rate(tournament.first_moves(player)),
    "within_team_cooperation": lambda tournament, player: rate(tournament.moves(player, within_team=True)),
    "between_team_cooperation": lambda tournament, player: rate(tournament.moves(player, within_team=False)),
    "comprehension": answered(None),
    "points_per_round": _points_per_round,
}
"""The measures whose mean over players is the metric of this name."""


@dataclass(frozen=True)
class Standing:
    """The result of a player and its team.

    Attributes
    ----------
    team_points
        The sum of points over its team.
    wins, team_wins
        Whether no player, or no team, has more points; None for structures without teams.
    """

    player: str
    team: str
    model: str
    matches: int
    rounds: int
    points: int
    cooperation: float | None
    team_points: int
    wins: bool
    team_wins: bool | None


def standings(tournament: Tournament) -> list[Standing]:
    """The standings of all players, the most points first."""
    teams = {
        player: team for match in tournament.matches for player, team in zip(match.players, match.teams, strict=True)
    }
    points = {
        player: sum(tournament.payoffs.total(match.seen_by(player)) for match in tournament.of(player))
        for player in teams
    }
    of_teams = Counter[str]()
    for player, team in teams.items():
        of_teams[team] += points[player]
    model_for: Mapping[str, str] = tournament.condition.get("model_for", {})
    rows = [
        Standing(
            player,
            team,
            model_for.get(player, model_for.get(team, tournament.condition["model"])),
            len(tournament.of(player)),
            len(tournament.moves(player)),
            points[player],
            rate(tournament.moves(player)),
            of_teams[team],
            points[player] == max(points.values()),
            None if tournament.structure == "ri" else of_teams[team] == max(of_teams.values()),
        )
        for player, team in teams.items()
    ]
    return sorted(rows, key=lambda standing: (-standing.points, standing.player))


def rate(actions: Sequence[Action]) -> float | None:
    """The share of moves that cooperate; None without moves."""
    return actions.count("C") / len(actions) if actions else None


def tournament_of(
    condition: Mapping[str, Any], events: Iterable[Event], *, run_id: str = "", seed: int = 0
) -> Tournament:
    """The tournament in a record."""
    matches, answers = [], []
    models: dict[str, str] = {}
    asked, failed = Counter[str](), Counter[str]()
    for event in events:
        if event.type == "payoff" and event.round == 0:
            matches.append(_MATCH.validate_python(event.details))
        elif event.type == "decision" and event.agent:
            failed[event.agent] += event.failed
            asked[event.agent] += event.stage in _ASKED
            if event.stage == "questions":
                answers.append((int(event.match.removeprefix("match ")), event.agent, event.decision))
        elif event.type == "llm_call":
            models[event.agent] = event.model
            asked[event.agent] += _is_first_of_planning(event.step)
    each = ((models.get(player, player), Tally(number, failed[player])) for player, number in asked.items())
    ordered = sorted(answers, key=lambda answer: answer[:2])
    return Tournament(
        condition,
        models,
        tuple(sorted(matches, key=lambda match: match.number)),
        tuple((player, rows) for _, player, rows in ordered),
        totals(each),
        run_id,
        seed,
    )


def tournaments(store: Store, runs: Sequence[RunRecord]) -> list[Tournament]:
    """The ended tournaments among runs."""
    return [
        tournament_of(run.condition, store.events(run.id), run_id=run.id, seed=run.seed)
        for run in runs
        if run.kind == "tournament" and run.status in ENDED
    ]


def _is_first_of_planning(step: str) -> bool:
    """Whether a call was the first, before repair turns, for a plan, a critique or an improved plan."""
    parts = step.split("/")
    return len(parts) == 6 and parts[3] in ("plan", "critique", "improved plan") and parts[5] == "0"


def outcome(_state: TournamentState, ctx: TournamentContext) -> Outcome:
    """The outcome of an ended tournament."""
    played = tournament_of(ctx.condition.model_dump(), ctx.table.recorder.events)
    return Outcome("completed", played.metrics(), _invalid(played))


def _invalid(tournament: Tournament) -> str | None:
    """Why a tournament is invalid: no round was played, or a model made no usable decision.

    A failed move is not replaced, so single failures do not distort the results.
    """
    if not tournament.played:
        return "no round was played"
    silent = [model for model, tally in tournament.failures.items() if tally.failed == tally.asked]
    return f"all decisions of {', '.join(silent)} failed" if silent else None
