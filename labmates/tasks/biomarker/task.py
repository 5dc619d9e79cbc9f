"""The biomarker task: hidden subtypes of patients, and predictors of the treatment effect.

Source: cooperative-profiles paper, section 4.1 (science tasks). Data, findings and scoring are our own design.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from labmates.tasks.base import Check, Credit, Dataset, Difficulty, Task, level_of
from labmates.tasks.biomarker.analysis import BIOMARKER_ANALYSIS
from labmates.tasks.biomarker.data import ASSAYS, LEVELS, MARKERS, Cohort, Trial, draw_cohort, draw_trial
from labmates.tasks.biomarker.findings import (
    ECHO,
    BiomarkerFindings,
    BiomarkerTruth,
    MarkerEffect,
    Subtype,
    TrueSubtype,
    score_findings,
)
from labmates.tasks.biomarker.ideal import ideal_findings
from labmates.tasks.biomarker.instruments import BiomarkerInstruments
from labmates.tasks.biomarker.records import NOT_DONE, Laboratory, draw_laboratory, trial_frame
from labmates.tasks.noise import Floats, random_for
from labmates.tasks.words import says_count, says_together

BRIEF = f"""A randomised trial at several sites compared an active treatment with a placebo in a chronic disease, and \
measured {MARKERS} biomarkers before the treatment began. Find out which kinds of patients there are and whom the \
treatment helps. How many patients took part? By how much did the arms differ in their mean improvement? Which \
markers are prognostic (they shift the improvement in both arms alike), and which are predictive (the effect of the \
treatment depends on their level)? Give each with its sign and its size in points for each standard deviation of the \
marker's log level, given the other markers and the patient's other data: markers move together, so that many are \
related to the outcome only through others, and one marker may be both. The patients belong to a few hidden subtypes, \
which differ in the levels of some markers: how many are there, how common is each, by which markers is it told, and \
how much can it expect of the treatment? Which share of all patients can expect a benefit at all? The records are as \
people left them: check spelling, units, patients entered twice, values below the detection limit, differences between \
assay batches, and why values are missing, before you trust any number."""


class Guess(NamedTuple):
    """Values of the prior at one difficulty: markers' effect sizes in points, and the share with a benefit."""

    prognostic: float
    predictive: float
    benefit: float


GUESSED: Mapping[Difficulty, Guess] = {
    "easy": Guess(3.0, 4.0, 0.66),
    "medium": Guess(1.45, 2.1, 0.86),
    "hard": Guess(1.2, 1.8, 0.91),
}
MIDDLE_EFFECT, MIDDLE_SUBTYPES = 4.5, 4
"""The values with the highest mean score (``python -m benchmarks.task_scores --search``)."""

_MARKER = re.compile(rf"(?:{'|'.join(assay.letters for assay in ASSAYS)})\d{{3}}")


