"""The wording of the built-in mechanisms: what players read of rules, earlier rounds, proposals and designs.

`Wording` is the project's own; `labmates.mechanisms.wording_paper` tells the same facts with the content of CoopEval's
prompts. A mechanism of another package words itself, in its rules and in what it tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from labmates.games.normal_form import NormalForm
    from labmates.mechanisms.base import Answer, Mechanism
    from labmates.mechanisms.negotiation import Negotiation
    from labmates.mechanisms.norms import Match


@dataclass(frozen=True)
class Encounter:
    """A match that was played under reputation: who did what, and what each got."""

    agents: tuple[int, ...]
    match: Match
    payoffs: tuple[float, ...]


@dataclass(frozen=True)
class Acquaintance:
    """A player's knowledge under reputation.

    Attributes
    ----------
    group
        The agents of the present match, by seat.
    seat
        The player's own.
    names
        Of all agents.
    known
        The matches that it knows of, by round, the newest first.
    order
        1: the matches of co-players; 3: also those of their co-players, and so on.
    played
        The number of rounds played.
    """

    group: Sequence[int]
    seat: int
    names: dict[int, str]
    known: Sequence[Sequence[Encounter]]
    order: int
    played: int

    @property
    def me(self) -> str:
        """The player's own name."""
        return self.names[self.group[self.seat]]


class Wording:
    """The project's own wording.

    Attributes
    ----------
    follows_own
        Whether, under reputation of order 3, a player also sees what its own earlier co-players had done before.
    """

    follows_own: ClassVar[bool] = False

    def labels(self, game: NormalForm) -> dict[str, str]:
        """The names under which players read actions, by label; those that are not in it keep their label."""
        del game
        return {}

    def rules(self, mechanism: Mechanism, game: NormalForm) -> str:
        """The description of a mechanism for all players."""
        return mechanism.rules(game)

    def choice(self) -> str:
        """The request for a distribution over actions."""
        return (
            "Choose: with what probability do you take each action, in whole percentages that add up to 100? Your "
            "action is drawn from these probabilities."
        )

    def rounds(self, game: NormalForm, deeds: Sequence[Sequence[str]], me: int, played: int) -> str:
        """The last rounds with the same players.

        Parameters
        ----------
        deeds
            By round, the newest first, and seat.
        me
            The seat of the reader.
        played
            The number of rounds played.
        """
        del game
        if not deeds:
            return "## Earlier rounds\nThis is the first round."
        lines = [_played(played)]
        for ago, actions in enumerate(deeds, start=1):
            did = (f"{player_name(seat, me)}: {action}" for seat, action in enumerate(actions))
            lines.append(f"- {_ago(ago)}: {'; '.join(did)}")
        return "\n".join(["## Earlier rounds, latest first", *lines])

    def matches(self, game: NormalForm, knows: Acquaintance) -> str:
        """The matches that a player knows of under reputation."""
        met = ", ".join(
            f"player {seat + 1} is {knows.names[agent]}" for seat, agent in enumerate(knows.group) if seat != knows.seat
        )
        shown = [
            f"- {_ago(ago)}: {_encounter(game, encounter, knows.me)}"
            for ago, encounters in enumerate(knows.known, start=1)
            for encounter in encounters
        ]
        return "\n".join(
            [
                f"## This round\n{_played(knows.played)} You are {knows.me}. In this round {met}.",
                "\n## Matches that you know of, latest round first",
                *(shown or ["There are none yet."]),
            ]
        )

    def proposal(self, mechanism: Negotiation, game: NormalForm, *, once: bool) -> str:
        """The request for a proposal.

        Parameters
        ----------
        once
            Whether it is put to the vote in all matches of the player at this seat.
        """
        often = " You propose only once: it is put to the vote whenever you play in this position." if once else ""
        return f"{mechanism.ask_for(game)}{often}"

    def ballot(self, mechanism: Negotiation, game: NormalForm, proposals: Sequence[Answer | None], me: int) -> str:
        """The proposals, each with the number of its author."""
        lines = [f"## Proposals for the {mechanism.thing}"]
        for seat, design in enumerate(proposals):
            design_text = "no valid proposal" if design is None else mechanism.tell(game, design)
            lines.append(f"- P{seat + 1} (proposed by {player_names([seat], me)}): {design_text}")
        return "\n".join(lines)

    def vote(self, mechanism: Negotiation) -> str:
        """The request for approvals."""
        if mechanism.selection == "choice":
            return "Choose one of the proposals, or none. A proposal takes effect if all players choose it."
        return "Vote: which of the proposals do you approve of? You may approve of any number, including all or none."

    def signature(self, mechanism: Negotiation) -> str:
        """The request for a signature."""
        return f"Sign: do you sign the {mechanism.thing}? It takes effect only if all players sign it."

    def no_design(self, mechanism: Negotiation, *, proposed: bool) -> str:
        """The news that nobody has proposed anything, or that not all chose the same."""
        why = "Players did not all choose the same one" if proposed else "Nobody made a valid proposal"
        return f"## The {mechanism.thing}\n{why}; the game continues without a {mechanism.thing}."

    def design(
        self, mechanism: Negotiation, game: NormalForm, design: Answer, proposers: Sequence[int], me: int
    ) -> str:
        """The design that has won the vote, and who proposed it, as one player reads it."""
        names = " and ".join(f"P{seat + 1}" for seat in proposers)
        return f"{names} (proposed by {player_names(proposers, me)}): {mechanism.tell(game, design)}"

    def winner(self, mechanism: Negotiation, design: str) -> str:
        """The design that has won the vote (see `design`), before it is signed."""
        return f"## The {mechanism.thing} that won the vote\n{design}"

    def refused(self, mechanism: Negotiation, design: str, refusers: Sequence[int], me: int) -> str:
        """The news that a design does not hold, and who did not sign it."""
        names = player_names(refusers, me)
        return f"## The {mechanism.thing}\nIt does not take effect, because {names} did not sign: {design}"

    def in_force(self, mechanism: Negotiation, game: NormalForm, design: str) -> str:
        """The design that holds from now on."""
        del game
        signed = "\nAll players signed it." if mechanism.is_signed else ""
        return f"## The {mechanism.thing} in effect\n{design}{signed}"


OURS = Wording()


def player_name(seat: int, me: int) -> str:
    """A player's name from the view of another one."""
    return "you" if seat == me else f"player {seat + 1}"


def player_names(seats: Sequence[int], me: int) -> str:
    """Players' names from the view of one of them."""
    return " and ".join(player_name(seat, me) for seat in seats)


def actions_text(heading: str, actions: Sequence[str], me: int) -> str:
    """An action of each player below a heading, from the view of one of them."""
    lines = [f"- {player_name(seat, me)}: {action}" for seat, action in enumerate(actions)]
    return "\n".join([f"## {heading}", *lines])


def _played(played: int) -> str:
    return f"Rounds played so far: {played}."


def _ago(ago: int) -> str:
    return f"{ago} round{'s' if ago > 1 else ''} ago"


def _encounter(game: NormalForm, encounter: Encounter, me: str) -> str:
    parts = []
    for deed, payoff in zip(encounter.match, encounter.payoffs, strict=True):
        who = f"{deed.agent}{' (you)' if deed.agent == me else ''}"
        role = "" if game.is_symmetric else f" as player {deed.seat + 1}"
        parts.append(f"{who}{role}: {deed.action}, {payoff:g} points")
    return "; ".join(parts)
