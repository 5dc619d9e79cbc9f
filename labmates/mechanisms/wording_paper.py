"""Wording of mechanisms with the content of CoopEval's prompts (appendix L), in our own sentences.

Differences from the project's own wording: rounds have numbers, actions may influence later decisions of others,
matches under reputation form a tree, designs are spelled out, and delegation is an additional action.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from labmates.games.base import counted
from labmates.mechanisms.wording import (
    Acquaintance,
    Answer,
    Described,
    Designed,
    Encounter,
    Wording,
    player_name,
)

if TYPE_CHECKING:
    from labmates.games.normal_form import NormalForm

_DELEGATE = "delegate"


class PaperWording(Wording):
    """The content of the published prompts; mechanisms of other packages keep their own texts."""

    follows_own: ClassVar[bool] = True
    texts: ClassVar[Mapping[str, str]] = {
        "choose": "Give a probability distribution over your actions for this round: a whole percentage for each "
        "action, under the action's exact name. The percentages must add up to exactly 100.",
        "ballot": "## The proposals for a {thing}",
        "offer": "P{number}, the {thing} proposed by {name}:\n{design}",
        "no offer": "No valid proposal.",
        "vote": "Look at each {thing} and decide whether you approve of it. Answer for each of them.",
        "choice": "Look at each {thing} and choose one of them, or none.",
        "design": "It was proposed by {names} and selected by approval vote:\n{design}",
        "winner": "## The {thing} selected by the vote\n{design}",
        "sign": "Decide now whether you sign this {thing}. It becomes active only if every player signs it.",
        "refused": "## No {thing} is active\nNot every player signed the one selected by the vote: {names} did not. "
        "{design}",
        "in force": "## A {thing} is part of this game\n{design}",
        "signed": "## A {thing} is active, because every player signed it\n{design}",
    }

    def labels(self, game: NormalForm) -> dict[str, str]:
        """Delegation is an additional numbered action."""
        return {_DELEGATE: f"A{len(game.labels[0])}"}

    def rules(self, mechanism: Described, game: NormalForm) -> str:
        """The description of a mechanism for all players."""
        template = _RULES.get(mechanism.name)
        if template is None:
            return mechanism.rules(game)
        others = "the other player" if game.players == 2 else "the other players"
        return template.format(
            others=others,
            percent=getattr(mechanism, "percent", ""),
            selection=_selection(mechanism),
        )

    def rounds(self, game: NormalForm, deeds: Sequence[Sequence[str]], me: int, played: int) -> str:
        """The last rounds with the same players, with their numbers."""
        lines = ["## What has been played"]
        for number, actions in enumerate(reversed(deeds), start=played - len(deeds) + 1):
            lines.append(f"[Round {number}]")
            lines += (f"{player_name(seat, me)}: {self._label(game, action)}" for seat, action in enumerate(actions))
        return "\n".join([*lines, _played(played)])

    def matches(self, game: NormalForm, knows: Acquaintance) -> str:
        """The matches known to a player under reputation, as a tree below each player of the present match."""
        others = [agent for seat, agent in enumerate(knows.group) if seat != knows.seat]
        names = " and ".join(knows.names[agent] for agent in others)
        tree = _Tree(knows, partial(self._label, game))
        lines = ["## What has been played", "Your own matches:", *tree.of(knows.group[knows.seat])]
        for agent in others:
            lines += [f"\nMatches of {knows.names[agent]}:", *tree.of(agent)]
        me = f"You are {knows.me}, one of {len(knows.names)} agents."
        return "\n".join([*lines, f"\n{_played(knows.played)}\n{me} In this round you play with {names}."])

    def proposal(self, mechanism: Designed, game: NormalForm, *, once: bool) -> str:
        """The request for a proposal."""
        asked = _REQUESTS.get(mechanism.name)
        return super().proposal(mechanism, game, once=once) if asked is None else asked.format(players=game.players)

    def in_force(self, mechanism: Designed, game: NormalForm, design: str) -> str:
        """The design in force, and the action that it adds."""
        text = super().in_force(mechanism, game, design)
        if mechanism.name != "mediation":
            return text
        return (
            f"{text}\n{self._label(game, _DELEGATE)} is an additional action: to delegate your move to the mediator. "
            "Your distribution includes it."
        )

    def _label(self, game: NormalForm, label: str) -> str:
        return self.labels(game).get(label, label)

    def tell(self, mechanism: Designed, game: NormalForm, design: Answer) -> str:
        """A design spelled out."""
        if mechanism.name == "mediation":
            return "\n".join(
                f"- If {number} player{'s delegate' if number > 1 else ' delegates'} to the mediator, it takes "
                f"{design[str(number)]}."
                for number in range(1, game.players + 1)
            )
        if mechanism.name == "contract":
            return "\n".join(
                f"- {label} ({design[label]}): {_payment(design[label], game.players)}" for label in game.labels[0]
            )
        return mechanism.tell(game, design)


_TIES = {
    "random": "if several have the most approvals, one of them is drawn, each with the same probability",
    "all": "if several have the most approvals, each of them is played, and points are averaged",
}
_PROPOSALS = "Every player designs and proposes one, and only one will be part of the game. "
_RULES = {
    "none": "",
    "repetition": (
        "You play this game repeatedly, always with the same players. In later rounds they will see the action drawn "
        "from your distribution, and it may influence their decisions. After each round, another round follows with "
        "a probability of {percent}."
    ),
    "reputation": (
        "You play this game repeatedly, with changing players whom you meet at random. The players whom you meet in "
        "later rounds will see the action drawn from your distribution in this one, and it may influence their "
        "decisions. After each round, another round follows with a probability of {percent}."
    ),
    "mediation": (
        "There will be a mediator in this game, which can act for players. Every player may delegate its move to the "
        "mediator or act on its own. The mediator sees how many players delegate, and takes the same action for all "
        "of them. {selection}."
    ),
    "contract": (
        "There can be a payment contract in this game, in addition to the points of the game itself. It gives a number "
        "for each action. If the number is positive, a player who takes that action receives that many extra points "
        "in total, drawn in equal parts from {others}. If it is negative, the player pays that many points in total, "
        "in equal parts to {others}. If it is 0, nothing is paid. Every player may accept or reject the whole "
        "contract, and it becomes active only if all accept it. {selection}."
    ),
}
_REQUESTS = {
    "mediation": (
        "Design a mediator and propose it. For each number of players who delegate, from 1 to {players}, name the "
        "action that it takes for all of them."
    ),
    "contract": (
        "Design a contract and propose it. For each action of the game, give a whole number: the extra points that "
        "a player who takes it receives, or pays if the number is negative."
    ),
}


def _selection(mechanism: Described) -> str:
    """The selection of a proposal, without a full stop; empty for a mechanism without proposals."""
    if getattr(mechanism, "selection", "vote") == "choice":
        return (
            f"{_PROPOSALS}All are shown, every player chooses one or none, and a proposal is adopted if all choose it"
        )
    tie = _TIES[getattr(mechanism, "ties", "random")]
    return f"{_PROPOSALS}All players decide by approval vote; {tie}, and if nobody approves of any, there is none"


def _payment(points: int, players: int) -> str:
    others = "the other player" if players == 2 else "the other players, in equal parts"
    if not points:
        return "a player who takes it receives and pays nothing extra."
    extra = counted(abs(points), "extra point")
    way = f"receives {extra} from" if points > 0 else f"pays {extra} to"
    return f"a player who takes it {way} {others}."


def _played(played: int) -> str:
    return f"You have played this game for {counted(played, 'round')} so far."


class _Tree:
    """The matches of agents, and below each of them the earlier matches of its players.

    Repeated branches refer to their first occurrence, so that long memories stay readable.
    """

    def __init__(self, knows: Acquaintance, label: Callable[[str], str]) -> None:
        self._knows = knows
        self._label = label
        self._shown: set[tuple[int, int]] = set()

    def of(self, agent: int) -> list[str]:
        """The lines of one agent's matches, latest first."""
        return list(self._before(agent, 0, "")) or ["None yet."]

    def _before(self, agent: int, start: int, indent: str) -> Iterator[str]:
        """An agent's matches before a round, given by the index of the round in the known rounds."""
        self._shown.add((agent, start))
        for place, encounters in enumerate(self._knows.known[start:], start=start):
            for encounter in encounters:
                if agent in encounter.agents:
                    yield f"{indent}- [Round {self._knows.played - place}] {self._line(encounter)}"
                    if self._knows.order == 3:
                        yield from self._partners(agent, encounter, place + 1, f"{indent}  ")

    def _partners(self, agent: int, encounter: Encounter, start: int, indent: str) -> Iterator[str]:
        for partner in encounter.agents:
            had_played = any(partner in other.agents for others in self._knows.known[start:] for other in others)
            if partner == agent or not had_played:
                continue
            name = self._knows.names[partner]
            if (partner, start) in self._shown:
                yield f"{indent}Matches of {name} before this one: see above."
            else:
                yield f"{indent}Matches of {name} before this one:"
                yield from self._before(partner, start, indent)

    def _line(self, encounter: Encounter) -> str:
        parts = []
        for deed, payoff in zip(encounter.match, encounter.payoffs, strict=True):
            who = f"{deed.agent} (you)" if deed.agent == self._knows.me else deed.agent
            parts.append(f"{who} took {self._label(deed.action)} and received {payoff:g} points")
        return "; ".join(parts)
