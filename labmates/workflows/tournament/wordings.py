"""The two wordings of matches for players: the project's own, and one with the content of the paper's prompts.

The texts of rules, goals and questions are pairs of templates, ``tournament_*_ours.md`` and ``tournament_*_paper.md``.
"""

from __future__ import annotations

from collections.abc import Mapping

from labmates.games.base import counted
from labmates.games.iterated.match import LABELS, Action, Match, Payoffs, Round
from labmates.workflows.play.wordings import Wording
from labmates.workflows.tournament.condition import TournamentCondition

NEUTRAL: Mapping[str, str] = {
    "compete": "play",
    "group": "set",
    "groups": "sets",
    "opponent": "counterpart",
    "opponents": "counterparts",
    "team": "set",
    "teams": "sets",
    "tournament": "series",
}
"""Words that suggest teams or contest, with neutral replacements."""
_ENDS = {
    "length": "all its rounds were played",
    "chance": "no further round was drawn",
    "rounds": "a player had no rounds left",
    "forfeit": "a player gave no valid move",
    "not_played": "it was not played, since a player had no rounds left",
}


class Ours:
    """The project's own wording."""

    def __init__(self, condition: TournamentCondition) -> None:
        self._condition = condition
        self._payoffs: Payoffs = condition.payoffs

    @property
    def unknown(self) -> str:
        """The opponent before the first round of a match."""
        return "unknown before the first round has been played"

    def own_team(self, player: str) -> str:
        """The note on a player's own team, after its name."""
        return ""

    def opponent(self, player: str, opponent: str) -> str:
        """An opponent by name, with its team if known."""
        condition = self._condition
        if condition.structure == "ri":
            return f"player {opponent}"
        team = condition.players[opponent]
        if team == condition.players[player]:
            return f"player {opponent}, of your own team"
        return f"player {opponent}, of {'the other team' if condition.teams == 2 else f'team {team}'}"

    def round(self, number: int, round_: Round, chosen: Action) -> str:
        """A round of the present or a completed match, with the player's choice if noise flipped it."""
        own, other = round_
        points = [counted(self._payoffs.of(*pair), "point") for pair in ((own, other), (other, own))]
        flipped = f" (you chose {LABELS[chosen]})" if chosen != own else ""
        return (
            f"Round {number}: you {LABELS[own]}{flipped}, opponent {LABELS[other]}; you {points[0]}, "
            f"opponent {points[1]}"
        )

    def match(self, player: str, match: Match) -> str:
        """The heading of a completed match."""
        opponent, rounds = match.opponent(player), match.seen_by(player)
        own, other = (self._payoffs.total(seen) for seen in (rounds, match.seen_by(opponent)))
        # Without rounds the opponent stays unknown.
        against = self.opponent(player, opponent) if rounds else "an unknown opponent"
        length, mine, theirs = counted(len(rounds), "round"), counted(own, "point"), counted(other, "point")
        return f"## Against {against}: {length}, you {mine}, opponent {theirs}; {_end(player, match)}"


class Paper(Ours):
    """The content of the prompts of the super-additive paper, section 3.4, in sentences of our own."""

    def own_team(self, player: str) -> str:
        """The name of the player's group."""
        condition = self._condition
        return f" of group {condition.players[player]}" if condition.has_teams and condition.structure != "ri" else ""

    def opponent(self, player: str, opponent: str) -> str:
        """An opponent with its group."""
        return f"player {opponent}{self.own_team(opponent)}"

    def round(self, number: int, round_: Round, chosen: Action) -> str:
        """Actions and points of a round."""
        own, other = round_
        flipped = f", which was carried out as {LABELS[own]}" if chosen != own else ""
        return (
            f"Round {number}: you chose {LABELS[chosen]}{flipped}, your opponent {LABELS[other]}. Points: "
            f"{self._payoffs.of(own, other):+d} for you, {self._payoffs.of(other, own):+d} for your opponent"
        )

    def match(self, player: str, match: Match) -> str:
        """The heading of a match: its players and its end."""
        against = self.opponent(player, match.opponent(player)) if match.rounds else "an unknown opponent"
        return f"## Match between you (player {player}) and {against}; {_end(player, match)}"


WORDINGS: Mapping[Wording, type[Ours]] = {"ours": Ours, "paper": Paper}


def _end(player: str, match: Match) -> str:
    if match.end != "leave":
        return _ENDS[match.end]
    who = " and ".join("you" if other == player else "the opponent" for other in sorted(match.by, key=player.__ne__))
    return f"{who} left"
