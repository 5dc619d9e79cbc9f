"""The ecology task: interactions of species, regime shifts, and a forecast.

Source: cooperative-profiles paper, section 4.1 (science tasks). Data, findings and scoring are our own design.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from labmates.tasks.base import Check, Credit, Dataset, Difficulty, Task, level_of
from labmates.tasks.choices import Sign
from labmates.tasks.ecology.analysis import ECOLOGY_ANALYSIS
from labmates.tasks.ecology.data import (
    HORIZON,
    LEVELS,
    Community,
    History,
    draw_community,
    simulate,
    survey_frame,
)
from labmates.tasks.ecology.findings import EcologyFindings, EcologyTruth, Forecast, Interaction
from labmates.tasks.ecology.instruments import EcologyInstruments
from labmates.tasks.noise import random_for
from labmates.tasks.scoring import (
    NOT_STATED,
    fading,
    matches,
    plain_name,
    relative_error,
    score_count,
    score_list,
    score_names,
)
from labmates.tasks.words import says_all, says_count, says_name, says_number, says_together

BRIEF = f"""Several sites were surveyed every two weeks for six years, and every species found was counted. Find out \
how this community works and where it is heading. How many species are there? Did the community pass from one regime \
into another, how often, and at which surveys did each change begin? Which species became clearly rarer or more \
common? Which species act on the growth of which others, in which direction, with which sign and strength (predators \
gain from their prey, which lose; competitors harm each other; some effects run one way only)? Which species respond \
to temperature? Predict the mean abundance of every species over the {HORIZON} surveys after the last one. The \
records are as people left them: check spelling, units, repeated rows, gaps and slips of the pen before you trust any \
number."""

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

SHIFT_FULL, SHIFT_ZERO = 3, 9
"""A stated shift earns full credit within 3 surveys of the truth, none from 9 surveys on."""
FORECAST_FULL, FORECAST_ZERO = 0.08, 0.32
"""A forecast earns full credit within 8 % of the true mean, none from 32 % on."""
STRENGTH_FULL, STRENGTH_ZERO = 0.3, 1.0
"""A strength earns full credit within 30 % of the truth, none from 100 % on."""


GUESSED_SHIFTS: Mapping[Difficulty, tuple[int, ...]] = {"easy": (74, 92), "medium": (52, 104), "hard": (42, 108)}
GUESSED_SPECIES: Mapping[Difficulty, int] = {"easy": 6, "medium": 6, "hard": 7}
"""Values of the prior, with the highest mean score (``python -m benchmarks.task_scores --search``)."""


class EcologyTask(Task[EcologyTruth, EcologyFindings]):
    """Population dynamics of several species with interactions, regime shifts and a forecast."""

    name = "ecology"
    title = "Species interactions and regime shifts"
    brief = BRIEF
    version = "2"
    findings = EcologyFindings
    instruments = EcologyInstruments()
    analysis = ECOLOGY_ANALYSIS

    def generate(self, seed: int, difficulty: Difficulty = "medium") -> Dataset[EcologyTruth]:
        """The surveys of one community; for difficulties see `labmates.tasks.ecology.data.LEVELS`."""
        level = level_of(LEVELS, difficulty)
        community = draw_community(level, random_for(self.name, seed, difficulty, "community"))
        history = simulate(community, level, random_for(self.name, seed, difficulty, "history"))
        frame = survey_frame(community, history, level, random_for(self.name, seed, difficulty, "survey"))
        return Dataset(frame, _truth(community, history), DESCRIPTION)

    def oracle(self, truth: EcologyTruth) -> EcologyFindings:
        """The truth as findings."""
        return EcologyFindings(n_species=len(truth.species), **truth.model_dump(exclude={"species"}))

    def prior(self, columns: Sequence[str], difficulty: Difficulty) -> EcologyFindings:
        """The most likely number of species and shifts; species are unknown beforehand."""
        return EcologyFindings(
            n_species=level_of(GUESSED_SPECIES, difficulty), shift_surveys=list(level_of(GUESSED_SHIFTS, difficulty))
        )

    def score(self, findings: EcologyFindings, truth: EcologyTruth) -> tuple[Credit, ...]:
        """Credits by the tolerances of this module; lists by F1 (`labmates.tasks.scoring.guarded_f1`)."""
        up, down = findings.increasing_species, findings.declining_species
        warm, cold = findings.warmth_gains, findings.warmth_loses
        return (
            score_count("n_species", findings.n_species, len(truth.species), weight=0.5),
            score_list(
                "shift_surveys",
                findings.shift_surveys,
                truth.shift_surveys,
                weight=2,
                similarity=lambda a, b: fading(abs(a - b), SHIFT_FULL, SHIFT_ZERO),
            ),
            score_names("declining_species", down, truth.declining_species, weight=1, denied=up or ()),
            score_names("increasing_species", up, truth.increasing_species, weight=1, denied=down or ()),
            *_score_interactions(findings.interactions, truth.interactions),
            score_names("warmth_gains", warm, truth.warmth_gains, weight=0.5, denied=cold or ()),
            score_names("warmth_loses", cold, truth.warmth_loses, weight=0.5, denied=warm or ()),
            _score_forecast(findings.forecast, truth.forecast),
        )

    def checks(self, truth: EcologyTruth) -> tuple[Check, ...]:
        """Species counted, shift found and dated, interactions discussed, changed species named, future predicted."""
        shift = r"\b(?:regime|shifts?|change[ -]?points?|structural breaks?|tipping points?|turning points?)\b"
        verbs = r"\b(?:detect|found|begin|began|occur|identif|reveal|show|at survey|starts?|started)"
        return (
            Check("species counted", says_count(len(truth.species), "species")),
            Check("regime shift detected", says_together(shift, verbs)),
            Check("regime shift dated", says_number(shift, truth.shift_surveys, SHIFT_FULL)),
            Check(
                "interactions discussed",
                says_together(
                    r"\binteract|\beffects?\b|->|→", r"\b(?:positive|negative)(?:ly)?\b|\|\s*[-+−]|[-+−]0?\.\d"
                ),
            ),
            Check("kinds of interaction named", says_all(r"\b(?:predat|prey)", r"\bcompet")),
            Check("changed species named", says_name(truth.declining_species + truth.increasing_species)),
            Check(
                "temperature discussed", says_together(r"\b(?:temperature|warm)", r"\b(?:growth|grow|species|effect)")
            ),
            Check(
                "future predicted",
                says_together(r"\b(?:forecast|predict|project)", r"\b(?:abundance|population|count)"),
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


def _score_interactions(stated: Sequence[Interaction] | None, true: Sequence[Interaction]) -> tuple[Credit, Credit]:
    """Credit of the list by (source, target, sign), and of the strengths of matched effects.

    An effect without a sign, or with source and target exchanged, counts half; a wrong sign, or both signs for the same
    effect, count nothing. Repeated effects count once.
    """
    if stated is None:
        return Credit("interactions", 0.0, 3, NOT_STATED), Credit("interaction_strengths", 0.0, 1, NOT_STATED)
    signs: dict[tuple[str, str], set[Sign]] = {}
    once: dict[tuple[str, str], Interaction] = {}
    for interaction in stated:
        signs.setdefault(_direction(interaction), set()).update([interaction.sign] if interaction.sign else [])
        if interaction.sign or _direction(interaction) not in once:
            once[_direction(interaction)] = interaction
    effects = list(once.values())

    def similarity(a: Interaction, b: Interaction) -> float:
        same, turned = _direction(a) == _direction(b), _direction(a) == _direction(b)[::-1]
        if not (same or turned) or len(signs[_direction(a)]) > 1 or a.sign not in (None, b.sign):
            return 0.0
        return 1.0 if same and a.sign else 0.5

    near = [
        fading(
            relative_error(abs(effects[i].strength or 0.0), abs(true[j].strength or 0.0)), STRENGTH_FULL, STRENGTH_ZERO
        )
        for i, j, value in matches(effects, true, similarity)
        if value == 1.0
    ]
    strengths = sum(near) / max(len(true), len(effects)) if true or effects else 1.0
    closeness = sum(near) / max(len(near), 1)
    reason = f"{len(near)} effects found of {len(true)}, mean closeness of their strengths {closeness:.2f}"
    return (
        score_list("interactions", effects, true, weight=3, similarity=similarity),
        Credit("interaction_strengths", strengths, 1, reason),
    )


def _direction(interaction: Interaction) -> tuple[str, str]:
    return plain_name(interaction.source), plain_name(interaction.target)


def _score_forecast(stated: Sequence[Forecast] | None, true: Sequence[Forecast]) -> Credit:
    """Credit of the forecast; the last of several numbers for a species counts."""
    last = None if stated is None else list({plain_name(forecast.species): forecast for forecast in stated}.values())

    def similarity(a: Forecast, b: Forecast) -> float:
        same = plain_name(a.species) == plain_name(b.species)
        return fading(relative_error(a.abundance, b.abundance), FORECAST_FULL, FORECAST_ZERO) if same else 0.0

    return score_list("forecast", last, true, weight=2, similarity=similarity)


def _truth(community: Community, history: History) -> EcologyTruth:
    names = community.species
    change = community.typical[-1] - community.typical[0]
    bound = math.log(1.25)
    targets, sources = np.nonzero(community.effects - np.diag(np.diag(community.effects)))
    return EcologyTruth(
        species=list(names),
        shift_surveys=list(community.shifts),
        declining_species=[names[i] for i in np.flatnonzero(change < math.log(0.75))],
        increasing_species=[names[i] for i in np.flatnonzero(change > bound)],
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
