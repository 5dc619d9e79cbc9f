"""Seats of an environment and their payoffs, by kind of experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

import numpy as np

from labmates.errors import UsageError, unknown_name
from labmates.mechanisms.play import calls_of
from labmates.records.events import DecisionEvent, PayoffEvent
from labmates.workflows.dilemmas.condition import DilemmaCondition
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.protocol.experiment import Condition, make_condition
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates.workflows.tournament.condition import TournamentCondition
from labmates_gym.playing import POLICY, Episode, Played, Question

Payoffs = dict[str, float]


@dataclass(frozen=True)
class Kind:
    """What an environment needs to know of a kind of experiment.

    Attributes
    ----------
    seats
        The seats of all players with their models, in order.
    payoffs
        Each player's payoff in an ended episode; their sum is the welfare.
    defaults
        Values of the condition where none are given.
    seat
        The seat of a question.
    without
        The welfare of an ended episode if a seat had no replies, by the rules alone; None if the episode has to be
        played again.
    """

    seats: Callable[[Any], Mapping[str, str]]
    payoffs: Callable[[Any, Played], Payoffs]
    defaults: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda _: {"model": POLICY}
    seat: Callable[[Question], str] = lambda question: question.agent
    without: Callable[[Any, Played, str], float] | None = None


def _paid(played: Played) -> Iterator[PayoffEvent]:
    return (event for event in played.events if isinstance(event, PayoffEvent))


def _game_seats(condition: GameCondition) -> Mapping[str, str]:
    return {player: condition.model_of(group, player) for group, player in condition.seats()}


def _game_payoffs(condition: GameCondition, played: Played) -> Payoffs:
    """Payoffs of all rounds, times the probability that players keep them."""
    *rounds, end = _paid(played)
    chance = end.details.get("kept_with_probability", 1.0)
    return {player: chance * sum(event.payoffs[player] for event in rounds) for _, player in condition.seats()}


def _game_without(condition: GameCondition, played: Played, seat: str) -> float:
    """The welfare of the decisions made, but for the game's default and no tokens by one player."""
    game, players = condition.make_game(), [player for _, player in condition.seats()]
    size = game.group_size
    decisions = np.tile(game.default_decision, (game.rounds, game.groups, size, 1))
    tokens = np.zeros((game.rounds, game.groups, size, size), dtype=int)
    for event in played.events:
        if not isinstance(event, DecisionEvent) or event.agent == seat:
            continue
        group, member = divmod(players.index(event.agent), size)
        if event.stage == "decide":
            decisions[event.round - 1, group, member] = list(event.decision.values())
        else:
            for name, number in event.decision.items():
                tokens[event.round - 1, group, member, players.index(name) % size] = number
    payoffs = game.payoffs(decisions)
    paid = game.sanctioned(payoffs, tokens) if game.sanction_limit else payoffs
    return float(np.sum(paid)) * float(game.keeps(decisions))


def _dilemma_defaults(given: Mapping[str, Any]) -> dict[str, Any]:
    """One model on all seats; two where the mechanism makes a population of them."""
    from labmates.mechanisms.registry import make_mechanisms, split_terms

    name, terms = split_terms(given.get("mechanism", "none"))
    outer = make_mechanisms(name, {**terms, **given.get("terms", {})})[0]
    return {"entrants": [POLICY] * (1 + outer.seats_itself), "reasoning": "none"}


def _dilemma_seats(condition: DilemmaCondition) -> Mapping[str, str]:
    mechanisms, game = condition.mechanisms(), condition.make_game()
    populates = mechanisms[0].seats_itself
    if set(condition.models()) != {POLICY} or (len(condition.entrants) > 1 and not populates):
        raise UsageError(f"entrants: an environment plays one match of {POLICY} with itself; leave entrants out")
    if populates and calls_of(mechanisms, game).shared:
        raise UsageError(f"terms: proposals: {condition.mechanism} takes proposals of every match; leave proposals out")
    return {str(agent + 1): POLICY for agent in range(len(condition.entrants) * game.players)}


