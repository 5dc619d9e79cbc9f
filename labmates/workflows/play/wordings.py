"""Wordings and ablations of prompts: factors of experiments that measure how far results depend on the words."""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any, Literal

from pydantic import Field

from labmates.agents.prompts import Prompts
from labmates.workflows.play.condition import DecisionCondition

_PROMPTS = Prompts(__package__)

Wording = Literal["ours", "paper"]
Ablation = Literal["none", "neutral", "length-matched", "no-aim", "real-words"]

_FILLER_HEAD = (
    "# Notes on this text\nThis section adds nothing to the rules. It is there for the length of the text alone."
)
_FILLER = (
    "Each heading names the part that follows it.",
    "The parts always come in the same order.",
    "Numbers are written with digits.",
    "Names are written in the same way wherever they occur.",
    "Where there is a list, each of its lines stands for itself.",
    "Lines of a list begin with a dash or with a number.",
    "A blank line separates one part from the next.",
    "The text is the same in every run of this kind.",
    "No part of it refers to anything outside of it.",
    "The language of the text is English.",
)


def reasoning_request(reasoning: str) -> str:
    """The request to reason before a decision: ``none``, ``cot`` or ``tom``."""
    return _PROMPTS.render(f"reasoning_{reasoning}")


class WordedCondition(DecisionCondition, ABC):
    """A condition with a choice of wording for the players."""

    wording: Wording = Field(
        "ours",
        description="Prompts: the project's own, or a version that follows the paper's item by item.",
    )


class AblatedCondition(WordedCondition, ABC):
    """A condition of a game with named actions, under which something may be taken away from the prompts."""

    option_order: Literal["by-seed", "fixed"] = Field(
        "by-seed",
        description="Order of the actions that prompts offer: by-seed (as listed for even seeds of runs, reversed and "
        "renamed for odd ones) or fixed.",
    )

    ablation: Ablation = Field(
        "none",
        description="Change to the prompts, to measure its effect: neutral (no words that suggest agreement, trust or "
        "teams), length-matched (equally long rules of all mechanisms or structures), no-aim (no aim is given), "
        "real-words (actions are named by their meaning).",
    )

    def reverses_options(self, seed: int) -> bool:
        """Whether prompts of a run with this seed list actions in reverse."""
        return self.option_order == "by-seed" and seed % 2 == 1


def reversal(labels: Sequence[str]) -> dict[str, str]:
    """The displayed name of each label if actions are listed in reverse."""
    return dict(zip(labels, reversed(labels), strict=True))


def replaced(text: str, words: Mapping[str, str]) -> str:
    """A text with other words instead of some; capitals at the beginning of a word stay.

    Parameters
    ----------
    words
        Replacements by the words that they take the place of. Longer ones go before shorter ones.
    """
    if not words:
        return text
    longest_first = sorted(words, key=len, reverse=True)
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, longest_first))})\b", re.IGNORECASE)

    def other(match: re.Match[str]) -> str:
        word = match[0]
        new = words.get(word) or words[word.lower()]
        return new[:1].upper() + new[1:] if word[:1].isupper() and word not in words else new

    return pattern.sub(other, text)


def word_count(text: str) -> int:
    """The number of words of a text, separated by spaces."""
    return len(text.split())


def lengthened(text: str, words: int) -> str:
    """A text with a section of neutral sentences that makes it as many words long, to within one sentence.

    A text that is as long already, or by fewer words shorter than the section's head has, stays as it is.
    """
    missing = words - word_count(text) - word_count(_FILLER_HEAD)
    if missing < 0:
        return text
    sentences = []
    for sentence in cycle(_FILLER):
        missing -= word_count(sentence)
        if missing < 0:
            break
        sentences.append(sentence)
    return f"{text}\n\n{' '.join([_FILLER_HEAD, *sentences])}"


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Data with other names for some of its keys and texts."""
    match value:
        case str():
            return names.get(value, value)
        case Mapping():
            return {renamed(key, names): renamed(inner, names) for key, inner in value.items()}
        case list() | tuple():
            return type(value)(renamed(inner, names) for inner in value)
        case _:
            return value
