"""The prompts of a behavioural game: the rules, the past, and the request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from langchain_core.messages import BaseMessage

from labmates.agents.prompts import render
from labmates.games.base import Array, Game, in_figures
from labmates.models.orders import Order
from labmates.workflows.asking import form_text
from labmates.workflows.games.condition import GameCondition

KIND = "behavioural"
"""The kind of the orders."""
Said = tuple[str, str]
"""A player and its message."""


@dataclass(frozen=True)
class Round:
    """The events of a round.

    Attributes
    ----------
    said
        Messages in deliberation, by group.
    decisions
        Shape ``(groups, group_size, quantities)``.
    usable
        Whether each decision is the player's and not the fallback, ``(groups, group_size)``.
    tokens
        Spent on sanctions, ``(groups, group_size, group_size)``; None without sanctions.
    spent
        Whether each player's tokens are its decision and not the fallback, ``(groups, group_size)``.
    payoffs
        Shape ``(groups, group_size)``; None before the round is settled.
    """

    said: Mapping[str, Sequence[Said]] = field(default_factory=dict)
    decisions: Array | None = None
    usable: Array | None = None
    tokens: Array | None = None
    spent: Array | None = None
    payoffs: Array | None = None


def history(rounds: Iterable[Round]) -> Array:
    """All decisions; shape ``(rounds, groups, group_size, quantities)``."""
    return np.stack([round_.decisions for round_ in rounds if round_.decisions is not None])


def payoffs(rounds: Iterable[Round]) -> Array:
    """All payoffs; shape ``(rounds, groups, group_size)``."""
    return np.stack([round_.payoffs for round_ in rounds if round_.payoffs is not None])


class Briefing:
    """The prompts of one run."""

    def __init__(self, condition: GameCondition, game: Game) -> None:
        self._condition = condition
        self._game = game
        self._names = [player for _, player in condition.seats()]
        self._seats = {player: divmod(number, game.group_size) for number, player in enumerate(self._names)}
        self._reasoning = render(f"game_reasoning_{condition.reasoning}")
        # Text common to all players is rendered once, since there are many calls.
        figures = game.figures()
        self._figures = {name.replace("_", " "): value for name, value in figures.items()}
        self._shared = {
            "players": game.players,
            "title": game.title,
            "rules": game.rules(condition.framing, remarks=condition.wording == "paper"),
            "figures": "\n".join(f"- {name}: {value}" for name, value in self._figures.items()),
            "groups": "is 1 group" if game.groups == 1 else f"are {game.groups} groups",
            **{name: figures[name] for name in ("group_size", "rounds")},
        }
        self._facts: dict[tuple[int, int], list[str]] = {}
        self._system: dict[str, BaseMessage] = {}
        self._past: dict[tuple[str, int], str] = {}

    def seat(self, player: str) -> tuple[int, int]:
        """The indices of a player's group and of its seat in the group."""
        return self._seats[player]

    def members(self, player: str) -> list[str]:
        """Names of all members of a player's group, in order."""
        group = self._seats[player][0]
        return self._names[group * self._game.group_size : (group + 1) * self._game.group_size]

    def decide(self, player: str, rounds: Sequence[Round]) -> list[BaseMessage]:
        """The prompt for the decision in the last of `rounds`."""
        quantities = self._game.quantities
        keys = (f'- "{quantity.name}": {quantity.low} to {quantity.high}, {quantity.about}' for quantity in quantities)
        total = [] if self._game.total is None else [f"Together they add up to {self._game.total}."]
        messages = rounds[-1].said.get(player[0], [])
        text = render(
            "game_decide",
            round=len(rounds),
            rounds=self._game.rounds,
            history=self._history(player, rounds) + self._status(rounds[:-1]),
            said=f"\n## What your group has said\n{_lines(messages)}\n" if messages else "",
            reasoning=self._reasoning,
            keys="\n".join([*keys, *total]),
            form=form_text(quantity.name for quantity in quantities),
        )
        return self._order(player, rounds, "decide", text)

    def sanction(self, player: str, rounds: Sequence[Round]) -> list[BaseMessage]:
        """The prompt for sanctions in the last of `rounds`."""
        others = [name for name in self.members(player) if name != player]
        text = render(
            f"game_sanction_{self._condition.wording}",
            round=len(rounds),
            rounds=self._game.rounds,
            history=self._history(player, rounds),
            now="\n".join(self._decisions(player, rounds, payoffs=True)),
            limit=self._game.sanction_limit,
            reasoning=self._reasoning,
            keys="\n".join(f'- "{name}"' for name in others),
            form=form_text(others),
        )
        return self._order(player, rounds, "sanction", text)

    def deliberate(self, player: str, rounds: Sequence[Round]) -> list[BaseMessage]:
        """The prompt for a few sentences to the group."""
        text = render(
            f"game_deliberate_{self._condition.wording}",
            round=len(rounds),
            rounds=self._game.rounds,
            history=self._history(player, rounds),
            said=_lines(rounds[-1].said.get(player[0], [])) or "Nobody has spoken yet.",
        )
        return self._order(player, rounds, "deliberation", text)

    def _order(self, player: str, rounds: Sequence[Round], stage: str, text: str) -> list[BaseMessage]:
        known = rounds if stage == "sanction" else rounds[:-1]
        facts = {"stage": stage, "round": len(rounds), "last": self._others(player, known[-1]) if known else {}}
        return [self._rules(player), Order(KIND, facts, text).human()]

    def _others(self, player: str, last: Round) -> dict[str, dict[str, int]]:
        """The decisions of the other members of a player's group in a round."""
        assert last.decisions is not None
        names = [quantity.name for quantity in self._game.quantities]
        decisions = last.decisions[self._seats[player][0]].tolist()
        by_member = zip(self.members(player), decisions, strict=True)
        return {member: dict(zip(names, numbers, strict=True)) for member, numbers in by_member if member != player}

    def _rules(self, player: str) -> BaseMessage:
        if player not in self._system:
            name = f"game_system_{self._condition.framing}_{self._condition.wording}"
            text = render(name, player=player, group=player[0], **self._shared)
            facts = {"player": player, "figures": self._figures}
            self._system[player] = Order(KIND, facts, text).system()
        return self._system[player]

    def _history(self, player: str, rounds: Sequence[Round]) -> str:
        """A player's view of the rounds before the last."""
        past = "\n".join(self._round(player, rounds[: number + 1]) for number in range(len(rounds) - 1))
        return f"\n## What has happened so far\n{past}" if past else "This is the first round."

    def _status(self, rounds: Sequence[Round]) -> str:
        """The state of the game after these rounds, in the paper's wording."""
        if self._condition.wording == "ours":
            return ""
        game = self._game
        before = history(rounds) if rounds else np.zeros((0, game.groups, game.group_size, len(game.quantities)))
        lines = game.status(before)
        return "\n".join(["\n\n## Where the game stands", *(f"- {line}" for line in lines)]) if lines else ""

    def _round(self, player: str, rounds: Sequence[Round]) -> str:
        key = (player, len(rounds))
        if key not in self._past:
            self._past[key] = "\n".join([f"Round {len(rounds)}", *self._decisions(player, rounds)])
        return self._past[key]

    def _decisions(self, player: str, rounds: Sequence[Round], *, payoffs: bool = False) -> list[str]:
        """The last of `rounds` for a player, one fact per line."""
        group, seat = self._seats[player]
        last = rounds[-1]
        assert last.payoffs is not None
        assert last.decisions is not None
        lines = []
        for place, member in enumerate(self.members(player)):
            what = ", ".join(
                f"{quantity.name} {number}"
                for quantity, number in zip(self._game.quantities, last.decisions[group, place], strict=True)
            )
            gets = f", payoff {in_figures(last.payoffs[group, place])}" if payoffs else ""
            lines.append(f"- {member}{' (you)' if place == seat else ''}: {what}{gets}")
        facts = list(self._public_facts(group, rounds))
        if last.tokens is not None:
            lines += self._sanctions(player, last.tokens[group])
        if not payoffs:
            so_far = sum(float(round_.payoffs[group, seat]) for round_ in rounds if round_.payoffs is not None)
            facts.append(self._game.payoff_fact(float(last.payoffs[group, seat]), so_far))
        return [*lines, *(f"- {fact}" for fact in facts)]

    def _public_facts(self, group: int, rounds: Sequence[Round]) -> list[str]:
        """The facts of the last of `rounds` for all members of a group, beyond its decisions."""
        key = (group, len(rounds))
        if key not in self._facts:
            played = history(rounds)
            self._facts[key] = [*self._game.group_facts(played[-1], group), *self._game.public(played)]
        return self._facts[key]

    def _sanctions(self, player: str, tokens: Array) -> list[str]:
        members = self.members(player)
        spent = [
            f"- {member} spent {tokens[i, j]} on {other}"
            for i, member in enumerate(members)
            for j, other in enumerate(members)
            if tokens[i, j]
        ]
        return spent or ["- nobody in your group spent a token"]


def _lines(messages: Sequence[Said]) -> str:
    return "\n".join(f"{player}: {text}" for player, text in messages)
