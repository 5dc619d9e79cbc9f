"""The task ``inhibitors``: which compounds slow an enzyme down, how do they act, and how strongly?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from labmates.tasks.base import Check, Credit, Dataset, Difficulty, Task, finding, level_of
from labmates.tasks.noise import random_for
from labmates.tasks.scoring import fading, plain_name, relative_error, score_list, score_names, score_number
from labmates.tasks.words import says_count, says_name, says_together
from labmates_plugin_example.data import LEVELS, Mechanism, assay_frame, draw_assay

BRIEF = """The rate of an enzyme was measured in many wells, at ten concentrations of its substrate, with and without \
compounds that may slow it down. Without a compound the enzyme follows the law of Michaelis and Menten. What are its \
maximal rate and its Michaelis constant? Which compounds do nothing? For each of the others, say how it acts \
(competitive: it raises the Michaelis constant alone; uncompetitive: it lowers the maximal rate and the Michaelis \
constant by the same factor; noncompetitive: it lowers the maximal rate alone) and how strongly (its inhibition \
constant). Readings are missing, wells have bubbles, plates were read in another unit, rows were written twice: check \
the records before you trust any number, and say how sure you are of each result."""

DESCRIPTION = """One row for each well.

- plate: number of the plate; a plate has one compound
- compound: code of the compound that the plate was tested with
- compound_um: concentration of the compound in the well, in micromolar; 0 for a well without it
- substrate_um: concentration of the substrate, in micromolar
- rate_um_per_min: initial rate, meant to be in micromolar per minute; empty if the well was not read

