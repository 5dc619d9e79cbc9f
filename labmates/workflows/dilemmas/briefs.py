"""The prompts of a social dilemma: the game from a seat, the mechanism, the request, and the form of the answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any, Literal

from langchain_core.messages import BaseMessage
from pydantic import Field, create_model

from labmates.agents.decisions import Form, summed
from labmates.agents.prompts import Prompts
from labmates.errors import UsageError
from labmates.games.normal_form import NormalForm
from labmates.games.payoff_table import PayoffTable
from labmates.mechanisms.base import Blank, Mechanism, Question, Sheet, past_of
from labmates.mechanisms.mediation import DELEGATE
from labmates.mechanisms.registry import MECHANISMS, make_mechanisms
from labmates.mechanisms.wording import OURS, Answer
from labmates.mechanisms.wording import Wording as MechanismWording
from labmates.mechanisms.wording_paper import PaperWording
from labmates.models.orders import Order
from labmates.workflows.calls.remarks import form_text
from labmates.workflows.dilemmas.descriptions import DESCRIPTIONS
from labmates.workflows.play.wordings import (
    Ablation,
    Wording,
    lengthened,
    reasoning_request,
    renamed,
    replaced,
    reversal,
    word_count,
)

render = Prompts(__package__).render

_LABEL = re.compile(r"\bA\d+\b")
HAND_OVER = "hand over"
NEUTRAL: Mapping[str, str] = {
    "agree on": "settle on",
    "agreed on": "settled on",
    "co-players": "other players",
    "co-player": "other player",
    "contract": "schedule",
    "contracts": "schedules",
    "cooperate": "take part",
    "delegate": HAND_OVER,
    "delegates": "hands over",
    "delegators": "players who hand over",
    "mediator": "device",
    "mediators": "devices",
    "payment": "transfer",
    "payments": "transfers",
    "pays": "transfers",
    "pay": "transfer",
}
"""Words that suggest agreement or trust, with neutral replacements."""
KIND = "dilemma"
"""The kind of the orders."""
WORDINGS: Mapping[Wording, MechanismWording] = {"ours": OURS, "paper": PaperWording()}
_SEAT: Mapping[Wording, str] = {
    "ours": "You are player {}.",
    "paper": "In case the players' positions matter: you are player {} of this game.",
}
_RULES_HEAD: Mapping[Wording, str] = {"ours": "", "paper": "\n\n# What is added to the game\n"}


def form_of(sheet: Sheet) -> type[Form]:
    """The model that validates answers to a form."""
    return _form_of(sheet.blanks, sheet.total)


@lru_cache(maxsize=1024)
def _form_of(blanks: tuple[Blank, ...], total: int | None) -> type[Form]:
    # The name of a blank may be no Python identifier.
    fields: dict[str, Any] = {f"blank_{place}": _field(blank) for place, blank in enumerate(blanks)}
    return summed(create_model("Answer", __base__=Form, **fields), total=total)


def _field(blank: Blank) -> Any:
    match blank.allowed:
        case None:
            return bool, Field(alias=blank.name)
        case range() as numbers:
            return int, Field(alias=blank.name, ge=numbers[0], le=numbers[-1])
        case tuple() as texts:
            return Literal[texts], Field(alias=blank.name)


def keys_of(sheet: Sheet) -> str:
    """The keys of an answer in words, one per line."""
    lines = [
        f'- "{blank.name}": {_allowed(blank)}{f", {blank.about}" if blank.about else ""}' for blank in sheet.blanks
    ]
    total = [] if sheet.total is None else [f"Together they add up to {sheet.total}."]
    return "\n".join([*lines, *total])


def _allowed(blank: Blank) -> str:
    match blank.allowed:
        case None:
            return "true or false"
        case range() as numbers:
            return f"a whole number from {numbers[0]} to {numbers[-1]}"
        case tuple() as texts:
            return " or ".join(f'"{text}"' for text in texts)


@dataclass(frozen=True)
class Labels:
    """Displayed names of actions, and replacements of words in texts."""

    names: Mapping[str, str]  # displayed names, by label
    in_text: Mapping[str, str]  # displayed names by the labels in texts, which a wording may have replaced already
    vocabulary: Mapping[str, str]  # replacements of words in texts
    reversed: Collection[str] = ()  # the labels that forms list in reverse

    @classmethod
    def of(cls, table: PayoffTable, words: MechanismWording, ablation: Ablation, *, is_reversed: bool) -> Labels:
        """The labels of a game in a wording under an ablation; a `UsageError` if its actions have no real words."""
        game = table.game()
        worded = words.labels(game)
        labels = max(game.labels, key=len) if is_reversed else ()
        # Players with different actions share labels, which then keep their names.
        swapped = reversal(labels) if len(set(game.labels)) == 1 else {}
        if ablation == "real-words":
            meanings = table.meanings()
            numbered = {label: DELEGATE for name, label in worded.items() if name == DELEGATE}
            return cls(meanings, {**meanings, **numbered}, {}, labels)
        if ablation == "neutral":
            return cls({DELEGATE: HAND_OVER, **worded, **swapped}, swapped, NEUTRAL, labels)
        return cls({**worded, **swapped}, swapped, {}, labels)

    def text(self, text: str) -> str:
        """A text with displayed names."""
        named = _LABEL.sub(lambda match: self.in_text.get(match[0], match[0]), text) if self.in_text else text
        return replaced(named, self.vocabulary)

    def sheet(self, sheet: Sheet) -> Sheet:
        """A form with displayed names."""
        by_name = {blank.name: blank for blank in sheet.blanks}
        blanks = tuple(self._blank(by_name[name]) for name in self._listed(tuple(by_name)))
        return replace(sheet, blanks=blanks, fallback=self.data(sheet.fallback))

    def _listed(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names in the order of forms: those of reversed actions change places."""
        turned = (name for name in reversed(names) if name in self.reversed)
        return tuple(next(turned) if name in self.reversed else name for name in names)

    def _blank(self, blank: Blank) -> Blank:
        allowed = self.data(self._listed(blank.allowed)) if isinstance(blank.allowed, tuple) else blank.allowed
        return Blank(self.data(blank.name), allowed, self.text(blank.about))

    def data(self, value: Any) -> Any:
        """Data with displayed names in keys and values."""
        return renamed(value, self.names)

    def meant(self, answer: Answer) -> Answer:
        """A player's answer with the game's labels."""
        answer_by_label: Answer = renamed(answer, {name: label for label, name in self.names.items()})
        return answer_by_label


