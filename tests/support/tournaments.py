"""Tournaments for tests: who plays them, and what they have left in the store."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labmates.agents.transcript import message_from_data, text_of
from labmates.api import arun
from labmates.models.scripted.base import Draft, Heard
from labmates.records.bodies import Bodies
from labmates.records.events import DecisionEvent, Event, LLMCallEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.workflows.tournament.players import Situation, answers, read
from labmates.workflows.tournament.results import Tournament, tournament_of
from tests.support.puppet import puppet

Answer = Callable[[Situation, Heard], str]


def reply(answer: Answer) -> Callable[[Heard], Draft]:
    """Return the play of a puppet that answers what a prompt of a tournament says."""

    def play(heard: Heard) -> Draft:
        return Draft(answer(read(heard), heard))

    return play


def move(name: str) -> str:
    """Return a move as a player writes it."""
    return json.dumps({"move": name, "reasoning": "for a test"})


def lively(said: Situation, heard: Heard) -> str:
    """Do everything that a player can do, by chance: leave, err, plan, and be right or wrong."""
    rng = random.Random(heard.seed)
    repaired = any(message.type == "ai" for message in heard.messages)
    if said.step == "questions":
        found = answers(said)
        return json.dumps({**found, "lowest": rng.randrange(-3, 3)})
    if said.step != "move":
        return f"{said.step} number {heard.seed}, after {len(said.rounds)} rounds"
    if rng.random() < 0.1 and not repaired:
        return "I can't decide."
    moves = ["action_a", "action_b"] * 4 + ["leave"] * bool(said.rounds)
    return move(rng.choice(moves))


@dataclass(frozen=True)
class Prompt:
    """One model call: the parts of its step's name, who was asked, with what, and the reply."""

    parts: tuple[str, ...]
    player: str
    text: str
    reply: str

    @property
    def number(self) -> int:
        """The match."""
        return int(self.parts[0])

    @property
    def stage(self) -> str:
        """``move``, ``plan``, ``critique``, ``improved plan`` or ``questions``."""
        return self.parts[2] if self.parts[2] == "questions" else self.parts[3]

    @property
    def round(self) -> int:
        """The round that comes; 0 after the match."""
        return 0 if self.stage == "questions" else int(self.parts[1])


class Arena:
    """Plays tournaments and gives access to what they recorded."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(f"sqlite:///{folder}/runs.db")

    async def play(self, play: Callable[[Heard], Draft] | None = None, **condition: Any) -> RunRecord:
        """Play one tournament, by a puppet if there is a play for it."""
        values = {"structure": "sa", **condition}
        if play is None:
            [run] = await arun("tournament", store=self.store.url, **values)
            return run
        with puppet(play) as model:
            [run] = await arun("tournament", store=self.store.url, **{"model": model, **values})
        return run

    def events(self, run: RunRecord) -> list[Event]:
        """Return what is recorded of a run."""
        return list(self.store.events(run.id))

    def found(self, run: RunRecord) -> Tournament:
        """Return the tournament as it is analysed."""
        return tournament_of(run.condition, self.store.events(run.id))

    def decisions(self, run: RunRecord, stage: str) -> list[DecisionEvent]:
        """Return the decisions of a stage."""
        return [e for e in self.events(run) if isinstance(e, DecisionEvent) and e.stage == stage]

    def prompts(self, run: RunRecord) -> list[Prompt]:
        """Return all model calls."""
        bodies = Bodies(self.store.bodies(run.id))

        def text(number: int) -> str:
            return text_of(message_from_data(bodies[number]))

        return [
            Prompt(tuple(event.step.split("/")), event.agent, "\n\n".join(map(text, event.messages)), text(event.reply))
            for event in self.events(run)
            if isinstance(event, LLMCallEvent)
        ]


@contextmanager
def arena(folder: Path) -> Iterator[Arena]:
    """Open an arena for the time of a test."""
    opened = Arena(folder)
    yield opened
    opened.store.close()
