"""Wording of the built-in mechanisms: texts for players on rules, earlier rounds, proposals and designs.

`Wording` is the project's own; `labmates.mechanisms.wording_paper` has the content of CoopEval's prompts. Mechanisms of
other packages supply their own texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from labmates.games.base import counted

if TYPE_CHECKING:
    from labmates.games.normal_form import NormalForm
    from labmates.mechanisms.norms import Match

Answer = Mapping[str, Any]


class Described(Protocol):
    """What a wording reads of a mechanism."""

    name: ClassVar[str]

    def rules(self, game: NormalForm) -> str:
        """The description of the mechanism for all players."""


class Designed(Described, Protocol):
    """What a wording reads of a mechanism whose players agree on a design."""

    thing: ClassVar[str]
    is_signed: ClassVar[bool]

    @property
    def selection(self) -> str:
        """How a proposal is selected: ``vote`` or ``choice``."""

    def ask_for(self, game: NormalForm) -> str:
        """The request for a proposal."""

    def tell(self, game: NormalForm, design: Answer) -> str:
        """A design as text, on one line."""


@dataclass(frozen=True)
class Encounter:
    """A match under reputation: agents, actions and payoffs."""

    agents: tuple[int, ...]
    match: Match
    payoffs: tuple[float, ...]


@dataclass(frozen=True)
class Acquaintance:
    """A player's knowledge under reputation."""

    group: Sequence[int]  # the agents of the present match, by seat
    seat: int  # the player's seat
    names: Mapping[int, str]
    known: Sequence[Sequence[Encounter]]  # the known matches by round, latest first
    order: int  # 1: the matches of co-players; 3: also those of their co-players, and so on
    played: int  # number of rounds played

    @property
    def me(self) -> str:
        """The player's name."""
        return self.names[self.group[self.seat]]


