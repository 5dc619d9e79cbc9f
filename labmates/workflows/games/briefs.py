"""The prompts of a behavioural game: the rules, the past, and the request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from langchain_core.messages import BaseMessage

from labmates.agents.prompts import Prompts
from labmates.games.base import Array, Game, counted, in_figures
from labmates.models.orders import Order
from labmates.workflows.calls.remarks import form_text
from labmates.workflows.games.condition import GameCondition
from labmates.workflows.play.wordings import reasoning_request

render = Prompts(__package__).render

KIND = "behavioural"
"""The kind of the orders."""
Said = tuple[str, str]
"""A player and its message."""


@dataclass(frozen=True)
class Round:
    """The events of a round."""

    said: Mapping[str, Sequence[Said]] = field(default_factory=dict)  # messages in deliberation, by group
    decisions: Array | None = None  # shape ``(groups, group_size, quantities)``
    usable: Array | None = None  # whether each decision is the player's and not the fallback, ``(groups, group_size)``
    tokens: Array | None = None  # spent on sanctions, ``(groups, group_size, group_size)``; None without sanctions
    # Whether each player's tokens are its decision and not the fallback, ``(groups, group_size)``.
    spent: Array | None = None
    payoffs: Array | None = None  # shape ``(groups, group_size)``; None before the round is settled


def history(rounds: Iterable[Round]) -> Array:
    """All decisions; shape ``(rounds, groups, group_size, quantities)``."""
    return np.stack([round_.decisions for round_ in rounds if round_.decisions is not None])


def payoffs(rounds: Iterable[Round]) -> Array:
    """All payoffs; shape ``(rounds, groups, group_size)``."""
    return np.stack([round_.payoffs for round_ in rounds if round_.payoffs is not None])


class Briefing:
    """The prompts of one run.

    All players read the same system message, with the requests of all steps. Then comes the record of the group, to
    which each round only adds, and last the step, the round and the player: servers cache prompts by their beginning.
    """

    def __init__(self, condition: GameCondition, game: Game) -> None:
        self._condition = condition
        self._game = game
        self._names = [player for _, player in condition.seats()]
        self._seats = {player: divmod(number, game.group_size) for number, player in enumerate(self._names)}
        self._reasoning = reasoning_request(condition.reasoning)
        self._system = self._make_system()
        self._lines: dict[tuple[int, int, bool], list[str]] = {}

    def seat(self, player: str) -> tuple[int, int]:
        """The indices of a player's group and of its seat in the group."""
        return self._seats[player]

    def members(self, player: str) -> list[str]:
        """Names of all members of a player's group, in order."""
        group = self._seats[player][0]
        return self._names[group * self._game.group_size : (group + 1) * self._game.group_size]

    def decide(self, player: str, rounds: Sequence[Round]) -> list[BaseMessage]:
        """The prompt for the decision in the last of `rounds`."""
        keys = [quantity.name for quantity in self._game.asked]
        said = self._said(player, rounds) if self._condition.deliberation else ""
        return self._order(player, rounds, "decide", [said, self._status(rounds[:-1])], self._reasoning, keys)

    def sanction(self, player: str, rounds: Sequence[Round]) -> list[BaseMessage]:
        """The prompt for sanctions in the last of `rounds`."""
        others = [name for name in self.members(player) if name != player]
        now = self._decisions(self._seats[player][0], rounds, payoffs=True)
        shown = ["\n".join(["## This round so far", *now])]
        return self._order(player, rounds, "sanction", shown, self._reasoning, others)

    def deliberate(self, player: str, rounds: Sequence[Round]) -> list[BaseMessage]:
        """The prompt for a few sentences to the group."""
        return self._order(player, rounds, "deliberation", [self._said(player, rounds)], "It is your turn to speak.")

    def _order(
        self,
        player: str,
        rounds: Sequence[Round],
        step: str,
        shown: Sequence[str],
        request: str,
        keys: Sequence[str] = (),
    ) -> list[BaseMessage]:
        known = rounds if step == "sanction" else rounds[:-1]
        last = self._others(player, known[-1]) if known else {}
        facts = {"player": player, "stage": step, "round": len(rounds), "last": last}
        now = render(
            "now",
            step=step,
            round=len(rounds),
            rounds=self._game.rounds,
            request=request,
            player=player,
            group=player[0],
            own=self._own(player, rounds[:-1]),
            form=f"Use this form, with your numbers in place of the dots: {form_text(keys)}" if keys else "",
        )
        text = "\n\n".join(filter(None, [self._history(player, rounds[:-1]), *shown, now.rstrip()]))
        return [self._system, Order(KIND, facts, text).human()]

    def _others(self, player: str, last: Round) -> dict[str, dict[str, int]]:
        """The decisions of the other members of a player's group in a round."""
        assert last.decisions is not None
        names = [quantity.name for quantity in self._game.quantities]
        decisions = last.decisions[self._seats[player][0]].tolist()
        by_member = zip(self.members(player), decisions, strict=True)
        return {member: dict(zip(names, numbers, strict=True)) for member, numbers in by_member if member != player}

    def _make_system(self) -> BaseMessage:
        condition, game = self._condition, self._game
        figures = game.figures()
        named = {name.replace("_", " "): value for name, value in figures.items()}
        text = render(
            f"system_{condition.framing}_{condition.wording}",
            players=game.players,
            title=game.title,
            rules=game.rules(condition.framing, remarks=condition.wording == "paper"),
            figures="\n".join(f"- {name}: {value}" for name, value in named.items()),
            groups="is 1 group" if game.groups == 1 else f"are {game.groups} groups",
            steps="\n\n".join(self._steps()),
            group_size=game.group_size,
            length=counted(game.rounds, "round"),
        )
        return Order(KIND, {"figures": named}, text).system()

    def _steps(self) -> Iterator[str]:
        """The requests of all steps of a round."""
        condition, game = self._condition, self._game
        if condition.deliberation:
            yield render(f"deliberate_{condition.wording}")
        keys = [f'- "{each.name}": {each.low} to {each.high}, {each.about}' for each in game.asked]
        rest = f"Together they add up to at most {game.total}; {game.rest} is the rest and has no key."
        yield render("decide", keys="\n".join([*keys, *([rest] if game.rest else [])]))
        if game.sanction_limit:
            yield render(f"sanction_{condition.wording}", limit=game.sanction_limit)

    def _history(self, player: str, past: Sequence[Round]) -> str:
        """The completed rounds of a player's group."""
        group = self._seats[player][0]
        if not past:
            return "This is the first round."
        lines = ["## What has happened so far"]
        for number in range(1, len(past) + 1):
            lines += [f"Round {number}", *self._decisions(group, past[:number], payoffs=False)]
        return "\n".join(lines)

    def _said(self, player: str, rounds: Sequence[Round]) -> str:
        """The messages of a player's group in the last of `rounds`."""
        return f"## What your group has said\n{_lines(rounds[-1].said.get(player[0], [])) or 'Nobody has spoken yet.'}"

    def _status(self, rounds: Sequence[Round]) -> str:
        """The state of the game after these rounds, in the paper's wording."""
        if self._condition.wording == "ours":
            return ""
        game = self._game
        before = history(rounds) if rounds else np.zeros((0, game.groups, game.group_size, len(game.quantities)))
        lines = game.status(before)
        return "\n".join(["## Where the game stands", *(f"- {line}" for line in lines)]) if lines else ""

    def _decisions(self, group: int, rounds: Sequence[Round], *, payoffs: bool) -> list[str]:
        """The last of `rounds` as all members of a group know it, one fact per line."""
        if (key := (group, len(rounds), payoffs)) not in self._lines:
            self._lines[key] = list(self._make_lines(group, rounds, payoffs=payoffs))
        return self._lines[key]

    def _make_lines(self, group: int, rounds: Sequence[Round], *, payoffs: bool) -> Iterator[str]:
        last, played, size = rounds[-1], history(rounds), self._game.group_size
        assert last.payoffs is not None
        members = self._names[group * size : (group + 1) * size]
        for player, text in last.said.get(members[0][0], ()):
            yield f"- {player} said: {text}"
        for place, member in enumerate(members):
            numbers = zip(self._game.quantities, played[-1, group, place], strict=True)
            what = ", ".join(f"{quantity.name} {number}" for quantity, number in numbers)
            if last.usable is not None and not last.usable[group, place]:
                what = f"no valid decision; played for it: {what}"
            yield f"- {member}: {what}" + (f", payoff {in_figures(last.payoffs[group, place])}" if payoffs else "")
        if last.tokens is not None:
            spent = [True] * size if last.spent is None else last.spent[group]
            yield from (
                f"- {member}: no valid answer on tokens"
                for member, made in zip(members, spent, strict=True)
                if not made
            )
            yield from _sanctions(members, last.tokens[group])
        facts = (*self._game.group_facts(played[-1], group), *self._game.public(played))
        yield from (f"- {fact}" for fact in facts)

    def _own(self, player: str, past: Sequence[Round]) -> str:
        """A player's results in completed rounds, a line each."""
        group, seat = self._seats[player]
        lines, so_far = [""], 0.0
        for number, round_ in enumerate(past, start=1):
            assert round_.payoffs is not None
            payoff = float(round_.payoffs[group, seat])
            so_far += payoff
            lines.append(f"- round {number}: {self._game.payoff_fact(payoff, so_far)}")
        return "\n".join(lines)


def _sanctions(members: Sequence[str], tokens: Array) -> list[str]:
    spent = [
        f"- {member} spent {tokens[i, j]} on {other}"
        for i, member in enumerate(members)
        for j, other in enumerate(members)
        if tokens[i, j]
    ]
    return spent or ["- nobody in your group spent a token"]


def _lines(messages: Sequence[Said]) -> str:
    return "\n".join(f"{player}: {text}" for player, text in messages)
