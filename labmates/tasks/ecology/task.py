"""The ecology task: interactions of species, regime shifts, and a forecast.

Source: cooperative-profiles paper, section 4.1 (science tasks). Data, findings and scoring are our own design.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from labmates.tasks.base import Check, Credit, Dataset, Difficulty, Task, level_of
from labmates.tasks.ecology.analysis import ECOLOGY_ANALYSIS
from labmates.tasks.ecology.data import (
    HORIZON,
    LEVELS,
    Community,
    EcologyLevel,
    History,
    changed,
    draw_community,
    simulate,
    survey_frame,
)
from labmates.tasks.ecology.findings import EcologyFindings, EcologyTruth, Forecast, Interaction
from labmates.tasks.ecology.ideal import ideal_findings
from labmates.tasks.ecology.instruments import EcologyInstruments
from labmates.tasks.noise import random_for
from labmates.tasks.scoring import (
    FULL_ERRORS,
    Effect,
    by_error,
    plain_name,
    score_count,
    score_effects,
    score_list,
    score_names,
)
from labmates.tasks.words import says_count, says_name, says_number, says_together

BRIEF = f"""Several sites were surveyed every two weeks for six years, and every species found was counted. Find out \
how this community works and where it is heading. How many species are there? Did the community pass from \
one regime into another, how often, and at which survey did each change begin? A change may take several \
surveys from start to end, the same ones at all sites. Which species became clearly rarer or more \
common, from before the first change to after the end of the last? Which species act on the growth of \
which others, in which direction, with which sign and strength? An effect acts through the deviation of \
the source's log abundance from its typical level at the site in the regime, on the change of the \
target's log abundance to the next survey; it need not be mutual. Which species respond to temperature? \
Predict the mean abundance of every species over the {HORIZON} surveys after the last one. The records \
are as people left them: check spelling, units, repeated rows, gaps and slips of the pen before you trust \
any number."""

DESCRIPTION = """One row for each survey, site and species.

- survey: number of the survey, from 0; surveys are two weeks apart
- date: day of the survey (year-month-day)
- site: name of the site
- observer: initials of whoever counted
- species: name of the species as the observer wrote it
- count: number of individuals counted; empty if not counted
- temperature: air temperature at the site during the survey, meant to be in degrees Celsius; empty if not read
- rainfall_mm: rain in the week before the survey, in millimetres

