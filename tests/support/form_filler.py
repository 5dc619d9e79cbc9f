"""A player that reads nothing but texts, as a model behind a server does: it fills in the form that is asked for."""

from __future__ import annotations

import json
import random
import re
from typing import Any, ClassVar

from labmates.budgets.tokens import text_of
from labmates.models.scripted.base import Draft, Heard, ScriptedModel

_KEY = re.compile(r'"([^"]+)": …')
_HINT = re.compile(r'^- "([^"]+)": (.*)$', re.MULTILINE)
_RANGE = re.compile(r"(-?\d+) to (-?\d+)")
_TOTAL = re.compile(r"Together they add up to (?:at most )?(\d+)")


class FormFiller(ScriptedModel):
    """Fills in forms by chance, within what the text allows; where there is none it says a sentence."""

    baseline: ClassVar[str] = "form-filler"
    description: ClassVar[str] = "Fills in the form of an order."

    def compose(self, heard: Heard) -> Draft:
        """Return the filled form."""
        # What comes after the order is about replies that could not be used.
        place = next(place for place, message in enumerate(heard.messages) if message.type == "human")
        text = "\n".join(text_of(message.content) for message in heard.messages[: place + 1])
        rng = random.Random(heard.seed)
        hints = dict(_HINT.findall(text))
        values = {key: _value(hints.get(key, ""), rng) for key in _KEY.findall(text)}
        if not values:
            return Draft("I have nothing to add.")
        if total := _TOTAL.search(text):
            values = {**dict.fromkeys(values, 0), rng.choice(list(values)): int(total[1])}
        return Draft(json.dumps(values))


def _value(hint: str, rng: random.Random) -> Any:
    if numbers := _RANGE.search(hint):
        return rng.randint(int(numbers[1]), int(numbers[2]))
    if "true or false" in hint:
        return rng.random() < 0.5
    if texts := re.findall(r'"([^"]+)"', hint):
        return rng.choice(texts)
    return [] if "list" in hint else "for a test" if "sentence" in hint else 0
