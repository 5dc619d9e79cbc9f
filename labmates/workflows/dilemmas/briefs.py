"""What players of a social dilemma are told: the game from where they sit, the mechanism, and what is asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from labmates.agents.prompts import render
from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import Mechanism, Question
from labmates.workflows.asking import form_text
from labmates.workflows.dilemmas.forms import keys_of


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
        order = render(
            "dilemma_ask",
            stage=question.stage,
            told=f"{told}\n" if told else "",
            ask=question.ask,
            reasoning=render(f"game_reasoning_{reasoning}"),
            keys=keys_of(question.sheet),
            form=form_text(blank.name for blank in question.sheet.blanks),
        )
        return [self._system(question.seat), HumanMessage(order)]

    def _make_system(self, seat: int) -> SystemMessage:
        return SystemMessage(
            render(
                "dilemma_system",
                you=f"player {seat + 1}",
                players=self._game.players,
                actions=", ".join(self._game.labels[seat]),
                table=payoff_lines(self._game, seat),
                rules=self._rules,
            )
        )


def _nested(game: NormalForm, mechanisms: Sequence[Mechanism]) -> str:
    """Return the rules of all mechanisms, the outermost first, and how each encloses the next."""
    *outer, inner = mechanisms
    parts = [part for one in outer for part in (one.rules(game), one.encloses)]
    return "\n\n".join(filter(None, [*parts, inner.rules(game)]))


def payoff_lines(game: NormalForm, seat: int) -> str:
    """Return the payoffs of a game as one player sees them, as a table in Markdown."""
    view = game.seen_by(seat)
    order = [seat, *(other for other in range(game.players) if other != seat)]
    names = [f"player {other + 1}" for other in order[1:]]
    heads = [f"you (player {seat + 1})", *names, "your points", *(f"points of {name}" for name in names)]
    lines = [_row(heads), _row(["---"] * len(heads))]
    for profile in view.profiles():
        labels = [own[action] for own, action in zip(view.labels, profile, strict=True)]
        lines.append(_row([*labels, *map(_number, view.payoffs[profile])]))
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: Fraction) -> str:
    text = f"{float(value):g}"
    return text if Fraction(text) == value else str(value)
