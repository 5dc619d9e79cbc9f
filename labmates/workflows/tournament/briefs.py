"""The prompts of a tournament (rules, goal, past, request), and the answers to them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal

from langchain_core.messages import BaseMessage
from pydantic import create_model

from labmates.agents.decisions import Form
from labmates.agents.prompts import Prompts
from labmates.games.base import counted
from labmates.games.iterated.match import LABELS, Action, Match, Round
from labmates.games.iterated.questions import OPPONENT, UNDECIDABLE, Question
from labmates.models.orders import Order
from labmates.workflows.calls.remarks import form_text
from labmates.workflows.play.wordings import lengthened, renamed, replaced, word_count
from labmates.workflows.tournament.condition import TournamentCondition
from labmates.workflows.tournament.wordings import NEUTRAL, WORDINGS

render = Prompts(__package__).render

_PAYOFFS = ("reward", "punishment", "sucker", "temptation")
_REVERSED = ("punishment", "reward", "temptation", "sucker")
"""The same, if the rules list the actions in reverse."""
_FIRST = "the first round of a match"
KIND = "tournament"
"""The kind of the orders."""
REAL_WORDS: Mapping[str, str] = {LABELS["C"]: "cooperate", LABELS["D"]: "defect"}
"""Meaningful words for the actions, by their neutral labels."""
_IN_FACTS = (LABELS["C"], LABELS["D"], OPPONENT)
"""Words in the facts that a wording may replace."""
_HINTS = {
    "number": "a whole number",
    "action": '"action_a" or "action_b"',
    "actions": "a list of actions",
    "yes_no": '"yes" or "no"',
    "yes_no_open": '"yes", "no" or "not decidable"',
}


@lru_cache
def move_form(actions: tuple[str, ...], *, may_leave: bool) -> type[Form]:
    """The form of a move: the reasoning, then an action or, from the second round, leaving the match.

    Parameters
    ----------
    actions
        Displayed names of both actions.
    """
    move: Any = Literal[(*actions, LABELS["leave"])] if may_leave else Literal[actions]
    name, when = ("LaterMove", "a later round, when a player may leave") if may_leave else ("FirstMove", _FIRST)
    return create_model(name, __base__=Form, __doc__=f"A move in {when}.", reasoning=(str, ""), move=(move, ...))


@lru_cache
def wishes_form(others: tuple[str, ...]) -> type[Form]:
    """The form of wishes: the reasoning, then the desired teammates."""
    player: Any = Literal[others]
    return create_model("Wishes", __base__=Form, __doc__="Wishes.", reasoning=(str, ""), wanted=(list[player], ...))


def answers_form(questions: Sequence[Question], actions: tuple[str, ...]) -> type[Form]:
    """The form of answers to these questions; `actions` are the displayed names of both actions."""
    action: Any = Literal[actions]
    move: Any = Literal[(*actions, LABELS["leave"])]
    kinds: dict[str, Any] = {
        "number": int,
        "action": action,
        "actions": list[move],
        "yes_no": Literal["yes", "no"],
        "yes_no_open": Literal["yes", "no", UNDECIDABLE],
    }
    fields: dict[str, Any] = {question.id: (kinds[question.kind], ...) for question in questions}
    return create_model("Answers", __base__=Form, **fields)


@dataclass(frozen=True)
class View:
    """The knowledge of a player before a round."""

    player: str
    memory: tuple[Match, ...]  # its completed matches
    rounds: tuple[Round, ...]  # the present match as executed, with its moves first
    opponent: str  # name of the opponent; empty before the first round, when it is unknown
    left: int  # rounds left to it
    plan: str  # its latest plan; empty if there is none
    # Its own and its opponent's messages in the present match, with the number of the following round.
    messages: tuple[tuple[int, str, str], ...] = ()
    # The opponent's cooperative moves and all moves in its earlier matches; None if not shown.
    reputation: tuple[int, int] | None = None
    # The moves that it chose in the present match, if noise may have flipped them; by default those executed.
    chosen: tuple[Action, ...] = ()
    points: tuple[tuple[str, int], ...] = ()  # the points of all players before the match; empty if not shown
    shared: tuple[tuple[str, str], ...] = ()  # the latest plans of its teammates; empty if not shared


class Briefing:
    """The prompts of one tournament.

    All players read the same system message. Then comes the request of the step or, in planning, the finished matches;
    then the current match, to which each round only adds; last the round and the player. Servers cache prompts by their
    beginning.

    Attributes
    ----------
    listed
        Both actions in the order of the rules.
    labels
        Displayed names of actions, by label.
    """

    def __init__(self, condition: TournamentCondition, *, is_reversed: bool = False) -> None:
        self._condition = condition
        self._words = WORDINGS[condition.wording](condition)
        self.listed: tuple[Action, Action] = ("D", "C") if is_reversed else ("C", "D")
        places = [LABELS["C"], LABELS["D"]]
        names = [REAL_WORDS[LABELS[action]] for action in self.listed] if condition.ablation == "real-words" else places
        self.labels = dict(zip((LABELS[action] for action in self.listed), names, strict=True))
        neutral = NEUTRAL if condition.ablation == "neutral" else {}
        # Rules name actions by their place in the list; all other texts by their label.
        self._of_rules = {**dict(zip(places, names, strict=True)), **neutral}
        self._vocabulary = {**self.labels, **neutral}
        self._system = self._rules()

    def move(self, view: View) -> list[BaseMessage]:
        """The prompt for a move."""
        moves = [LABELS[action] for action in self.listed] + ([LABELS["leave"]] if view.rounds else [])
        more = {"moves": " or ".join(f'"{move}"' for move in moves), "form": form_text(("reasoning", "move"))}
        if self._condition.critique_turns:
            more["memory"] = "Your plan is renewed from them from time to time."
        return self._in_match(view, "move", **more)

    def message(self, view: View) -> list[BaseMessage]:
        """The prompt for a message to the opponent."""
        return self._in_match(view, "message")

    def _in_match(self, view: View, step: str, **more: str) -> list[BaseMessage]:
        messages = [
            f"Before round {number}\nYou: {own or '(nothing)'}\nThe other player: {other or '(nothing)'}"
            for number, own, other in view.messages
        ]
        # What changes least comes first.
        parts = {"plan": "Your plan"} if self._condition.critique_turns else {}
        parts |= {"messages": "Messages in this match"} if view.messages else {}
        text = self._text(
            step,
            {"plan": view.plan or "You have none yet.", "messages": "\n".join(messages)},
            history=self._history(view.rounds, view.chosen),
            told="".join(f"## {head}\n${name}\n\n" for name, head in parts.items()),
            now=self._now(view, step),
            round=len(view.rounds) + 1,
            **{"memory": "", **more},
        )
        return self._order(view, step, text)

    def introduction(self, player: str) -> list[BaseMessage]:
        """The prompt for a player's introduction."""
        text = replaced(render("introduction", who=self._who(player)), self._team_words)
        return self._before_teams(player, "introduction", text)

    def wishes(self, player: str, introductions: Mapping[str, str]) -> list[BaseMessage]:
        """The prompt for the desired teammates of a player, with the introductions of all players."""
        others = {other: text for other, text in introductions.items() if other != player}
        most = len(self._condition.players_of["A"]) - 1
        form = form_text(("reasoning", "wanted"))
        text = replaced(
            render("wishes", introductions="$introductions", most=most, who=self._who(player), form=form),
            self._team_words,
        )
        # One line each, since a further line could pass for another player's introduction.
        lines = "\n".join(f"Player {other}: {' '.join(said.split()) or '(nothing)'}" for other, said in others.items())
        facts = {"others": list(others), "most": most}
        return self._before_teams(player, "wishes", text.replace("$introductions", lines), **facts)

    def _before_teams(self, player: str, step: str, text: str, **facts: Any) -> list[BaseMessage]:
        return self._order(View(player, (), (), "", self._condition.total_rounds, ""), step, text, **facts)

    @cached_property
    def _team_words(self) -> Mapping[str, str]:
        groups = {"team": "group", "teams": "groups"} if self._condition.wording == "paper" else {}
        return {**groups, **self._vocabulary}

    def plan(self, view: View) -> list[BaseMessage]:
        """The planner's prompt for a draft."""
        return self._planning(view, "plan", "plan", plan=view.plan or "There is none yet.")

    def critique(self, view: View, draft: str) -> list[BaseMessage]:
        """The critic's prompt on a draft."""
        return self._planning(view, "critique", "critique", draft=draft)

    def improve(self, view: View, draft: str, critique: str) -> list[BaseMessage]:
        """The planner's prompt for an improved plan."""
        return self._planning(view, "improved plan", "improve", draft=draft, critique=critique)

    def questions(self, view: View, questions: Sequence[Question]) -> list[BaseMessage]:
        """The prompt with comprehension questions on a completed match."""
        lines = (f'- "{question.id}": {question.text} ({_HINTS[question.kind]})' for question in questions)
        text = render(
            "questions",
            number=len(view.memory) + 1,
            matches=self._condition.matches_of(view.player),
            who=self._who(view.player),
            history=self._history(view.rounds, view.chosen),
            questions="\n".join(lines),
            form=form_text(question.id for question in questions),
        )
        facts = {question.id: question.facts for question in questions}
        return self._order(view, "questions", replaced(text, self._vocabulary), questions=facts)

    def _planning(self, view: View, step: str, template: str, **written: str) -> list[BaseMessage]:
        situation = render(
            f"situation_{self._condition.wording}",
            memory="\n\n".join(self._remembered(view.player, match) for match in view.memory) or "None yet.",
            history=self._history(view.rounds, view.chosen),
        )
        blanks = {name: f"${name}" for name in written}
        if view.shared:
            heading = replaced("# The latest plans of the other players of your team", self._team_words)
            situation += f"\n\n{heading}\n$mates"
            # One line each, since a further line could pass for another player's plan.
            written["mates"] = "\n".join(f"{mate}: {' '.join(plan.split())}" for mate, plan in view.shared)
        now = self._now(view, step)
        return self._order(view, step, self._text(template, written, situation=situation, now=now, **blanks))

    def _text(self, template: str, written: Mapping[str, str], **values: object) -> str:
        """A text in the condition's words, with the players' texts inserted unchanged."""
        text = replaced(render(f"{template}_{self._condition.wording}", **values), self._vocabulary)
        return re.sub(rf"\$({'|'.join(written)})\b", lambda name: written[name[1]], text)

    def _order(self, view: View, step: str, text: str, **facts: Any) -> list[BaseMessage]:
        rounds = [[LABELS[own], LABELS[other]] for own, other in view.rounds]
        order = Order(KIND, self._reworded({"step": step, "rounds": rounds, **facts}), text)
        return [self._system, order.human()]

    def _rules(self) -> BaseMessage:
        condition = self._condition
        payoffs = {name: getattr(condition, name) for name in _PAYOFFS}
        text = self._system_text(condition)
        if condition.ablation == "length-matched":
            structures = ("ri", "gc", "sa") if condition.teams > 1 else ("ri", "sa")
            others = (condition.model_copy(update={"structure": structure}) for structure in structures)
            text = lengthened(text, max(word_count(self._system_text(other)) for other in others))
        length = condition.rounds if condition.continuation == 1 else None
        facts = {"length": length, "payoffs": payoffs, "labels": [LABELS["C"], LABELS["D"]]}
        return Order(KIND, self._reworded(facts), replaced(text, self._of_rules)).system()

    def _reworded(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        reworded: dict[str, Any] = renamed(facts, {name: replaced(name, self._vocabulary) for name in _IN_FACTS})
        return reworded

    def _system_text(self, condition: TournamentCondition) -> str:
        wording = condition.wording
        teams = ""
        if condition.structure != "ri":
            noun = "group" if wording == "paper" else "team"
            number = f"1 {noun}" if condition.teams == 1 else f"{condition.teams} {noun}s"
            teams = "\n" + render(f"team_rules_{wording}", teams=number)
            if condition.team_choice == "wished":
                rule = "- Teams are formed before the first match, by the wishes of the players."
                teams += "\n" + replaced(rule, self._team_words)
            if condition.plans == "shared":
                rule = "- Whoever plans reads the latest plans of the other players of its team."
                teams += "\n" + replaced(rule, self._team_words)
        goal = render(f"goal_{condition.structure}_{wording}")
        return render(
            f"system_{wording}",
            players=len(condition.players),
            opponents=_opponents(condition),
            rounds=counted(condition.rounds, "round"),
            **self._points(),
            total_rounds=counted(condition.total_rounds, "round"),
            further_rules=_further_rules(condition, LABELS["C" if self.listed[0] == "C" else "D"]),
            team_rules=teams,
            aim="" if condition.ablation == "no-aim" else render(f"aim_{wording}", goal=goal),
        )

    def _points(self) -> dict[str, str]:
        """The points of the rules, by the places of both actions in the list."""
        places = _PAYOFFS if self.listed[0] == "C" else _REVERSED
        return {name: counted(getattr(self._condition, of), "point") for name, of in zip(_PAYOFFS, places, strict=True)}

    def _who(self, player: str) -> str:
        """A player's name and its team, as far as teams exist and matter."""
        condition = self._condition
        who = f"You are player {player}{self._words.own_team(player)}."
        if condition.structure == "ri":
            return who
        mates = condition.mates(player)
        size = f"{len(mates) + 1} players" if mates else "no player but you"
        team = f" Your team has {size}."
        if condition.team_choice == "wished" and condition.has_teams:
            team = f" With you in your team: {', '.join(mates) or 'nobody'}."
        return who + replaced(team, self._team_words)

    def _now(self, view: View, step: str) -> str:
        words = self._words
        return render(
            f"now_{self._condition.wording}",
            step=step,
            number=len(view.memory) + 1,
            matches=self._condition.matches_of(view.player),
            round=len(view.rounds) + 1,
            rounds=self._condition.rounds,
            who=self._who(view.player),
            opponent=(words.opponent(view.player, view.opponent) if view.opponent else words.unknown) + _record(view),
            left=f"{view.left}{self._standing(view)}",
        )

    def _standing(self, view: View) -> str:
        """The points and places of the player and its team before the match, as a further line."""
        if not view.points:
            return ""
        condition, points = self._condition, dict(view.points)
        teams = {team: sum(points[player] for player in players) for team, players in condition.players_of.items()}
        own, team = _place(view.player, points), _place(condition.players[view.player], teams)
        shown = {"ri": f"you {own}", "gc": f"your team {team}", "sa": f"you {own}; your team {team}"}
        return "\n" + replaced(f"Before this match: {shown[condition.structure]}", self._team_words)

    def _remembered(self, player: str, match: Match) -> str:
        lines = self._lines(match.seen_by(player), match.chosen_by(player))
        return "\n".join([self._words.match(player, match), *lines])

    def _history(self, rounds: Sequence[Round], chosen: Sequence[Action]) -> str:
        return "\n".join(self._lines(rounds, chosen)) or "No round has been played yet."

    def _lines(self, rounds: Sequence[Round], chosen: Sequence[Action]) -> list[str]:
        both = zip(rounds, chosen or [own for own, _ in rounds], strict=True)
        return [self._words.round(number, round_, move) for number, (round_, move) in enumerate(both, start=1)]


def _further_rules(condition: TournamentCondition, cooperation: str) -> str:
    """The further rules that apply; `cooperation` is named as in rules."""
    rules = ""
    if condition.continuation < 1:
        rules += "\n" + render("end_rule", probability=f"{condition.continuation:g}")
    if condition.noise:
        rules += "\n" + render("noise_rule", probability=f"{condition.noise:g}")
    if condition.reputation == "shown":
        rules += "\n" + render("reputation_rule", action=cooperation)
    if condition.standings == "shown":
        rules += "\n" + render("standings_rule")
    return rules


def _record(view: View) -> str:
    """The opponent's earlier moves, as shown after its name."""
    if view.reputation is None:
        return ""
    cooperated, moves = view.reputation
    return (
        f"; its moves in earlier matches: {moves}, of which {LABELS['C']}: {cooperated}"
        if moves
        else "; it has not moved before"
    )


def _place(who: str, points: Mapping[str, int]) -> str:
    """Points and place among all; equal points share a place."""
    place = 1 + sum(other > points[who] for other in points.values())
    return f"{counted(points[who], 'point')}, place {place} of {len(points)} (first: {max(points.values())})"


def _opponents(condition: TournamentCondition) -> str:
    """The opponents of a player, in words that follow "each"."""
    if condition.structure == "gc":
        return f"player of the other team{'s' if condition.teams > 2 else ''}"
    return "of the other players" + (", those of your own team included" if condition.structure == "sa" else "")
