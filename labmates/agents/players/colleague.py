"""Scripted baselines with a disposition that shows both in how they play and in how they work in the science lab.

``scripted:colleague/generosity=0.8/trust=0.3`` and so on; what is not named is 0.5 (noise: 0.1). They are there to try
out what predicts work from play: which part of a score comes from the disposition is known.
"""

from __future__ import annotations

import random
from dataclasses import fields
from typing import ClassVar, Final

from labmates.agents.players.base import Disposition, Player, family_of
from labmates.errors import UsageError, unknown_name
from labmates.models.scripted.base import Draft, Heard

FAMILY: Final = "colleague/"
"""How the names of baselines begin that are colleagues with parameters of their own."""
PARAMETERS = tuple(field.name for field in fields(Disposition))
"""The names of what can be set."""


class Colleague(Player):
    """Does by its disposition whatever families of players know of dispositions."""

    baseline: ClassVar[str] = "colleague"
    description: ClassVar[str] = "Plays and works by a disposition: colleague/generosity=0.8/trust=0.3 and so on."
    disposition: ClassVar[Disposition] = Disposition()

    def compose(self, heard: Heard) -> Draft:
        """A move in a game, or in the lab."""
        # Runs of one seed ask with the same seeds: without its name, colleagues would differ in nothing by chance.
        chance = random.Random(f"{self.baseline} {heard.seed}")
        family = family_of(heard)
        if family is not None and family.as_colleague is not None and (game_order := family.read(heard)) is not None:
            return family.as_colleague(game_order, heard, self.disposition, chance)
        return super().compose(heard)


def colleague(text: str) -> type[Colleague]:
    """The colleague with a disposition such as ``generosity=0.8/trust=0.3``.

    Raises
    ------
    UsageError
        If a parameter is unknown or repeated, or a value is not a number from 0 to 1.
    """
    name = f"{FAMILY}{text}"
    given: dict[str, float] = {}
    for part in text.split("/"):
        parameter, _, value = part.partition("=")
        if parameter not in PARAMETERS:
            raise unknown_name("parameter of a colleague", parameter, PARAMETERS)
        if parameter in given:
            raise UsageError(f"the scripted baseline '{name}' has {parameter} twice")
        given[parameter] = _share(name, parameter, value)
    about = f"Plays and works by a disposition of its own: {text}."
    made = {"baseline": name, "description": about, "disposition": Disposition(**given), "__doc__": about}
    return type("Colleague", (Colleague,), made)


def _share(name: str, parameter: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise UsageError(f"the scripted baseline '{name}': {parameter} must be a number from 0 to 1, not '{text}'")
    return value
