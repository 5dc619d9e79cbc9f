"""The names under which players of a dilemma read actions; records and mechanisms keep the neutral labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from labmates.games.payoff_table import PayoffTable
from labmates.mechanisms.base import Answer, Blank, Sheet
from labmates.mechanisms.mediation import DELEGATE
from labmates.mechanisms.wording import Wording
from labmates.workflows.wordings import Ablation, renamed, replaced

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
"""Words without a suggestion of agreement or trust, by those that have one."""


@dataclass(frozen=True)
class Labels:
    """Names of actions, and further words that are replaced in texts.

    Attributes
    ----------
    names
        What players read, by label.
    in_text
        Names by the labels in texts, where a wording has replaced some already.
    vocabulary
        Replacements of words in texts.
    """

    names: Mapping[str, str]
    in_text: Mapping[str, str]
    vocabulary: Mapping[str, str]

    @classmethod
    def of(cls, table: PayoffTable, words: Wording, ablation: Ablation) -> Labels:
        """The labels of a game in a wording under an ablation.

        Raises
        ------
        UsageError
            If its actions can't be called by what they mean.
        """
        worded = words.labels(table.game())
        if ablation == "real-words":
            meanings = table.meanings()
            numbered = {label: DELEGATE for name, label in worded.items() if name == DELEGATE}
            return cls(meanings, {**meanings, **numbered}, {})
        if ablation == "neutral":
            return cls({DELEGATE: HAND_OVER, **worded}, {}, NEUTRAL)
        return cls(worded, {}, {})

    def text(self, text: str) -> str:
        """A text as players read it."""
        named = _LABEL.sub(lambda match: self.in_text.get(match[0], match[0]), text) if self.in_text else text
        return replaced(named, self.vocabulary)

    def sheet(self, sheet: Sheet) -> Sheet:
        """A form as players read it."""
        return replace(sheet, blanks=tuple(map(self._blank, sheet.blanks)), fallback=self.data(sheet.fallback))

    def _blank(self, blank: Blank) -> Blank:
        allowed = self.data(blank.allowed) if isinstance(blank.allowed, tuple) else blank.allowed
        return Blank(self.data(blank.name), allowed, self.text(blank.about))

    def data(self, value: Any) -> Any:
        """Labels in keys and values of data, as players read them."""
        return renamed(value, self.names)

    def meant(self, answer: Answer) -> Answer:
        """A player's answer with the labels of records."""
        meant: Answer = renamed(answer, {name: label for label, name in self.names.items()})
        return meant