Known habits of the records: names were typed by hand; some thermometers were set to Fahrenheit for a time; some rows \
were entered twice; a decimal point is sometimes in the wrong place; not every site was visited in every survey."""


class Errors(NamedTuple):
    """Standard errors of an ideal fit: of a shift in surveys, of a strength, and of a forecast relative to the mean."""

    shift: float
    strength: float
    forecast: float


ERRORS: Mapping[Difficulty, Errors] = {
    "easy": Errors(0.5, 0.03, 0.03),
    "medium": Errors(1.0, 0.045, 0.055),
    "hard": Errors(1.3, 0.055, 0.08),
}
"""Spread of the ideal findings (`Dataset.ideal`) around the truth over a dozen data sets."""

GUESSED_SHIFTS: Mapping[Difficulty, tuple[int, ...]] = {"easy": (74, 92), "medium": (52, 104), "hard": (42, 108)}
GUESSED_SPECIES: Mapping[Difficulty, int] = {"easy": 6, "medium": 6, "hard": 7}
"""Values of the prior, with the highest mean score (``python -m benchmarks.task_scores --search``)."""


class EcologyTask(Task[EcologyTruth, EcologyFindings]):
    """Population dynamics of several species with interactions, regime shifts and a forecast."""

    name = "ecology"
    title = "Species interactions and regime shifts"
    brief = BRIEF
    version = "3"
    findings = EcologyFindings
    instruments = EcologyInstruments()
    analysis = ECOLOGY_ANALYSIS

    def generate(self, seed: int, difficulty: Difficulty = "medium") -> Dataset[EcologyTruth]:
        """The surveys of one community; for difficulties see `labmates.tasks.ecology.data.LEVELS`."""
        level = level_of(LEVELS, difficulty)
        community = draw_community(level, random_for(self.name, seed, difficulty, "community"))
        history = simulate(community, level, random_for(self.name, seed, difficulty, "history"))
        frame, counts = survey_frame(community, history, level, random_for(self.name, seed, difficulty, "survey"))
        truth = _truth(community, history, level, difficulty)
        ideal = partial(ideal_findings, truth, community, history, counts, level)
        return Dataset(frame, truth, DESCRIPTION, ideal)

    def oracle(self, truth: EcologyTruth) -> EcologyFindings:
        """The truth as findings."""
        stated = truth.model_dump(exclude={"species", "borderline_species", "difficulty"})
        return EcologyFindings(n_species=len(truth.species), **stated)

    def prior(self, columns: Sequence[str], difficulty: Difficulty) -> EcologyFindings:
        """The most likely number of species and shifts; species are unknown beforehand."""
        return EcologyFindings(
            n_species=level_of(GUESSED_SPECIES, difficulty), shift_surveys=list(level_of(GUESSED_SHIFTS, difficulty))
        )

    def score(self, findings: EcologyFindings, truth: EcologyTruth) -> tuple[Credit, ...]:
        """Credits by the tolerances of this module; lists by F1 (`labmates.tasks.scoring.guarded_f1`)."""
        errors = ERRORS[truth.difficulty]
        up, down = findings.increasing_species, findings.declining_species
        warm, cold = findings.warmth_gains, findings.warmth_loses
        return (
            score_count("n_species", findings.n_species, len(truth.species), weight=0.5),
            score_list(
                "shift_surveys",
                findings.shift_surveys,
                truth.shift_surveys,
                weight=1.5,
                similarity=by_error(errors.shift),
            ),
            *(
                score_names(name, stated, true, weight=0.5, denied=other or (), unclear=truth.borderline_species)
                for name, stated, true, other in (
                    ("declining_species", down, truth.declining_species, up),
                    ("increasing_species", up, truth.increasing_species, down),
                )
            ),
            *score_effects(
                "interactions",
                "interaction_strengths",
                None if findings.interactions is None else _effects(findings.interactions),
                _effects(truth.interactions),
                weights=(4.5, 1.5),
                error=errors.strength,
                words=("effects", "strengths"),
                once=True,
            ),
            score_names("warmth_gains", warm, truth.warmth_gains, weight=0.5, denied=cold or ()),
            score_names("warmth_loses", cold, truth.warmth_loses, weight=0.5, denied=warm or ()),
            _score_forecast(findings.forecast, truth.forecast, errors.forecast),
        )

    def checks(self, truth: EcologyTruth) -> tuple[Check, ...]:
        """Species counted, shift found and dated, interactions discussed, changed species named, future predicted."""
        shift = r"\b(?:regime|shifts?|change[ -]?points?|structural breaks?|tipping points?|turning points?)\b"
        verbs = r"\b(?:detect|found|begin|began|occur|identif|reveal|show|at survey|starts?|started)"
        return (
            Check("species counted", says_count(len(truth.species), "species")),
            Check("regime shift detected", says_together(shift, verbs)),
            Check(
                "regime shift dated",
                says_number(shift, truth.shift_surveys, FULL_ERRORS * ERRORS[truth.difficulty].shift),
            ),
            Check(
                "interactions discussed",
                says_together(
                    r"\binteract|\beffects?\b|->|→", r"\b(?:positive|negative)(?:ly)?\b|\|\s*[-+−]|[-+−]\s?0?\.\d"
                ),
            ),
            Check("changed species named", says_name(truth.declining_species + truth.increasing_species)),
            Check(
                "temperature discussed", says_together(r"\b(?:temperature|warm)", r"\b(?:growth|grow|species|effect)")
            ),
            Check(
                "future predicted",
                says_together(r"\b(?:forecast|predict|project|expect)", r"\b(?:abundance|population|count)"),
            ),
        )

    def summary(self, truth: EcologyTruth) -> str:
        """The truth in sentences."""
        shifts = ", ".join(map(str, truth.shift_surveys))
        effects = [
            f"{effect.source} has a {'positive' if effect.sign == '+' else 'negative'} effect on {effect.target} "
            f"(strength {effect.strength:.2f})."
            for effect in truth.interactions
        ]
        return "\n".join(
            [
                f"The community has {len(truth.species)} species: {', '.join(truth.species)}.",
                f"A regime shift begins at survey {shifts}, counted from 0.",
                f"Rarer after it: {', '.join(truth.declining_species)}. "
                f"More common after it: {', '.join(truth.increasing_species)}.",
                "Species interact by predation (the prey has a positive effect on its predator, which has a negative "
                "one on it), by competition (negative both ways) and by help that runs one way.",
                *effects,
                f"Warmer temperature speeds up the growth of {', '.join(truth.warmth_gains)} and slows down that of "
                f"{', '.join(truth.warmth_loses)}.",
                f"The predicted mean abundance over the next {HORIZON} surveys is "
                + ", ".join(f"{forecast.abundance:.1f} for {forecast.species}" for forecast in truth.forecast)
                + ".",
            ]
        )


def _effects(interactions: Sequence[Interaction]) -> list[Effect]:
    return [Effect((plain_name(i.source), plain_name(i.target)), i.sign, i.strength or 0.0) for i in interactions]


def _score_forecast(stated: Sequence[Forecast] | None, true: Sequence[Forecast], error: float) -> Credit:
    """Credit of the forecast; the last of several numbers for a species counts."""
    last = None if stated is None else list({plain_name(forecast.species): forecast for forecast in stated}.values())

    def similarity(a: Forecast, b: Forecast) -> float:
        same = plain_name(a.species) == plain_name(b.species)
        return by_error(error, relative=True)(a.abundance, b.abundance) if same else 0.0

    return score_list("forecast", last, true, weight=1.25, similarity=similarity)


def _truth(community: Community, history: History, level: EcologyLevel, difficulty: Difficulty) -> EcologyTruth:
    names = community.species
    down, up, close = changed(history.log_abundance, community, level.onset)
    targets, sources = np.nonzero(community.effects - np.diag(np.diag(community.effects)))
    return EcologyTruth(
        difficulty=difficulty,
        species=list(names),
        shift_surveys=list(community.shifts),
        declining_species=down,
        increasing_species=up,
        borderline_species=close,
        interactions=[
            Interaction(
                source=names[source],
                target=names[target],
                sign="+" if community.effects[target, source] > 0 else "-",
                strength=abs(float(community.effects[target, source])),
            )
            for target, source in zip(targets, sources, strict=True)
        ],
        warmth_gains=[names[i] for i in np.flatnonzero(community.warmth > 0)],
        warmth_loses=[names[i] for i in np.flatnonzero(community.warmth < 0)],
        forecast=[
            Forecast(species=name, abundance=float(value)) for name, value in zip(names, history.future, strict=True)
        ],
    )