class BiomarkerTask(Task[BiomarkerTruth, BiomarkerFindings]):
    """Prognostic and predictive markers and hidden subtypes in a randomised trial."""

    name = "biomarker"
    title = "Biomarkers of treatment response"
    brief = BRIEF
    version = "5"
    findings = BiomarkerFindings
    instruments = BiomarkerInstruments()
    analysis = BIOMARKER_ANALYSIS

    def generate(self, seed: int, difficulty: Difficulty = "medium") -> Dataset[BiomarkerTruth]:
        """The records of one trial; for difficulties see `labmates.tasks.biomarker.data.LEVELS`."""
        level = level_of(LEVELS, difficulty)
        trial = draw_trial(level, random_for(self.name, seed, difficulty, "trial"))
        cohort = draw_cohort(trial, level, random_for(self.name, seed, difficulty, "cohort"))
        laboratory = draw_laboratory(trial, level, random_for(self.name, seed, difficulty, "laboratory"))
        frame = trial_frame(trial, cohort, laboratory, level, random_for(self.name, seed, difficulty, "records"))
        truth = _truth(trial, cohort, laboratory, difficulty)
        return Dataset(
            frame,
            truth,
            _description(trial, laboratory),
            lambda: ideal_findings(frame, truth, trial, cohort, laboratory, level),
        )

    def oracle(self, truth: BiomarkerTruth) -> BiomarkerFindings:
        """The truth as findings."""
        subtypes = [Subtype(**subtype.model_dump(exclude={"echoes"})) for subtype in truth.subtypes]
        values = truth.model_dump(exclude={"subtypes", "difficulty"})
        return BiomarkerFindings(n_subtypes=len(subtypes), subtypes=subtypes, **values)

    def prior(self, columns: Sequence[str], difficulty: Difficulty) -> BiomarkerFindings:
        """Likely numbers, and a few random markers for each list."""
        markers = [column for column in columns if _MARKER.fullmatch(column)]
        guess = level_of(GUESSED, difficulty)
        prognostic, predictive = (
            [MarkerEffect(marker=marker, sign="+", size=size) for marker in markers[:6]]
            for size in (guess.prognostic, guess.predictive)
        )
        pairs = [markers[at : at + 2] for at in range(0, 2 * MIDDLE_SUBTYPES, 2)]
        return BiomarkerFindings(
            average_treatment_effect=MIDDLE_EFFECT,
            prognostic_markers=prognostic,
            predictive_markers=predictive,
            benefit_share=guess.benefit,
            n_subtypes=MIDDLE_SUBTYPES,
            subtypes=[
                Subtype(share=1 / MIDDLE_SUBTYPES, high=pair, treatment_effect=MIDDLE_EFFECT) for pair in pairs if pair
            ],
            batch_markers=markers[:4],
            other_unit_markers=markers[:4],
        )

    def score(self, findings: BiomarkerFindings, truth: BiomarkerTruth) -> tuple[Credit, ...]:
        """Credits; see `labmates.tasks.biomarker.findings.score_findings`."""
        return score_findings(findings, truth)

    def checks(self, truth: BiomarkerTruth) -> tuple[Check, ...]:
        """Patients and subtypes counted, both kinds of markers named, effect, missing values and batches discussed."""
        treatment = r"\b(?:treatment|active)\b"
        lack = r"\b(?:missing|imput\w*|drop-?outs?|left the trial)\b"
        points = r"(?<![\w.])[-−+]?\d+(?:\.\d+)?[- ]points?\b"
        return (
            Check("patients counted", says_count(truth.n_patients, "patients")),
            Check("average effect told", says_together(treatment, r"\b(?:average|mean|overall)\b", points)),
            Check("prognostic marker named", says_together(r"\bprognostic", _any_of(truth.prognostic_markers))),
            Check("predictive marker named", says_together(r"\bpredictive", _any_of(truth.predictive_markers))),
            Check(
                "interaction discussed",
                says_together(
                    r"\b(?:treatment|active|arm|effects?)\b",
                    r"\b(?:interact|depends? on|modif|larger|smaller|predictive|benefits? (?:most|least))",
                ),
            ),
            Check("subtypes counted", says_count(len(truth.subtypes), r"(?:sub)?(?:types|classes|groups)")),
            Check("subtype described", says_together(r"\bsubtype", r"\b(?:high|low|rais|lower|elevat)", r"\d")),
            Check("missing values discussed", says_together(lack, r"\d|random|imput")),
            Check("assay batches discussed", says_together(r"\bbatch", r"\b(?:markers?|shifts?|levels?|units?)\b")),
        )

    def summary(self, truth: BiomarkerTruth) -> str:
        """The truth in sentences."""
        return "\n".join(_sentences(truth))


def _any_of(effects: Sequence[MarkerEffect]) -> str:
    return rf"\b(?:{'|'.join(re.escape(effect.marker) for effect in effects)})\b"


