"""The task my_task: how stiff is each make of springs, and which makes get softer with use?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from labmates.tasks.base import Check, Credit, Dataset, Difficulty, Task, finding, level_of
from labmates.tasks.data_errors import blank, repeat_rows
from labmates.tasks.noise import Floats, random_for
from labmates.tasks.scoring import fading, plain_name, relative_error, score_list, score_names
from labmates.tasks.words import says_name, says_together
from labmates_my_task.analysis import ANALYSIS

BRIEF = """A workshop tested springs of several makes: week after week each was loaded step by step, and how far it \
gave way was read from a scale. How stiff is each make when new (load per extension)? Which makes get softer over the \
weeks? The records are as people left them: look for missing readings, rows that were written twice, and readings in \
the wrong unit before you trust any number."""

DESCRIPTION = """One row for each reading.

- week: number of the week, from 0
- make: make of the spring
- operator: initials of whoever read the scale
- load_n: load, in newtons
- extension_mm: extension under this load, meant to be in millimetres; empty if it was not read

Known habits of the records: some readings were written in centimetres; some rows were written twice."""

MAKES = (
    "Alpen",
    "Brenta",
    "Corvo",
    "Delano",
    "Estrel",
    "Fjord",
    "Gavia",
    "Halden",
    "Isar",
    "Jorba",
    "Kestrel",
    "Lindo",
)
OPERATORS = ("AK", "BM", "JS")
LOADS = (2, 5, 10, 20, 30, 50, 80, 120)
WEEKS = 26

FULL, ZERO = 0.05, 0.25
"""A stiffness earns full credit within 5 % of the truth, none from 25 % on."""

Name = Annotated[str, Field(max_length=100)]


class Level(NamedTuple):
    """Difficulty parameters of a data set."""

    makes: int  # number of tested makes
    noise: float  # relative error of a reading
    softening: tuple[float, float]  # share of the stiffness that a softening make loses over all weeks
    missing: float  # share of empty readings
    centimetres: float  # share of readings in the wrong unit
    repeats: float  # share of repeated rows


LEVELS: dict[Difficulty, Level] = {
    "easy": Level(6, 0.02, (0.35, 0.45), missing=0.01, centimetres=0.0, repeats=0.01),
    "medium": Level(8, 0.05, (0.25, 0.35), missing=0.03, centimetres=0.01, repeats=0.02),
    "hard": Level(10, 0.10, (0.15, 0.25), missing=0.08, centimetres=0.03, repeats=0.03),
}


class Stiffness(BaseModel):
    """The stiffness of one make."""

    make: Name = Field(description="make of the spring")
    newtons_per_mm: float = Field(description="load per extension when new, in newtons per millimetre")


class MyFindings(BaseModel):
    """The findings of a report; every field is optional."""

    stiffness: list[Stiffness] | None = finding(
        "stiffness of every make, in newtons per millimetre", [{"make": "Some make", "newtons_per_mm": 1.5}], most=100
    )
    softening: list[Name] | None = finding("makes that get softer over the weeks", ["Some make"], most=100)


class MyTruth(BaseModel):
    """The truth of one data set."""

    stiffness: list[Stiffness]
    softening: list[str]


class MyTask(Task[MyTruth, MyFindings]):
    """Springs under load: a line through the origin for each make, and a drift for some."""

    name = "my_task"
    title = "My task"
    brief = BRIEF
    version = "1"
    findings = MyFindings
    analysis = ANALYSIS

    def generate(self, seed: int, difficulty: Difficulty = "medium") -> Dataset[MyTruth]:
        """The readings of one workshop; for difficulties see `LEVELS`."""
        level = level_of(LEVELS, difficulty)
        # A separate random generator for each part: changing one part does not affect the others.
        rng = random_for(self.name, seed, difficulty, "springs")
        makes = sorted(rng.choice(MAKES, level.makes, replace=False).tolist())
        stiff = np.round(10 ** rng.uniform(-0.3, 1.7, level.makes), 3)
        loss = np.where(rng.permutation(level.makes) < level.makes // 3, rng.uniform(*level.softening, level.makes), 0)
        frame = _readings(makes, stiff, loss, level, random_for(self.name, seed, difficulty, "readings"))
        truth = MyTruth(
            stiffness=[Stiffness(make=m, newtons_per_mm=k) for m, k in zip(makes, stiff, strict=True)],
            softening=[make for make, lost in zip(makes, loss, strict=True) if lost],
        )
        return Dataset(frame, truth, DESCRIPTION)

    def oracle(self, truth: MyTruth) -> MyFindings:
        """The findings of a perfect report."""
        return MyFindings(stiffness=truth.stiffness, softening=truth.softening)

    def prior(self, columns: Sequence[str], difficulty: Difficulty) -> MyFindings:
        """The best guess without data: some random makes; stiffness can't be guessed."""
        return MyFindings(softening=list(MAKES[:4]))

    def score(self, findings: MyFindings, truth: MyTruth) -> tuple[Credit, ...]:
        """The credit of each finding; lists are scored by precision and recall."""
        return (
            score_list("stiffness", findings.stiffness, truth.stiffness, weight=3, similarity=_similarity),
            score_names("softening", findings.softening, truth.softening, weight=1),
        )

    def checks(self, truth: MyTruth) -> tuple[Check, ...]:
        """Rules on the words of a report, for the judge without a model."""
        return (
            Check("makes named", says_name([spring.make for spring in truth.stiffness])),
            Check("stiffness with its unit", says_together(r"\bstiff", r"\bN/mm\b|\bnewtons? per")),
            Check("softening reported", says_together(r"\bsoft|\bweak|\bfatigue", "|".join(truth.softening))),
        )

    def summary(self, truth: MyTruth) -> str:
        """The truth in sentences that pass the checks."""
        springs = [f"The stiffness of {spring.make} is {spring.newtons_per_mm:g} N/mm." for spring in truth.stiffness]
        return "\n".join([*springs, f"With use {' and '.join(truth.softening)} get softer."])


def _readings(makes: list[str], stiff: Floats, loss: Floats, level: Level, rng: np.random.Generator) -> pd.DataFrame:
    week, make, load = (part.ravel() for part in np.meshgrid(range(WEEKS), range(len(makes)), LOADS, indexing="ij"))
    extension = load / (stiff[make] * (1 - loss[make] * week / (WEEKS - 1)))
    extension *= 1 + level.noise * rng.standard_normal(len(load))
    extension = np.where(rng.random(len(load)) < level.centimetres, extension / 10, extension)
    frame = pd.DataFrame(
        {
            "week": week,
            "make": [makes[index] for index in make],
            "operator": [OPERATORS[index] for index in rng.integers(len(OPERATORS), size=len(load))],
            "load_n": load,
            "extension_mm": blank(np.round(extension, 3), level.missing, rng),
        }
    )
    return repeat_rows(frame, level.repeats, rng)


def _similarity(stated: Stiffness, true: Stiffness) -> float:
    if plain_name(stated.make) != plain_name(true.make):
        return 0.0
    return fading(relative_error(stated.newtons_per_mm, true.newtons_per_mm), FULL, ZERO)
