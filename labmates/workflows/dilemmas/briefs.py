"""What players of a social dilemma are told: the game from where they sit, the mechanism, and what is asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from langchain_core.messages import BaseMessage

from labmates.agents.prompts import render
from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import Blank, Mechanism, Question, past_of
from labmates.models.orders import Order
from labmates.workflows.asking import form_text
from labmates.workflows.dilemmas.forms import keys_of

KIND = "dilemma"
"""Of the orders."""


class Briefing:
    """Writes the prompts of one cross-play."""

    def __init__(self, game: NormalForm, mechanisms: Sequence[Mechanism]) -> None:
        self._game = game
        self._rules = _nested(game, mechanisms)
        self._system = cache(self._make_system)

    def ask(self, question: Question, reasoning: str) -> list[BaseMessage]:
        """Return the messages of a question.

        Parameters
        ----------
        reasoning
            What the player is asked for before it decides: ``none``, ``cot`` or ``tom``.
        """
        told = "\n\n".join(question.told)
        text = render(
            "dilemma_ask",
            stage=question.stage,
            told=f"{told}\n" if told else "",
            ask=question.ask,
            reasoning=render(f"game_reasoning_{reasoning}"),
            keys=keys_of(question.sheet),
            form=form_text(blank.name for blank in question.sheet.blanks),
        )
        return [self._system(question.seat), Order(KIND, _facts(question), text).human()]

    def _make_system(self, seat: int) -> BaseMessage:
        game = self._game
        names = [f"player {other + 1}" for other in range(game.players) if other != seat]
        heads = [f"you (player {seat + 1})", *names, "your points", *(f"points of {name}" for name in names)]
        table = payoff_table(game, seat)
        text = render(
            "dilemma_system",
            you=f"player {seat + 1}",
            players=game.players,
            actions=", ".join(game.labels[seat]),
            table="\n".join(map(_row, [heads, ["---"] * len(heads), *table])),
            rules=self._rules,
        )
        return Order(KIND, {"seat": seat + 1, "table": table}, text).system()


def _nested(game: NormalForm, mechanisms: Sequence[Mechanism]) -> str:
    """Return the rules of all mechanisms, the outermost first, and how each encloses the next."""
    *outer, inner = mechanisms
    parts = [part for one in outer for part in (one.rules(game), one.encloses)]
    return "\n\n".join(filter(None, [*parts, inner.rules(game)]))


def _facts(question: Question) -> dict[str, Any]:
    blanks = [_blank(blank) for blank in question.sheet.blanks]
    facts = {"stage": question.stage, "blanks": blanks, **question.facts}
    if (past := past_of(facts)) is not None:
        rounds = [[[[deed.agent, deed.action] for deed in match] for match in matches] for matches in past.rounds]
        facts["past"] = {"me": past.me, "others": list(past.others), "rounds": rounds}
    return facts


def _blank(blank: Blank) -> dict[str, Any]:
    match blank.allowed:
        case None:
            return {"name": blank.name}
        case range() as numbers:
            return {"name": blank.name, "least": numbers[0], "most": numbers[-1]}
        case tuple() as texts:
            return {"name": blank.name, "choices": list(texts)}


def payoff_table(game: NormalForm, seat: int) -> list[list[str]]:
    """The game as one player sees it: a row for each profile, with everybody's action and then everybody's points."""
    view = game.seen_by(seat)
    return [
        [
            *(own[action] for own, action in zip(view.labels, profile, strict=True)),
            *map(_number, view.payoffs[profile]),
        ]
        for profile in view.profiles()
    ]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: Fraction) -> str:
    text = f"{float(value):g}"
    return text if Fraction(text) == value else str(value)
