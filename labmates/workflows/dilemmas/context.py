"""The context of a dilemma's graph: matches, players, and calls."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import Mechanism, Negotiated, Play, Played, Question, Seats
from labmates.mechanisms.play import around
from labmates.mechanisms.wording import Answer
from labmates.records.events import DecisionEvent, Event, PayoffEvent
from labmates.records.recorder import Recorder
from labmates.util.seeds import derive
from labmates.workflows.calls.call import Speaker
from labmates.workflows.dilemmas.briefs import Briefing, form_of
from labmates.workflows.dilemmas.condition import DilemmaCondition
from labmates.workflows.dilemmas.records import AGREEMENT
from labmates.workflows.play.playing import Table
from labmates.workflows.protocol.services import Services

EVERYBODY = "all"
"""Name of the single match of a mechanism that assigns seats."""
_Key = tuple[int, int, str, str]
"""Entrant, seat, shared name and stage of a question."""


@dataclass(frozen=True)
class Match:
    """A match, led by its mechanism."""

    name: str
    entrants: tuple[int, ...]  # the entrant of each agent
    play: Play
    log: list[Played | Negotiated]  # plays and negotiations so far

    def advance(self, answers: list[Answer]) -> list[Question]:
        """The next open questions after these answers; empty if the match has ended."""
        try:
            return self.play.send(answers) if answers else next(self.play)
        except StopIteration:
            return []


@dataclass
class DilemmaContext:
    """The context of one run."""

    condition: DilemmaCondition
    services: Services
    _shared: dict[_Key, asyncio.Future[Answer]] = field(default_factory=dict)

    @property
    def recorder(self) -> Recorder:
        """The recorder of events."""
        return self.services.recorder

    @cached_property
    def game(self) -> NormalForm:
        """The game."""
        return self.condition.make_game()

    @cached_property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """The mechanisms, the outermost first."""
        return self.condition.mechanisms()

    @cached_property
    def names(self) -> list[str]:
        """Unique names of the entrants."""
        return self.condition.names()

    @cached_property
    def matches(self) -> dict[str, Match]:
        """All matches by name."""
        return {match.name: match for match in self._make_matches(self.services.seed)}

    @cached_property
    def _briefing(self) -> Briefing:
        condition = self.condition
        return Briefing(
            condition.table,
            self.mechanisms,
            wording=condition.wording,
            ablation=condition.ablation,
            is_reversed=condition.reverses_options(self.services.seed),
        )

    @cached_property
    def _tables(self) -> list[Table]:
        places = range(len(self.condition.entrants))
        return [Table(_with(self.condition, place), self.services) for place in places]

    def shared_questions(self, opened: Mapping[str, Sequence[Question]]) -> Iterator[tuple[Match, Question]]:
        """The open questions that are shared by matches, each once."""
        seen = set()
        for name, questions in opened.items():
            match = self.matches[name]
            for question in questions:
                key = self._key(match, question)
                if question.shared and key not in seen:
                    seen.add(key)
                    yield match, question

    async def ask(self, match: Match, question: Question) -> Answer:
        """A player's answer, or its fallback without a usable one; shared questions are asked once for all matches.

        Raises `EndpointError` if the model is unreachable; `StoppedError` if the run should stop.
        """
        if not question.shared:
            return await self._ask(match, question)
        key = self._key(match, question)
        if key not in self._shared:
            self._shared[key] = asyncio.ensure_future(self._ask(match, question))
        return await self._shared[key]

    async def _ask(self, match: Match, question: Question) -> Answer:
        entrant = match.entrants[question.agent]
        if question.shared:
            step, team = f"once/{question.shared}/{question.stage}/{entrant + 1}/{question.seat + 1}", ""
        else:
            step, team = f"{match.name}/{question.step}/{question.agent + 1}", match.name
        speaker = Speaker(team, self.names[entrant], self.condition.entrants[entrant].model)
        reasoning = self.condition.entrants[entrant].reasoning or self.condition.reasoning
        sheet = self._briefing.sheet(question)
        decided = await self._tables[entrant].decide(
            step,
            speaker,
            self._briefing.ask(question, reasoning),
            form_of(sheet),
            name=f"{speaker.agent}, {step}",
            otherwise=f"Without a valid answer, this counts as yours: {json.dumps(sheet.fallback)}",
            reasoned=reasoning != "none",
        )
        answer = dict(question.sheet.fallback if decided is None else self._briefing.meant(decided.values))
        self.recorder.once(
            DecisionEvent(
                step=step,
                team=team,
                agent=speaker.agent,
                stage=question.stage,
                round=question.round,
                match=team,
                decision=answer,
                failed=decided is None,
            )
        )
        return answer

    def record(self, match: Match, start: int) -> None:
        """Record a match's log from an index on."""
        self.recorder.once(*(self._event(match, entry) for entry in match.log[start:]))

    def _event(self, match: Match, entry: Played | Negotiated) -> Event:
        entrants = [match.entrants[agent] for agent in entry.agents]
        where: dict[str, Any] = {"step": f"{match.name}/{entry.step}", "team": match.name, "match": match.name}
        if isinstance(entry, Negotiated):
            data = asdict(entry)
            agreed = {
                name: _plain(data[name]) for name in ("proposals", "stable", "votes", "winners", "tied", "signed")
            }
            decision = {"entrants": entrants, **agreed}
            return DecisionEvent(**where, round=entry.round, stage=AGREEMENT, decision=decision)
        return PayoffEvent(
            **where,
            round=entry.round,
            payoffs={str(seat + 1): payoff for seat, payoff in enumerate(entry.payoffs)},
            details={
                "entrants": entrants,
                "agents": [agent + 1 for agent in entry.agents],
                "actions": list(entry.actions),
                "mixes": [list(mix) for mix in entry.mixes],
                "expected": list(entry.expected),
                "weight": entry.weight,
            },
        )

    def _key(self, match: Match, question: Question) -> _Key:
        return match.entrants[question.agent], question.seat, question.shared, question.stage

    def _make_matches(self, seed: int) -> Iterator[Match]:
        players = self.game.players
        if self.mechanisms[0].seats_itself:
            # In random order, so that an agent's number, which all learn, does not tell its model.
            agents = [(place, seat) for place in range(len(self.names)) for seat in range(players)]
            random.Random(derive(seed, "agents")).shuffle(agents)
            entrants, roles = zip(*agents, strict=True)
            yield self._match(EVERYBODY, entrants, roles, seed)
            return
        for seating in self.condition.seatings():
            name = "-".join(str(place + 1) for place in seating)
            yield self._match(name, seating, tuple(range(players)), seed)

    def _match(self, name: str, entrants: Sequence[int], roles: tuple[int, ...], seed: int) -> Match:
        log: list[Played | Negotiated] = []
        agents = tuple(range(len(roles)))
        seats = Seats(agents, roles, derive(seed, "match", name), log=log, words=self._briefing.words)
        return Match(name, tuple(entrants), around(self.mechanisms)(self.game, seats), log)


def _with(condition: DilemmaCondition, place: int) -> DilemmaCondition:
    """The condition with the settings of one entrant."""
    settings = condition.entrants[place].model_dump(include={"temperature", "max_output_tokens"}, exclude_none=True)
    return condition.model_copy(update=settings)


def _plain(value: Any) -> Any:
    return [_plain(item) for item in value] if isinstance(value, tuple) else value
