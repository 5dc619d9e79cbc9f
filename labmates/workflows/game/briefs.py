"""What players of a behavioural game are told: the rules, what has happened, and what they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from labmates.agents.prompts import render
from labmates.games.base import Array, Game
from labmates.workflows.game.condition import GameCondition

Said = tuple[str, str]
"""Who said what."""


@dataclass
class Round:
    """What has happened in a round.

    Attributes
    ----------
    said
        In deliberation, by group.
    decisions
        ``(groups, group_size, quantities)``.
    usable
        Whether each was the player's own, ``(groups, group_size)``, or the fallback.
    tokens
        Spent on sanctions, ``(groups, group_size, group_size)``; None without that stage.
    payoffs
        ``(groups, group_size)``; None before the round is settled.
    """

    said: dict[str, list[Said]] = field(default_factory=dict)
    decisions: Array | None = None
    usable: Array | None = None
    tokens: Array | None = None
    payoffs: Array | None = None


class Briefing:
    """Writes the prompts of one run."""

    def __init__(self, condition: GameCondition, game: Game) -> None:
        self._condition = condition
        self._game = game
        self._groups: dict[str, int] = {}
        self._seats: dict[str, tuple[int, int]] = {}
        for group, player in condition.seats():
            place = self._groups.setdefault(group, len(self._groups))
            self._seats[player] = (place, len(self._seats) - place * game.group_size)
        self._names = list(self._seats)
        self._reasoning = render(f"game_reasoning_{condition.reasoning}")
        self._system: dict[str, SystemMessage] = {}
        self._past: dict[tuple[str, int], str] = {}

    def seat(self, player: str) -> tuple[int, int]:
        """Return the group and the place in it of a player, as numbers."""
        return self._seats[player]

    def members(self, player: str) -> list[str]:
        """Return the names of all members of a player's group, in order."""
        group = self._seats[player][0]
        return self._names[group * self._game.group_size : (group + 1) * self._game.group_size]

    def decide(self, player: str, rounds: Sequence[Round]) -> list[BaseMessage]:
        """Ask for the decision of the last of `rounds`."""
        keys = (f'- "{one.name}": {one.low} to {one.high}, {one.about}' for one in self._game.quantities)
        total = [] if self._game.total is None else [f"Together they add up to {self._game.total}."]
        said = rounds[-1].said.get(self._group(player), [])
        order = render(
            "game_decide",
            round=len(rounds),
            rounds=self._game.rounds,
            history=self._history(player, rounds),
            said=f"\n## What your group has said\n{_lines(said)}\n" if said else "",
            reasoning=self._reasoning,
            keys="\n".join([*keys, *total]),
        )
        return [self._rules(player), HumanMessage(order)]

    def sanction(self, player: str, rounds: Sequence[Round]) -> list[BaseMessage]:
        """Ask for the sanctions of the last of `rounds`."""
        order = render(
            "game_sanction",
            round=len(rounds),
            rounds=self._game.rounds,
            history=self._history(player, rounds),
            now="\n".join(self._decisions(player, rounds, payoffs=True)),
            limit=self._game.sanction_limit,
            reasoning=self._reasoning,
            keys="\n".join(f'- "{name}"' for name in self.members(player) if name != player),
        )
        return [self._rules(player), HumanMessage(order)]

    def deliberate(self, player: str, rounds: Sequence[Round]) -> list[BaseMessage]:
        """Ask for a few sentences to the group."""
        order = render(
            "game_deliberate",
            round=len(rounds),
            rounds=self._game.rounds,
            history=self._history(player, rounds),
            said=_lines(rounds[-1].said.get(self._group(player), [])) or "Nobody has spoken yet.",
        )
        return [self._rules(player), HumanMessage(order)]

    def _group(self, player: str) -> str:
        return next(name for name, place in self._groups.items() if place == self._seats[player][0])

    def _rules(self, player: str) -> SystemMessage:
        if player not in self._system:
            figures = self._game.figures()
            text = render(
                f"game_system_{self._condition.framing}",
                player=player,
                group=self._group(player),
                players=self._game.players,
                rules=self._game.rules(self._condition.framing),
                figures="\n".join(f"- {name.replace('_', ' ')}: {value}" for name, value in figures.items()),
                **{name: figures[name] for name in ("groups", "group_size", "rounds")},
            )
            self._system[player] = SystemMessage(text)
        return self._system[player]

    def _history(self, player: str, rounds: Sequence[Round]) -> str:
        """Return what a player knows of the rounds before the last."""
        past = "\n".join(self._round(player, rounds[: number + 1]) for number in range(len(rounds) - 1))
        return f"\n## What has happened so far\n{past}" if past else "Nothing has happened yet."

    def _round(self, player: str, rounds: Sequence[Round]) -> str:
        key = (player, len(rounds))
        if key not in self._past:
            self._past[key] = "\n".join([f"Round {len(rounds)}", *self._decisions(player, rounds)])
        return self._past[key]

    def _decisions(self, player: str, rounds: Sequence[Round], *, payoffs: bool = False) -> list[str]:
        """Return what a player gets to know of the last of `rounds`, one fact a line."""
        group, seat = self._seats[player]
        last = rounds[-1]
        history = np.stack([one.decisions for one in rounds if one.decisions is not None])
        assert last.payoffs is not None
        lines = []
        for place, member in enumerate(self.members(player)):
            what = ", ".join(
                f"{quantity.name} {number}"
                for quantity, number in zip(self._game.quantities, history[-1][group, place], strict=True)
            )
            gets = f", payoff {_number(last.payoffs[group, place])}" if payoffs else ""
            lines.append(f"- {member}{' (you)' if place == seat else ''}: {what}{gets}")
        facts = [*self._game.group_facts(history[-1], group), *self._game.public(history)]
        if last.tokens is not None:
            lines += self._sanctions(player, last.tokens[group])
        if not payoffs:
            facts.append(f"your payoff: {_number(last.payoffs[group, seat])}")
        return [*lines, *(f"- {fact}" for fact in facts)]

    def _sanctions(self, player: str, tokens: Array) -> list[str]:
        members = self.members(player)
        spent = [
            f"- {one} spent {tokens[i, j]} on {other}"
            for i, one in enumerate(members)
            for j, other in enumerate(members)
            if tokens[i, j]
        ]
        return spent or ["- nobody in your group spent a token"]


def _lines(said: Sequence[Said]) -> str:
    return "\n".join(f"{player}: {text}" for player, text in said)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