def _dilemma_payoffs(condition: DilemmaCondition, played: Played) -> Payoffs:
    """Expected payoffs, by the weights of the rounds."""
    payoffs = dict.fromkeys(_dilemma_seats(condition), 0.0)
    for event in _paid(played):
        for agent, payoff in zip(event.details["agents"], event.details["expected"], strict=True):
            payoffs[str(agent)] += event.details["weight"] * payoff
    return payoffs


def _tournament_payoffs(condition: TournamentCondition, played: Played) -> Payoffs:
    """The points that count: a player's own (ri), its team's mean (gc), or the mean of both (sa)."""
    own = dict.fromkeys(condition.players, 0.0)
    for event in _paid(played):
        if event.step.endswith("/end"):
            for player, points in event.payoffs.items():
                own[player] += points
    share = {"ri": 1.0, "gc": 0.0, "sa": 0.5}[condition.structure]
    team = {name: fmean(own[player] for player in players) for name, players in condition.players_of.items()}
    return {player: share * own[player] + (1 - share) * team[condition.players[player]] for player in own}


def _lab_seats(condition: ScienceCondition) -> Mapping[str, str]:
    return {seat: condition.model_of(seat) for team in condition.teams for seat in team.seats}


def _lab_payoffs(condition: ScienceCondition, played: Played) -> Payoffs:
    """Equal shares of the accuracy of the lab's findings."""
    seats = _lab_seats(condition)
    return dict.fromkeys(seats, played.outcome.metrics.get("accuracy", 0.0) / len(seats))


KINDS: Final[Mapping[str, Kind]] = {
    "dilemma": Kind(
        _dilemma_seats,
        _dilemma_payoffs,
        _dilemma_defaults,
        # One model sits on all seats; the step ends with the seat and the number of the call.
        lambda question: question.step.split("/")[-2],
    ),
    "game": Kind(_game_seats, _game_payoffs, without=_game_without),
    "science": Kind(_lab_seats, _lab_payoffs),
    "tournament": Kind(
        lambda condition: {name: condition.model_of(name) for name in condition.players}, _tournament_payoffs
    ),
}
"""Kinds of experiments that are environments."""


@dataclass(frozen=True)
class Table:
    """A condition with the seats that the policy plays."""

    kind: Kind
    condition: Condition
    seats: tuple[str, ...]

    @classmethod
    def of(cls, kind: str, values: Mapping[str, Any]) -> Table:
        """The table of a kind of experiment with these values of its condition.

        Raises
        ------
        UsageError
            If the kind is unknown or makes no environment, or a value is invalid.
        """
        if kind not in KINDS:
            raise unknown_name("kind of environment", kind, KINDS)
        known = KINDS[kind]
        condition = make_condition(kind, {**known.defaults(values), **values})
        condition.check()
        seats = tuple(seat for seat, model in known.seats(condition).items() if model == POLICY)
        if not seats:
            raise UsageError(f"model: no seat is played by the policy; give {POLICY} to one, or leave the models out")
        return cls(known, condition, seats)

    def payoffs(self, played: Played) -> Payoffs:
        """Each player's payoff in an ended episode, also of players that other models play."""
        return self.kind.payoffs(self.condition, played)

    def welfare(self, played: Played) -> float:
        """The payoff of all players."""
        return sum(self.payoffs(played).values())

    def welfare_without(self, seat: str, episode: Episode, played: Played) -> float:
        """The payoff of all players in an ended episode if a seat had no replies.

        The engine's fallbacks act for that seat, and the others don't react.
        """
        if self.kind.without is not None:
            return self.kind.without(self.condition, played, seat)
        return self.welfare(episode.without(lambda question: self.kind.seat(question) == seat))

    def asked(self, questions: Sequence[Question]) -> dict[str, Question]:
        """The first open question of each seat."""
        first: dict[str, Question] = {}
        for question in questions:
            first.setdefault(self.kind.seat(question), question)
        return first
