"""Findings of a report on the biomarker task, and their comparison with the truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple

from pydantic import BaseModel, Field

from labmates.tasks.base import Credit, Difficulty, Share, finding
from labmates.tasks.choices import AnySign
from labmates.tasks.scoring import (
    NOT_STATED,
    Effect,
    by_error,
    guarded_f1,
    matches,
    plain_name,
    score_count,
    score_effects,
    score_list,
    score_names,
    score_number,
)


class Errors(NamedTuple):
    """Standard errors of an ideal fit: effects and sizes in points, shares as such."""

    average: float
    benefit: float
    prognostic: float
    predictive: float
    share: float
    group: float


ERRORS: Mapping[Difficulty, Errors] = {
    "easy": Errors(0.1, 0.02, 0.25, 0.3, 0.01, 0.4),
    "medium": Errors(0.15, 0.03, 0.3, 0.4, 0.01, 0.5),
    "hard": Errors(0.35, 0.06, 0.4, 0.6, 0.015, 0.8),
}
"""Spread of the ideal findings (`Dataset.ideal`) around the truth over a dozen data sets, at least 0.01 for a share."""
LEAST_FACTOR, NO_SHARE = 0.5, 0.6
"""Factor for a subtype with a wrong, or no, share."""
SAME = 0.5
"""Least similarity of a stated subtype to count as the true one, for its treatment effect."""
ECHO = 0.15
"""Markers outside a subtype's signature with a mean this far off (in standard deviations), because of other subtypes or
common pathways, may be stated or not."""

Name = Annotated[str, Field(max_length=100)]


class MarkerEffect(BaseModel):
    """The role of one marker."""

    marker: Name = Field(description="column of the marker")
    sign: AnySign | None = Field(
        None,
        description="'+' if higher levels go with a larger improvement or treatment effect, '-' if with a smaller one",
    )
    size: float | None = Field(
        None, description="points for each standard deviation of the marker's log level, as a size without sign"
    )


class Subtype(BaseModel):
    """One kind of patients."""

    share: Share | None = Field(None, description="share of all patients, between 0 and 1")
    high: list[Name] = Field(
        default_factory=list, max_length=100, description="columns of the markers that are clearly raised in it"
    )
    low: list[Name] = Field(
        default_factory=list, max_length=100, description="columns of the markers that are clearly lowered in it"
    )
    treatment_effect: float | None = Field(
        None, description="mean over its patients of the effect expected given their markers, in points of improvement"
    )


class TrueSubtype(Subtype):
    """One kind of patients; `echoes` are markers that may be stated or not."""

    echoes: list[Name]


class BiomarkerFindings(BaseModel):
    """The findings of a report on the biomarker task."""

    n_patients: int | None = finding("number of distinct patients", 12)
    average_treatment_effect: float | None = finding(
        "difference between the mean improvements of the active and the placebo arm in this trial, over all its "
        "patients including those who left, in points (positive: the treatment helps)",
        100.0,
    )
    prognostic_markers: list[MarkerEffect] | None = finding(
        "prognostic markers: their level shifts the improvement in both arms, given the other markers "
        "and the patient's other data",
        [{"marker": "XX1", "sign": "+", "size": 9.5}],
        most=200,
    )
    predictive_markers: list[MarkerEffect] | None = finding(
        "predictive markers: the effect of the treatment depends on their level, given the other "
        "markers (sign and size are those of the interaction)",
        [{"marker": "XX1", "sign": "-", "size": 9.5}],
        most=200,
    )
    benefit_share: Share | None = finding(
        "share of patients whose expected effect of the treatment, given their markers, is above zero; between 0 and 1",
        0.01,
    )
    n_subtypes: int | None = finding("number of hidden subtypes of patients", 12)
    subtypes: list[Subtype] | None = finding(
        "the hidden subtypes, one entry for each",
        [{"share": 0.9, "high": ["XX1"], "low": ["XX2"], "treatment_effect": 100.0}],
        most=50,
    )
    batch_markers: list[Name] | None = finding(
        "columns of the markers whose level differs between assay batches for technical reasons", ["XX1"], most=200
    )
    other_unit_markers: list[Name] | None = finding(
        "columns of the markers that some assay batches give in another unit", ["XX1"], most=200
    )


class BiomarkerTruth(BaseModel):
    """The truth of one biomarker data set; fields as in `BiomarkerFindings`."""

    difficulty: Difficulty
    n_patients: int
    average_treatment_effect: float
    prognostic_markers: list[MarkerEffect]
    predictive_markers: list[MarkerEffect]
    benefit_share: float
    subtypes: list[TrueSubtype]
    batch_markers: list[str]
    other_unit_markers: list[str]


def score_findings(findings: BiomarkerFindings, truth: BiomarkerTruth) -> tuple[Credit, ...]:
    """Credits by the `ERRORS` of the difficulty; lists by F1 (`labmates.tasks.scoring.guarded_f1`)."""
    errors = ERRORS[truth.difficulty]
    return (
        score_count("n_patients", findings.n_patients, truth.n_patients, weight=0.5),
        score_number(
            "average_treatment_effect",
            findings.average_treatment_effect,
            truth.average_treatment_effect,
            weight=0.75,
            credit=by_error(errors.average),
        ),
        *_score_markers("prognostic", findings.prognostic_markers, truth.prognostic_markers, errors.prognostic),
        *_score_markers("predictive", findings.predictive_markers, truth.predictive_markers, errors.predictive),
        score_number(
            "benefit_share",
            findings.benefit_share,
            truth.benefit_share,
            weight=0.3,
            credit=by_error(errors.benefit),
        ),
        score_count("n_subtypes", findings.n_subtypes, len(truth.subtypes), weight=0.5),
        *_score_subtypes(findings.subtypes, truth.subtypes, errors),
        score_names("batch_markers", findings.batch_markers, truth.batch_markers, weight=0.5),
        score_names("other_unit_markers", findings.other_unit_markers, truth.other_unit_markers, weight=0.5),
    )


def _score_markers(
    kind: str, stated: Sequence[MarkerEffect] | None, true: Sequence[MarkerEffect], error: float
) -> tuple[Credit, Credit]:
    return score_effects(
        f"{kind}_markers",
        f"{kind}_sizes",
        None if stated is None else _effects(stated),
        _effects(true),
        weights=(2.5, 0.75),
        error=error,
        words=("markers", "sizes"),
    )


def _effects(markers: Sequence[MarkerEffect]) -> list[Effect]:
    return [Effect((plain_name(given.marker),), given.sign, given.size or 0.0) for given in markers]


def _score_subtypes(
    stated: Sequence[Subtype] | None, true: Sequence[TrueSubtype], errors: Errors
) -> tuple[Credit, Credit]:
    """Credit of the subtypes by markers and share, and of the treatment effects in matched subtypes."""
    if stated is None:
        return Credit("subtypes", 0.0, 2.5, NOT_STATED), Credit("subtype_effects", 0.0, 1, NOT_STATED)

    def similarity(a: Subtype, b: TrueSubtype) -> float:
        return _subtype_similarity(a, b, errors.share)

    near = [
        by_error(errors.group)(effect, true[j].treatment_effect or 0.0)
        for i, j, value in matches(stated, true, similarity)
        if value >= SAME and (effect := stated[i].treatment_effect) is not None
    ]
    reason = f"{len(near)} effects told of {len(true)} subtypes, mean closeness {sum(near) / max(len(near), 1):.2f}"
    return (
        score_list("subtypes", stated, true, weight=2.5, similarity=similarity),
        Credit("subtype_effects", sum(near) / max(len(true), len(stated)), 1, reason),
    )


def _subtype_similarity(stated: Subtype, true: TrueSubtype, error: float) -> float:
    """Similarity in [0, 1]: guarded F1 of the raised and lowered markers, times a factor for the share."""
    right, stated_profile = _profile(true), _profile(stated)
    echoes = {plain_name(name) for name in true.echoes}
    stated_profile = {(name, way) for name, way in stated_profile if name not in echoes}
    both = {name for name, _ in stated_profile if {(name, "high"), (name, "low")} <= stated_profile}
    hits = sum(name not in both for name, _ in stated_profile & right)
    profile = guarded_f1(hits, len(stated_profile), len(right))
    if stated.share is None:
        return NO_SHARE * profile
    near = by_error(error)(stated.share, true.share or 0.0)
    return (LEAST_FACTOR + (1 - LEAST_FACTOR) * near) * profile


def _profile(subtype: Subtype) -> set[tuple[str, str]]:
    ways = (("high", subtype.high), ("low", subtype.low))
    return {(plain_name(name), way) for way, names in ways for name in names}