@dataclass(eq=False)
class Briefing:
    """The prompts of one cross-play.

    All players read the same system message. Then come the request of the step, the game from the player's seat, what
    the player has been told, to which each step only adds, and last its seat: servers cache prompts by their beginning.
    Raises `UsageError` if the ablation needs words for actions that the game does not have.
    """

    table: PayoffTable
    mechanisms: Sequence[Mechanism]
    _: KW_ONLY
    wording: Wording = "ours"
    ablation: Ablation = "none"
    is_reversed: bool = False

    def __post_init__(self) -> None:
        self.words = WORDINGS[self.wording]
        self._labels = Labels.of(self.table, self.words, self.ablation, is_reversed=self.is_reversed)
        self._description = cache(partial(DESCRIPTIONS[self.wording], self.table, is_reversed=self.is_reversed))
        self._system = self._make_system()

    def ask(self, question: Question, reasoning: str) -> list[BaseMessage]:
        """The messages of a question.

        Parameters
        ----------
        reasoning
            The reasoning requested before the decision: ``none``, ``cot`` or ``tom``.
        """
        sheet, description = self.sheet(question), self._description(question.seat)
        told, game, ask, seat = map(
            self._labels.text,
            (
                "\n\n".join(question.told),
                render(f"game_{self.wording}", **description.values),
                question.ask,
                _SEAT[self.wording].format(question.seat + 1),
            ),
        )
        text = render(
            "ask",
            stage=question.stage,
            ask=ask,
            keys=keys_of(sheet),
            game=game,
            told=f"\n{told}\n" if told else "",
            reasoning=reasoning_request(reasoning),
            seat=seat,
            form=form_text(blank.name for blank in sheet.blanks),
        )
        facts = {"seat": question.seat + 1, **self._labels.data(description.facts), **self._facts(question)}
        return [self._system, Order(KIND, facts, text).human()]

    def sheet(self, question: Question) -> Sheet:
        """The form of an answer, with displayed names."""
        return self._labels.sheet(question.sheet)

    def meant(self, answer: Answer) -> Answer:
        """A player's answer with the game's labels."""
        return self._labels.meant(answer)

    def _make_system(self) -> BaseMessage:
        players = self.table.game().players
        text = render(
            f"system_{self.wording}",
            players=players,
            others="another player" if players == 2 else f"{players - 1} other players",
            others_again="the other player" if players == 2 else "the other players",
            rules=self._make_rules(),
            aim="" if self.ablation == "no-aim" else render(f"aim_{self.wording}"),
        )
        return Order(KIND, {}, self._labels.text(text)).system()

    def _make_rules(self) -> str:
        rules = _nested(self.words, self.table.game(), self.mechanisms)
        headed = f"{_RULES_HEAD[self.wording]}{rules}" if rules else ""
        if self.ablation != "length-matched":
            return headed
        longest = _longest(self.words, self.table.game()) + word_count(_RULES_HEAD[self.wording])
        return lengthened(headed, longest)

    def _facts(self, question: Question) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "stage": question.stage,
            "blanks": [_blank(blank) for blank in question.sheet.blanks],
            **question.facts,
        }
        if (past := past_of(facts)) is not None:
            # Oldest first, as in the text.
            rounds = [
                [[[deed.agent, deed.action] for deed in match] for match in matches]
                for matches in reversed(past.rounds)
            ]
            facts["past"] = {"me": past.me, "others": list(past.others), "rounds": rounds}
        renamed: dict[str, Any] = self._labels.data(facts)
        if (delegate := self._labels.names.get(DELEGATE)) and renamed != facts:
            renamed["delegate"] = delegate
        return renamed


def _nested(words: MechanismWording, game: NormalForm, mechanisms: Sequence[Mechanism]) -> str:
    """The rules of all mechanisms, the outermost first, and how each encloses the next."""
    *outer, inner = mechanisms
    parts = [part for mechanism in outer for part in (words.rules(mechanism, game), mechanism.encloses)]
    return "\n\n".join(filter(None, [*parts, words.rules(inner, game)]))


def _longest(words: MechanismWording, game: NormalForm) -> int:
    """The number of words in the longest rules of a built-in mechanism for the game."""
    lengths = []
    for name in filter(MECHANISMS.is_own, MECHANISMS.names()):
        [mechanism] = make_mechanisms(name)
        try:
            mechanism.check(game)
        except UsageError:
            continue
        lengths.append(word_count(words.rules(mechanism, game)))
    return max(lengths)


def _blank(blank: Blank) -> dict[str, Any]:
    match blank.allowed:
        case None:
            return {"name": blank.name}
        case range() as numbers:
            return {"name": blank.name, "least": numbers[0], "most": numbers[-1]}
        case tuple() as texts:
            return {"name": blank.name, "choices": list(texts)}
