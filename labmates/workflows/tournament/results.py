"""Tournaments of the iterated prisoner's dilemma, read from the record: matches, moves, answers, metrics.

A rate is the share of moves that cooperate. Rates of players and of tournaments are made of what was really played:
where no usable move was given nothing was played, and nothing is counted but the failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any

from labmates.games.iterated.behaviour import Profile, profile
from labmates.games.iterated.match import Action, Match, Payoffs
from labmates.records.run import ENDED
from labmates.stats.validity import Tally, total
from labmates.workflows.experiment import Outcome

if TYPE_CHECKING:
    from labmates.records.events import Event
    from labmates.records.run import RunRecord
    from labmates.records.store import Store
    from labmates.workflows.tournament.context import TournamentContext, TournamentState

_ASKED = ("move", "questions", "message", "introduction", "wishes")
Marked = Mapping[str, Mapping[str, Any]]
"""Answers of one player after one match: question to answer, truth, and whether they agree."""


@dataclass(frozen=True)
class Tournament:
    """One tournament that has ended.

    Attributes
    ----------
    condition
        The condition of its run, as plain data.
    models
        The model of each player that was asked anything.
    matches
        In the order of the schedule, those not played included.
    answers
        Player, and its answers, of each match.
    failures
        By model: how often its players were asked for a move, plan and so on, and how often they gave no valid answer.
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
        """The matches of at least one round of a player, in the order in which it played them."""
        return [match for match in self.played if player in match.players]

    def moves(self, player: str) -> list[Action]:
        """All moves of a player, in order."""
        return [own for match in self.of(player) for own, _ in match.seen_by(player)]

    def first_moves(self, player: str) -> list[Action]:
        """A player's moves in the first rounds of its matches, in order."""
        return [match.seen_by(player)[0][0] for match in self.of(player)]

    def profile(self, players: Iterable[str]) -> Profile:
        """The behaviour of players, taken together."""
        return profile((match.seen_by(player) for player in players for match in self.of(player)), self.payoffs)

    def cooperation(self, matches: Sequence[Match]) -> float | None:
        """The rate of cooperation over matches; None if there was no round."""
        return rate([action for match in matches for both in match.rounds for action in both])

    def metrics(self) -> dict[str, float]:
        """The metrics of the run by name; what there was no occasion for is left out."""
        played, ends = self.played, Counter(match.end for match in self.matches)
        rounds = sum(len(match.rounds) for match in played)
        points = sum(self.payoffs.total(match.seen_by(player)) for match in played for player in match.players)
        right = [one["right"] for _, rows in self.answers for one in rows.values() if one["right"] is not None]
        metrics: dict[str, float | None] = {
            "cooperation": self.cooperation(played),
            "one_shot_cooperation": rate([action for match in played for action in match.rounds[0]]),
            "within_team_cooperation": self.cooperation([match for match in played if match.within_team]),
            "between_team_cooperation": self.cooperation([match for match in played if not match.within_team]),
            "comprehension": fmean(right) if right else None,
            "points_per_round": points / (2 * rounds) if rounds else None,
            "rounds": rounds,
            "matches": len(played),
            "matches_not_played": ends["not_played"],
            "matches_left": ends["leave"],
            "matches_forfeited": ends["forfeit"],
            "failed_decision_rate": total(self.failures).rate if self.failures else None,
        }
        if self.structure == "ri":  # Players don't know about teams.
            metrics["within_team_cooperation"] = metrics["between_team_cooperation"] = None
        return {name: value for name, value in metrics.items() if value is not None}


@dataclass(frozen=True)
class Standing:
    """The result of a player and its team.

    Attributes
    ----------
    team_points
        The sum of the points of all players of its team.
    wins, team_wins
        Whether nobody has more points, and whether no team has; None for teams where nobody knows of them.
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
    own: Mapping[str, str] = tournament.condition.get("model_for", {})
    made = [
        Standing(
            player,
            team,
            own.get(player, own.get(team, tournament.condition["model"])),
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
    return sorted(made, key=lambda one: (-one.points, one.player))


def rate(actions: Sequence[Action]) -> float | None:
    """The share of moves that cooperate; None if there are none."""
    return actions.count("C") / len(actions) if actions else None


def tournament_of(
    condition: Mapping[str, Any], events: Iterable[Event], *, run_id: str = "", seed: int = 0
) -> Tournament:
    """A tournament out of its record."""
    matches, answers = [], []
    models: dict[str, str] = {}
    asked, failed = Counter[str](), Counter[str]()
    for event in events:
        if event.type == "payoff" and event.round == 0:
            matches.append(_match(event.details))
        elif event.type == "decision" and event.agent:
            failed[event.agent] += event.failed
            asked[event.agent] += event.stage in _ASKED
            if event.stage == "questions":
                answers.append((int(event.match.removeprefix("match ")), event.agent, event.decision))
        elif event.type == "llm_call":
            models[event.agent] = event.model
            asked[event.agent] += _is_first_of_planning(event.step)
    failures: dict[str, Tally] = {}
    for player, number in asked.items():
        model = models.get(player, player)
        failures[model] = failures.get(model, Tally(0, 0)) + Tally(number, failed[player])
    ordered = sorted(answers, key=lambda one: one[:2])
    return Tournament(
        condition,
        models,
        tuple(sorted(matches, key=lambda match: match.number)),
        tuple((player, rows) for _, player, rows in ordered),
        failures,
        run_id,
        seed,
    )


def tournaments(store: Store, runs: Sequence[RunRecord]) -> list[Tournament]:
    """The tournaments among runs that have ended."""
    return [
        tournament_of(run.condition, store.events(run.id), run_id=run.id, seed=run.seed)
        for run in runs
        if run.kind == "tournament" and run.status in ENDED
    ]


def _match(details: Mapping[str, Any]) -> Match:
    first, second = details["players"]
    one, other = details["teams"]
    rounds = tuple((own, theirs) for own, theirs in details["rounds"])
    return Match(details["number"], (first, second), (one, other), rounds, details["end"], tuple(details["by"]))


def _is_first_of_planning(step: str) -> bool:
    """Whether a call was the first for a plan, a critique or an improved plan, and no repair turn of one."""
    parts = step.split("/")
    return len(parts) == 6 and parts[3] in ("plan", "critique", "improved plan") and parts[5] == "0"


def outcome(state: TournamentState, ctx: TournamentContext) -> Outcome:
    """The outcome of a tournament that has ended."""
    del state
    played = tournament_of(ctx.condition.model_dump(), ctx.table.recorder.events)
    return Outcome("completed", played.metrics(), _invalid(played))


def _invalid(tournament: Tournament) -> str | None:
    """The reason why a tournament is invalid: nothing was played, or a model gave no usable decision.

    Nothing is played instead of a failed move, so that single failures do no harm.
    """
    if not tournament.played:
        return "no round was played"
    silent = [model for model, tally in tournament.failures.items() if tally.failed == tally.asked]
    return f"all decisions of {', '.join(silent)} failed" if silent else None
