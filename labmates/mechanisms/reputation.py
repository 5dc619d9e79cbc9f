"""Reputation: co-players change in every round, but their past actions are known.

Indirect reciprocity; CoopEval, section 3.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from labmates.errors import UsageError
from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import Play, Result, Seats, Then
from labmates.mechanisms.norms import Deed, Past
from labmates.mechanisms.play import side_by_side
from labmates.mechanisms.repetition import Repeated
from labmates.mechanisms.wording import Acquaintance, Encounter
from labmates.util.seeds import derive


class Reputation(Repeated):
    """New co-players in every round, with knowledge of their past."""

    name: ClassVar[str] = "reputation"
    title: ClassVar[str] = "Reputation"
    summary: ClassVar[str] = (
        "Co-players change in every round. Everybody sees the last matches of its co-players; with order 3 also those "
        "of the ones with whom these had played, and so on."
    )
    seats_itself: ClassVar[bool] = True

    order: Literal[1, 3] = Field(
        1, description="1: the matches of co-players are shown; 3: also those of their co-players, and so on."
    )
    pairing: Literal["uniform", "fixed-seats"] = Field(
        "uniform",
        description="Who meets whom: any agents that fit the seats; or each agent keeps one seat (as published).",
    )

    def rules(self, game: NormalForm) -> str:
        """The rule on further rounds and on knowledge of others."""
        more = (
            " You also see earlier matches of the players whom your co-players met, and so on."
            if self.order == 3
            else ""
        )
        place = (
            "Your position in the game is also drawn at random: you may have another player number in the next round."
            if self._draws_places(game)
            else "Every agent keeps its position in the game."
        )
        return (
            "The game is played round after round in a population of agents, and in every round your co-players are "
            f"drawn at random from the other agents. {place} After each round, another one follows with a "
            f"probability of {self.percent}. You are shown the matches of at most the last {self.memory} rounds in "
            "which you or your co-players took part: each player's choice and points. Others will see yours."
            f"{more} Your points from all rounds are added up."
        )

    def play(self, game: NormalForm, seats: Seats, then: Then) -> Play:
        """Play the rounds with all agents."""
        if len(seats.agents) % game.players:
            raise UsageError(f"{len(seats.agents)} agents can't all play in groups of {game.players}")
        totals = {agent: [0.0, 0.0] for agent in seats.agents}
        deeds: dict[int, str] = {}
        history: list[list[Encounter]] = []
        names = {agent: f"agent {agent + 1}" for agent in seats.agents}
        for number, weight in enumerate(self.weights(), start=1):
            groups = [
                self._seated(game, seats, group, history, names, number, weight * seats.weight)
                for group in self._groups(game, seats, number)
            ]
            results = yield from side_by_side([then(game, group) for group in groups])
            history.insert(0, [_record(*both, names) for both in zip(groups, results, strict=True)])
            for group, result in zip(groups, results, strict=True):
                for place, agent in enumerate(group.agents):
                    totals[agent][0] += weight * result.payoffs[place]
                    totals[agent][1] += weight * result.expected[place]
                    deeds[agent] = result.deeds[place]
        return Result(
            tuple(totals[agent][0] for agent in seats.agents),
            tuple(totals[agent][1] for agent in seats.agents),
            tuple(deeds[agent] for agent in seats.agents),
        )

    def _draws_places(self, game: NormalForm) -> bool:
        return self.pairing == "uniform" and game.is_symmetric

    def _groups(self, game: NormalForm, seats: Seats, number: int) -> list[list[int]]:
        """The random groups of a round."""
        rng = random.Random(derive(seats.seed, "pairing", number))
        if self._draws_places(game):
            pool = list(seats.agents)
            rng.shuffle(pool)
            return [pool[start : start + game.players] for start in range(0, len(pool), game.players)]
        by_seat = [
            [agent for agent, role in zip(seats.agents, seats.roles, strict=True) if role == seat]
            for seat in range(game.players)
        ]
        for pool in by_seat:
            rng.shuffle(pool)
        return [list(group) for group in zip(*by_seat, strict=True)]

    def _seated(
        self,
        game: NormalForm,
        seats: Seats,
        group: list[int],
        history: list[list[Encounter]],
        names: dict[int, str],
        number: int,
        weight: float,
    ) -> Seats:
        told, facts = [], []
        window = history[: self.memory]
        for seat, agent in enumerate(group):
            others = [other for other in group if other != agent]
            known = list(self._known(window, set() if seats.words.follows_own else {agent}, set(group)))
            knows = Acquaintance(group, seat, names, known, self.order, number - 1)
            told.append(seats.words.matches(game, knows))
            rounds = tuple(tuple(record.match for record in records) for records in known)
            facts.append({"past": Past(names[agent], tuple(names[other] for other in others), rounds)})
        fresh = replace(seats, agents=tuple(group), roles=tuple(range(game.players)), told=(), facts=())
        return fresh.telling(told, facts, step=f"{seats.step}{number}/{group[0] + 1}/", round=number, weight=weight)

    def _known(
        self, window: list[list[Encounter]], unfollowed: set[int], followed: set[int]
    ) -> Iterator[list[Encounter]]:
        """The matches that a player knows, by round, latest first.

        With order 3, co-players in known matches are followed further back, except those met only by `unfollowed`.
        """
        for records in window:
            seen = [record for record in records if not followed.isdisjoint(record.agents)]
            yield seen
            if self.order == 3:
                theirs = (record for record in seen if not (followed - unfollowed).isdisjoint(record.agents))
                followed = followed.union(*(record.agents for record in theirs))


def _record(group: Seats, result: Result, names: dict[int, str]) -> Encounter:
    match = tuple(
        Deed(names[agent], seat, deed)
        for agent, seat, deed in zip(group.agents, group.roles, result.deeds, strict=True)
    )
    return Encounter(group.agents, match, result.payoffs)