class Wording:
    """The project's own wording."""

    # Whether a player with reputation of order 3 also sees the earlier matches of its own former co-players.
    follows_own: ClassVar[bool] = False
    # The requests for choices, votes and signatures, and the notices on proposals and designs.
    texts: ClassVar[Mapping[str, str]] = {
        "choose": "Choose: with what probability do you take each action, in whole percentages that add up to 100? "
        "Your action is drawn from these probabilities.",
        "ballot": "## Proposals for the {thing}",
        "offer": "- P{number} (proposed by {name}): {design}",
        "no offer": "no valid proposal",
        "vote": "Vote: which of the proposals do you approve of? You may approve of any number, including all or none.",
        "choice": "Choose one of the proposals, or none. A proposal takes effect if all players choose it.",
        "design": "{numbers} (proposed by {names}): {design}",
        "winner": "## The {thing} that won the vote\n{design}",
        "sign": "Sign: do you sign the {thing}? It takes effect only if all players sign it.",
        "refused": "## The {thing}\nIt does not take effect, because {names} did not sign: {design}",
        "in force": "## The {thing} in effect\n{design}",
        "signed": "## The {thing} in effect\n{design}\nAll players signed it.",
    }

    def text(self, key: str, **values: object) -> str:
        """One of the texts with its values."""
        return self.texts[key].format_map(values)

    def labels(self, game: NormalForm) -> dict[str, str]:
        """Displayed names of actions, by label; by default the labels."""
        return {}

    def rules(self, mechanism: Described, game: NormalForm) -> str:
        """The description of a mechanism for all players."""
        return mechanism.rules(game)

    def rounds(self, game: NormalForm, deeds: Sequence[Sequence[str]], me: int, played: int) -> str:
        """The last rounds with the same players.

        Parameters
        ----------
            By round, latest first, and seat.
        me
            The reader's seat.
        played
            Number of rounds played.
        """
        if not deeds:
            return "## Earlier rounds\nThis is the first round."
        lines = ["## Earlier rounds"]
        for number, actions in enumerate(reversed(deeds), start=played - len(deeds) + 1):
            did = (f"{player_name(seat, me)}: {action}" for seat, action in enumerate(actions))
            lines.append(f"- round {number}: {'; '.join(did)}")
        return "\n".join([*lines, _played(played)])

    def matches(self, game: NormalForm, knows: Acquaintance) -> str:
        """The matches known to a player under reputation."""
        met = ", ".join(
            f"player {seat + 1} is {knows.names[agent]}" for seat, agent in enumerate(knows.group) if seat != knows.seat
        )
        shown = [
            f"- round {number}: {_encounter(game, encounter, knows.me)}"
            for number, encounters in enumerate(reversed(knows.known), start=knows.played - len(knows.known) + 1)
            for encounter in encounters
        ]
        return "\n".join(
            [
                "## Matches that you know of",
                *(shown or ["There are none yet."]),
                f"\n## This round\n{_played(knows.played)} You are {knows.me}, one of {len(knows.names)} agents. "
                f"In this round {met}.",
            ]
        )

    def proposal(self, mechanism: Designed, game: NormalForm, *, once: bool) -> str:
        """The request for a proposal.

        Parameters
        ----------
        once
            Whether the proposal is used in all matches of the player at this seat.
        """
        often = " You propose only once: it is put to the vote whenever you play in this position." if once else ""
        return f"{mechanism.ask_for(game)}{often}"

    def ballot(self, mechanism: Designed, game: NormalForm, proposals: Sequence[Answer | None], me: int) -> str:
        """The proposals, each with its author."""
        lines = [self.text("ballot", thing=mechanism.thing)]
        for seat, design in enumerate(proposals):
            told = self.text("no offer") if design is None else self.tell(mechanism, game, design)
            who = {"number": seat + 1, "name": player_name(seat, me)}
            lines.append(self.text("offer", thing=mechanism.thing, design=told, **who))
        return "\n".join(lines)

    def tell(self, mechanism: Designed, game: NormalForm, design: Answer) -> str:
        """A design as text."""
        return mechanism.tell(game, design)

    def no_design(self, mechanism: Designed, *, proposed: bool) -> str:
        """The notice that there are no proposals, that none was approved, or that choices differed."""
        unselected = "Players did not all choose the same one" if mechanism.selection == "choice" else "Nobody approved"
        why = unselected if proposed else "Nobody made a valid proposal"
        return f"## The {mechanism.thing}\n{why}; the game continues without a {mechanism.thing}."

    def design(self, mechanism: Designed, game: NormalForm, design: Answer, proposers: Sequence[int], me: int) -> str:
        """The winning design and its proposers, as text for one player."""
        numbers = " and ".join(f"P{seat + 1}" for seat in proposers)
        told = self.tell(mechanism, game, design)
        return self.text("design", numbers=numbers, names=player_names(proposers, me), design=told)

    def in_force(self, mechanism: Designed, game: NormalForm, design: str) -> str:
        """The design in force."""
        return self.text("signed" if mechanism.is_signed else "in force", thing=mechanism.thing, design=design)


OURS = Wording()


def player_name(seat: int, me: int) -> str:
    """A player's name from another player's view."""
    return "you" if seat == me else f"player {seat + 1}"


def player_names(seats: Sequence[int], me: int) -> str:
    """Players' names from the view of one of them."""
    return " and ".join(player_name(seat, me) for seat in seats)


def actions_text(heading: str, actions: Sequence[str], me: int) -> str:
    """Each player's action below a heading, from the view of one player."""
    lines = [f"- {player_name(seat, me)}: {action}" for seat, action in enumerate(actions)]
    return "\n".join([f"## {heading}", *lines])


def _played(played: int) -> str:
    return f"Rounds played so far: {played}."


def _encounter(game: NormalForm, encounter: Encounter, me: str) -> str:
    parts = []
    for deed, payoff in zip(encounter.match, encounter.payoffs, strict=True):
        who = f"{deed.agent}{' (you)' if deed.agent == me else ''}"
        role = "" if game.is_symmetric else f" as player {deed.seat + 1}"
        parts.append(f"{who}{role}: {deed.action}, {counted(f'{payoff:g}', 'point')}")
    return "; ".join(parts)
