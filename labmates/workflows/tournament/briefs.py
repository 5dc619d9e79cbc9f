"""What players of a tournament are told: rules, goal, what they have seen, and what they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage

from labmates.agents.prompts import render
from labmates.games.iterated.match import LABELS, Match, Round
from labmates.games.iterated.questions import Question
from labmates.models.orders import Order
from labmates.workflows.asking import form_text
from labmates.workflows.tournament.condition import TournamentCondition

KIND = "tournament"
"""Of the orders."""
UNKNOWN = "unknown before the first round has been played"
_ENDS = {
    "length": "it had all its rounds",
    "rounds": "a player had no rounds left",
    "forfeit": "a player gave no valid move",
    "not_played": "it was not played, since a player had no rounds left",
}
_HINTS = {
    "number": "a whole number",
    "action": '"action_a" or "action_b"',
    "actions": "a list of actions",
    "yes_no": '"yes" or "no"',
    "yes_no_open": '"yes", "no" or "not decidable"',
}


@dataclass(frozen=True)
class View:
    """What one player knows before a round.

    Attributes
    ----------
    player
        Who it is.
    memory
        Its matches that are over.
    rounds
        The present match, its own actions first.
    opponent
        Name of the opponent; empty before the first round, when it is unknown.
    left
        Rounds that it has left.
    plan
        Its newest plan; empty if there is none.
    """

    player: str
    memory: tuple[Match, ...]
    rounds: tuple[Round, ...]
    opponent: str
    left: int
    plan: str


class Briefing:
    """Writes the prompts of one tournament."""

    def __init__(self, condition: TournamentCondition) -> None:
        self._condition = condition
        self._systems = {player: self._rules(player) for player in condition.players}

    def move(self, view: View) -> list[BaseMessage]:
        """Ask for a move."""
        plan = f"\n## Your plan\n{view.plan or 'You have none yet.'}\n" if self._condition.critique_turns else ""
        moves = [LABELS["C"], LABELS["D"], *([LABELS["leave"]] if view.rounds else [])]
        text = render(
            "tournament_move",
            **self._where(view),
            history=self._history(view.rounds),
            plan=plan,
            moves=" or ".join(f'"{move}"' for move in moves),
            form=form_text(("move", "reasoning")),
        )
        return self._order(view, "move", text)

    def plan(self, view: View) -> list[BaseMessage]:
        """Ask the planner for a draft."""
        return self._planning(view, "plan", "tournament_plan", plan=view.plan or "There is none yet.")

    def critique(self, view: View, draft: str) -> list[BaseMessage]:
        """Ask the critic what is wrong with a draft."""
        return self._planning(view, "critique", "tournament_critique", draft=draft)

    def improve(self, view: View, draft: str, critique: str) -> list[BaseMessage]:
        """Ask the planner for a better plan."""
        return self._planning(view, "improved plan", "tournament_improve", draft=draft, critique=critique)

    def questions(self, view: View, questions: Sequence[Question]) -> list[BaseMessage]:
        """Ask what a player has understood of a match that is over."""
        lines = (f'- "{one.id}": {one.text} ({_HINTS[one.kind]})' for one in questions)
        text = render(
            "tournament_questions",
            number=len(view.memory) + 1,
            matches=self._condition.matches_of(view.player),
            history=self._history(view.rounds),
            questions="\n".join(lines),
            form=form_text(one.id for one in questions),
        )
        return self._order(view, "questions", text, questions={one.id: one.facts for one in questions})

    def _planning(self, view: View, step: str, template: str, **values: str) -> list[BaseMessage]:
        text = render(template, situation=self._situation(step, view), player=view.player, **values)
        return self._order(view, step, text)

    def _order(self, view: View, step: str, text: str, **facts: Any) -> list[BaseMessage]:
        rounds = [[LABELS[own], LABELS[other]] for own, other in view.rounds]
        order = Order(KIND, {"step": step, "rounds": rounds, **facts}, text)
        return [self._systems[view.player], order.human()]

    def _rules(self, player: str) -> BaseMessage:
        condition = self._condition
        teams = ""
        if condition.structure != "ri":
            size = len(condition.players_of[condition.players[player]])
            of = f"{size} players" if size > 1 else "no player but you"
            number = "1 team" if condition.teams == 1 else f"{condition.teams} teams"
            teams = "\n" + render("tournament_team_rules", teams=number, size=of)
        payoffs = {name: getattr(condition, name) for name in ("reward", "punishment", "sucker", "temptation")}
        text = render(
            "tournament_system",
            player=player,
            players=len(condition.players),
            matches=condition.matches_of(player),
            opponents=_opponents(condition),
            rounds=condition.rounds,
            **payoffs,
            budget=condition.budget,
            team_rules=teams,
            goal=render(f"tournament_goal_{condition.structure}"),
        )
        return Order(KIND, {"length": condition.rounds, "payoffs": payoffs}, text).system()

    def _where(self, view: View) -> dict[str, object]:
        return {
            "number": len(view.memory) + 1,
            "matches": self._condition.matches_of(view.player),
            "round": len(view.rounds) + 1,
            "rounds": self._condition.rounds,
            "opponent": self._named(view.player, view.opponent) if view.opponent else UNKNOWN,
            "left": view.left,
        }

    def _situation(self, step: str, view: View) -> str:
        return render(
            "tournament_situation",
            step=step,
            **self._where(view),
            memory="\n\n".join(self._remembered(view.player, match) for match in view.memory) or "None yet.",
            history=self._history(view.rounds),
        )

    def _remembered(self, player: str, match: Match) -> str:
        opponent, rounds = match.opponent(player), match.seen_by(player)
        own, other = (self._condition.payoffs.total(seen) for seen in (rounds, match.seen_by(opponent)))
        if match.end == "leave":
            who = " and ".join(
                "you" if one == player else "the opponent" for one in sorted(match.by, key=player.__ne__)
            )
            end = f"{who} left"
        else:
            end = _ENDS[match.end]
        # An opponent of whom no round was seen stays unknown.
        against = self._named(player, opponent) if rounds else "an unknown opponent"
        head = f"## Against {against}: {len(rounds)} rounds, you {own} points, opponent {other} points; {end}"
        return "\n".join([head, *self._lines(rounds)])

    def _history(self, rounds: Sequence[Round]) -> str:
        return "\n".join(self._lines(rounds)) or "No round has been played yet."

    def _lines(self, rounds: Sequence[Round]) -> list[str]:
        payoffs = self._condition.payoffs
        return [
            f"Round {number}: you {LABELS[own]}, opponent {LABELS[other]}; "
            f"you {payoffs.of(own, other)} points, opponent {payoffs.of(other, own)} points"
            for number, (own, other) in enumerate(rounds, start=1)
        ]

    def _named(self, player: str, opponent: str) -> str:
        """Return what a player is told of an opponent that it knows."""
        condition = self._condition
        if condition.structure == "ri":
            return f"player {opponent}"
        team = condition.players[opponent]
        if team == condition.players[player]:
            return f"player {opponent}, of your own team"
        return f"player {opponent}, of {'the other team' if condition.teams == 2 else f'team {team}'}"


def _opponents(condition: TournamentCondition) -> str:
    """Return whom a player meets, in words that follow "each"."""
    if condition.structure == "gc":
        return f"player of the other team{'s' if condition.teams > 2 else ''}"
    return "of the other players" + (", those of your own team included" if condition.structure == "sa" else "")