Known habits of the records: some plates were read in nanomolar per minute; a bubble makes a well read several times too
high; some rows were written twice."""

CONSTANT_FULL, CONSTANT_ZERO = 0.05, 0.25
"""A constant of the enzyme counts in full within 5 % of the true one, nothing from 25 % on."""
KI_FULL, KI_ZERO = 0.15, 0.75
"""An inhibition constant counts in full within 15 % of the true one, nothing from 75 % on."""
ACTS_OTHERWISE = 0.3
"""Factor for a compound whose mechanism is wrong."""
NO_KI = 0.5
"""Factor for a compound whose inhibition constant is not stated, or wrong."""

Code = Annotated[str, Field(max_length=100)]


class Inhibitor(BaseModel):
    """One compound that slows the enzyme down."""

    compound: Code = Field(description="code of the compound")
    mechanism: Mechanism = Field(description="how it acts")
    ki_um: float | None = Field(None, description="inhibition constant, in micromolar")


class InhibitorsFindings(BaseModel):
    """What a report states; every field may be left out."""

    vmax_um_per_min: float | None = finding("maximal rate of the enzyme, in micromolar per minute", 1.5)
    km_um: float | None = finding("Michaelis constant of the enzyme, in micromolar", 2.5)
    inhibitors: list[Inhibitor] | None = finding(
        "the compounds that slow the enzyme down",
        [{"compound": "XX-1", "mechanism": "competitive", "ki_um": 3.5}],
        most=200,
    )
    inactive: list[Code] | None = finding("codes of the compounds that do nothing", ["XX-2"], most=200)


class InhibitorsTruth(BaseModel):
    """What is true of one data set; fields as in `InhibitorsFindings`."""

    vmax: float
    km: float
    inhibitors: list[Inhibitor]
    inactive: list[str]


class InhibitorsTask(Task[InhibitorsTruth, InhibitorsFindings]):
    """Michaelis–Menten kinetics with inhibitors of three kinds and compounds that do nothing."""

    name = "inhibitors"
    title = "Inhibitors of an enzyme"
    brief = BRIEF
    version = "1"
    findings = InhibitorsFindings

    def generate(self, seed: int, difficulty: Difficulty = "medium") -> Dataset[InhibitorsTruth]:
        """Return the readings of one enzyme; what a difficulty means is in ``data.LEVELS``."""
        level = level_of(LEVELS, difficulty)
        assay = draw_assay(self.name, seed, difficulty, level)
        truth = InhibitorsTruth(
            vmax=assay.vmax,
            km=assay.km,
            inhibitors=[
                Inhibitor(compound=one.name, mechanism=one.mechanism, ki_um=one.ki)
                for one in assay.compounds
                if one.mechanism is not None
            ],
            inactive=[one.name for one in assay.compounds if one.mechanism is None],
        )
        frame = assay_frame(assay, level, random_for(self.name, seed, difficulty, "readings"))
        return Dataset(frame, truth, DESCRIPTION)

    def oracle(self, truth: InhibitorsTruth) -> InhibitorsFindings:
        """Return what a perfect report states."""
        return InhibitorsFindings(
            vmax_um_per_min=truth.vmax, km_um=truth.km, inhibitors=truth.inhibitors, inactive=truth.inactive
        )

    def prior(self, columns: Sequence[str], difficulty: Difficulty) -> InhibitorsFindings:
        """Return the constants that earn most on average; nothing tells a compound's code beforehand."""
        return InhibitorsFindings(vmax_um_per_min=34.0, km_um=125.0)

    def score(self, findings: InhibitorsFindings, truth: InhibitorsTruth) -> tuple[Credit, ...]:
        """Compare with the tolerances named at the head of this module; lists by F1."""
        return (
            score_number("vmax_um_per_min", findings.vmax_um_per_min, truth.vmax, weight=1, credit=_constant),
            score_number("km_um", findings.km_um, truth.km, weight=1, credit=_constant),
            score_list("inhibitors", findings.inhibitors, truth.inhibitors, weight=5, similarity=_similarity),
            score_names("inactive", findings.inactive, truth.inactive, weight=1),
        )

    def checks(self, truth: InhibitorsTruth) -> tuple[Check, ...]:
        """Constants told with their units, inhibitors counted and named with a mechanism, inactive compounds named."""
        unit, compounds = r"µM|uM|micromolar", [one.compound for one in truth.inhibitors]
        return (
            Check("maximal rate told", says_together(r"\bv_?max\b|maximal rate", unit)),
            Check("Michaelis constant told", says_together(r"\bk_?m\b|michaelis constant", unit)),
            Check("inhibitors counted", says_count(len(truth.inhibitors), "inhibitors?")),
            Check("inhibitors named", says_name(compounds)),
            Check("mechanisms told", says_together(r"\b(?:un|non)?competitive", "|".join(compounds))),
            Check("inactive compounds named", says_together(r"inactive|nothing|no effect", "|".join(truth.inactive))),
        )

    def summary(self, truth: InhibitorsTruth) -> str:
        """Return the truth in sentences."""
        return "\n".join(
            [
                f"The maximal rate is {truth.vmax:g} micromolar per minute.",
                f"The Michaelis constant is {truth.km:g} micromolar.",
                f"There are {len(truth.inhibitors)} inhibitors.",
                *(f"{one.compound} is {one.mechanism} with a ki of {one.ki_um:g} µM." for one in truth.inhibitors),
                f"These compounds are inactive: {', '.join(truth.inactive)}.",
            ]
        )


def _constant(stated: float, true: float) -> float:
    return fading(relative_error(stated, true), CONSTANT_FULL, CONSTANT_ZERO)


def _similarity(stated: Inhibitor, true: Inhibitor) -> float:
    """Similarity in [0, 1] of two compounds with the same code: a factor for the mechanism times one for the size."""
    if plain_name(stated.compound) != plain_name(true.compound):
        return 0.0
    error = math.inf if stated.ki_um is None or true.ki_um is None else relative_error(stated.ki_um, true.ki_um)
    size = NO_KI + (1 - NO_KI) * fading(error, KI_FULL, KI_ZERO)
    return size if stated.mechanism == true.mechanism else size * ACTS_OTHERWISE