def _sentences(truth: BiomarkerTruth) -> Iterator[str]:
    yield f"The trial has {truth.n_patients} patients."
    yield f"The average effect of the active treatment is {truth.average_treatment_effect:.2f} points of improvement."
    for marker in truth.prognostic_markers:
        effect = f"{marker.sign}{marker.size:.2f}"
        yield f"Prognostic in both arms is {marker.marker}: {effect} points for each standard deviation."
    for marker in truth.predictive_markers:
        more = "larger" if marker.sign == "+" else "smaller"
        yield (
            f"Predictive is {marker.marker}: at high levels the treatment has a {more} effect, by {marker.size:.2f} "
            "points for each standard deviation."
        )
    yield f"A benefit can be expected by {100 * truth.benefit_share:.1f} % of them."
    yield f"The patients belong to {len(truth.subtypes)} subtypes."
    for kind in truth.subtypes:
        yield (
            f"In a subtype with {100 * (kind.share or 0.0):.1f} % of the patients, high are {' and '.join(kind.high)} "
            f"and low {' and '.join(kind.low)}; the treatment gains {kind.treatment_effect:.2f} points in it."
        )
    yield "Outcomes, samples and single values are not missing at random, but more often in patients who do poorly."
    yield f"The levels of the markers {', '.join(truth.batch_markers)} differ between assay batches."
    yield f"Some batches give the markers {', '.join(truth.other_unit_markers)} in another unit."


def _truth(trial: Trial, cohort: Cohort, laboratory: Laboratory, difficulty: Difficulty) -> BiomarkerTruth:
    return BiomarkerTruth(
        difficulty=difficulty,
        n_patients=len(cohort.site),
        average_treatment_effect=round(
            float(cohort.improvement[cohort.treated].mean() - cohort.improvement[~cohort.treated].mean()), 2
        ),
        prognostic_markers=_effects(trial, trial.prognostic),
        predictive_markers=_effects(trial, trial.predictive),
        benefit_share=round(float((cohort.benefit > 0).mean()), 4),
        subtypes=[_subtype(trial, cohort, k) for k in range(len(trial.shares))],
        batch_markers=[trial.markers[j] for j in np.flatnonzero(laboratory.shift.any(axis=0))],
        other_unit_markers=[trial.markers[j] for j in np.flatnonzero(laboratory.other_unit.any(axis=0))],
    )


def _effects(trial: Trial, points: Floats) -> list[MarkerEffect]:
    return [
        MarkerEffect(marker=trial.markers[j], sign="+" if points[j] > 0 else "-", size=abs(float(points[j])))
        for j in np.flatnonzero(points)
    ]


def _subtype(trial: Trial, cohort: Cohort, k: int) -> TrueSubtype:
    mine = cohort.subtype == k
    shift, mean = trial.shift[k], cohort.level[mine].mean(axis=0)
    return TrueSubtype(
        share=round(float(mine.mean()), 4),
        high=[trial.markers[j] for j in np.flatnonzero(shift > 0)],
        low=[trial.markers[j] for j in np.flatnonzero(shift < 0)],
        treatment_effect=round(float(cohort.benefit[mine].mean()), 2),
        echoes=[trial.markers[j] for j in np.flatnonzero((shift == 0) & (np.abs(mean) > ECHO))],
    )


def _description(trial: Trial, laboratory: Laboratory) -> str:
    markers = "\n".join(
        f"- {name}: {assay.method}, meant to be in {assay.unit}{f', detection limit {limit:g}' if limit else ''}"
        for name, assay, limit in zip(trial.markers, trial.assays, laboratory.limit.tolist(), strict=True)
    )
    return f"""One row for each patient of a double-blind trial in two arms, randomised within each site, half of the \
patients to either arm.

- patient: number of the site and of the patient at it
- site: name of the site, typed by hand
- enrolled: day of enrolment (year-month-day)
- age: in years
- sex: F or M
- smoker: yes or no
- height_cm: height in centimetres
- weight: meant to be in kilograms
- arm: active or placebo, typed by hand
- batch: batch in which the patient's sample was measured, in the order of enrolment
- score_baseline: symptom score before the treatment, in points from 0 (none) to 100
{markers}
- improvement: symptom score before the treatment minus the score after half a year, in points (higher is better)

Known habits of the records: markers were measured in blood taken before the treatment; a level below the detection \
limit is given as < and the limit; empty or {NOT_DONE:.0f} means that there is no value; there is no improvement of \
those who left the trial; some sites may write the improvement with the opposite sign; some batches were exported in \
another unit; some scales show pounds; a decimal point is sometimes in the wrong place; some patients were entered \
twice."""
