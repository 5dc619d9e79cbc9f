"""Scripted baselines with a disposition that shows both in how they play and in how they work in the science lab.

``scripted:colleague/generosity=0.8/trust=0.3`` and so on; what is not named is 0.5 (noise: 0.1). They are there to try
out what predicts work from play: which part of a score comes from the disposition is known.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, fields
from typing import ClassVar, Final

from labmates.agents.players.base import Player
from labmates.errors import UsageError, unknown_name
from labmates.games.references import references
from labmates.models.scripted.base import Draft, Heard
from labmates.workflows.games.briefs import KIND as GAMES
from labmates.workflows.games.players import Situation, answer, less_cooperative, nearest, of_profile, read
from labmates.workflows.science.baselines.diligent import Diligent, artifact_draft, closing_draft
from labmates.workflows.science.baselines.hasty import Hasty
from labmates.workflows.science.baselines.prompt import KIND, Step, read_step

FAMILY: Final = "colleague/"
"""How the names of baselines begin that are colleagues with parameters of their own."""
_MIDDLE: Final = 0.5


@dataclass(frozen=True)
class Disposition:
    """Traits of a colleague, each in [0, 1].

    Attributes
    ----------
    generosity
        How far it goes from the secure play to the best one where others gain by that and it loses, as in a common
        pool.
    trust
        Likewise where the best play is an equilibrium too, so that it only has to rely on the others, as in the
        weakest link.
    reciprocity
        The weight of what its group did last in what it does next. With it come sanctions against those who do less
        than others, and restraint where there are sanctions.
    noise
        Standard deviation of its decisions by chance, as a share of what may be decided on.
    care
        What its play doesn't show: half of its `effort`.
    """

    generosity: float = _MIDDLE
    trust: float = _MIDDLE
    reciprocity: float = _MIDDLE
    noise: float = 0.1
    care: float = _MIDDLE

    @property
    def effort(self) -> float:
        """The probability that it takes trouble over a task, a remark or a section in the lab."""
        return (self.generosity + self.care) / 2


PARAMETERS = tuple(field.name for field in fields(Disposition))
"""The names of what can be set."""


class Colleague(Player):
    """Plays the behavioural games and works in the lab by its disposition."""

    baseline: ClassVar[str] = "colleague"
    description: ClassVar[str] = (
        "Plays and works by a disposition: colleague/generosity=0.8/trust=0.3; also reciprocity, noise and care."
    )
    disposition: ClassVar[Disposition] = Disposition()

    def compose(self, heard: Heard) -> Draft:
        """A move in a game, or in the lab."""
        # Runs of one seed ask with the same seeds: without its name, colleagues would differ in nothing by chance.
        chance = random.Random(f"{self.baseline} {heard.seed}")
        if heard.kind == GAMES and (situation := read(heard)) is not None:
            return Draft(play(situation, self.disposition, chance))
        if heard.kind == KIND and (step := read_step(heard.messages)).declared is not None:
            return work(step, heard, self.disposition, chance)
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
    about = f"Plays and works by its disposition: {text}."
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


def play(situation: Situation, mine: Disposition, chance: random.Random) -> str:
    """The reply of a disposition."""
    if situation.stage == "sanction":
        guilty = less_cooperative(situation)
        return json.dumps({name: int(name in guilty and chance.random() < mine.reciprocity) for name in situation.last})
    game, plays = situation.game, references(situation.game)
    lean = mine.trust if plays.optimum.level in plays.equilibria else mine.generosity
    if game.sanction_limit:
        lean += (1 - lean) * mine.reciprocity / 2
    secure, best = (of_profile(situation, reference.profile) for reference in (plays.nash, plays.optimum))
    wanted = [
        low + lean * (high - low) + chance.gauss(0, mine.noise * (quantity.high - quantity.low))
        for quantity, low, high in zip(game.quantities, secure, best, strict=True)
    ]
    if situation.last:
        wanted = [
            (1 - mine.reciprocity) * own + mine.reciprocity * sum(theirs) / len(theirs)
            for own, theirs in zip(wanted, zip(*situation.last.values(), strict=True), strict=True)
        ]
    return answer(situation, nearest(game, wanted))


def work(step: Step, heard: Heard, mine: Disposition, chance: random.Random) -> Draft:
    """The move of `Diligent`, with the probability of the effort.

    Otherwise it closes the task without work, contributes nothing, or omits sections of an artifact.
    """
    kind = step.declared
    assert kind is not None  # `Colleague.compose` has seen to it
    if kind.does == "write":
        sections = [section for section in step.sections() if chance.random() < mine.effort]
        return artifact_draft(step, heard, step.artifact, sections or step.sections()[:1])
    # A plan is always made, and a started task continues.
    if kind.assigns or step.replies > 0 or chance.random() < mine.effort:
        return Diligent().compose(heard)
    return closing_draft(step, heard) if kind.does == "work" else Hasty().compose(heard)
