"""Findings of a report on the biomarker task, and their comparison with the truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, Field

from labmates.tasks.base import Credit, Share, finding
from labmates.tasks.choices import AnySign, Sign
from labmates.tasks.scoring import (
    NOT_STATED,
    fading,
    guarded_f1,
    matches,
    plain_name,
    relative_error,
    score_count,
    score_list,
    score_names,
    score_number,
    within,
)

EFFECT_FULL, EFFECT_ZERO = 0.6, 1.5
"""The average treatment effect earns full credit within 0.6 points of the truth, none from 1.5 points on."""
BENEFIT_FULL, BENEFIT_ZERO = 0.03, 0.10
"""The share with a benefit earns full credit within 0.03 of the truth, none from 0.10 on."""
SIZE_FULL, SIZE_ZERO = 0.3, 1.0
"""The size of a marker's effect earns full credit within 30 % of the truth, none from 100 % on."""
SHARE_FULL, SHARE_ZERO = 0.04, 0.15
"""A subtype's share earns full credit within 0.04 of the truth, none from 0.15 on."""
LEAST_FACTOR, NO_SHARE = 0.5, 0.6
"""Factor for a subtype with a wrong, or no, share."""
GROUP_FULL, GROUP_ZERO = 1.0, 3.0
"""The effect in a subtype earns full credit within 1 point of the truth, none from 3 points on."""
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
        None, description="mean effect of the treatment in it, in points of improvement"
    )


class TrueSubtype(Subtype):
    """One kind of patients; `echoes` are markers that may be stated or not."""

    echoes: list[Name]


class BiomarkerFindings(BaseModel):
    """The findings of a report on the biomarker task."""

    n_patients: int | None = finding("number of distinct patients", 12)
    average_treatment_effect: float | None = finding(
        "mean difference in improvement between active treatment and placebo over all randomised "
        "patients, in points (positive: the treatment helps)",
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

    n_patients: int
    average_treatment_effect: float
    prognostic_markers: list[MarkerEffect]
    predictive_markers: list[MarkerEffect]
    benefit_share: float
    subtypes: list[TrueSubtype]
    batch_markers: list[str]
    other_unit_markers: list[str]


def score_findings(findings: BiomarkerFindings, truth: BiomarkerTruth) -> tuple[Credit, ...]:
    """Credits by the tolerances of this module; lists by F1 (`labmates.tasks.scoring.guarded_f1`)."""
    return (
        score_count("n_patients", findings.n_patients, truth.n_patients, weight=0.5),
        score_number(
            "average_treatment_effect",
            findings.average_treatment_effect,
            truth.average_treatment_effect,
            weight=1.25,
            credit=within(EFFECT_FULL, EFFECT_ZERO),
        ),
        *_score_markers("prognostic", findings.prognostic_markers, truth.prognostic_markers),
        *_score_markers("predictive", findings.predictive_markers, truth.predictive_markers),
        score_number(
            "benefit_share",
            findings.benefit_share,
            truth.benefit_share,
            weight=0.5,
            credit=within(BENEFIT_FULL, BENEFIT_ZERO),
        ),
        score_count("n_subtypes", findings.n_subtypes, len(truth.subtypes), weight=0.5),
        *_score_subtypes(findings.subtypes, truth.subtypes),
        score_names("batch_markers", findings.batch_markers, truth.batch_markers, weight=0.5),
        score_names("other_unit_markers", findings.other_unit_markers, truth.other_unit_markers, weight=0.5),
    )


def _score_markers(
    kind: str, stated: Sequence[MarkerEffect] | None, true: Sequence[MarkerEffect]
) -> tuple[Credit, Credit]:
    """Credit of markers by name and sign, and of the effect sizes of matched markers.

    A marker without a sign counts half; a wrong sign, or both signs for the same marker, count nothing.
    """
    if stated is None:
        return Credit(f"{kind}_markers", 0.0, 2.5, NOT_STATED), Credit(f"{kind}_sizes", 0.0, 0.75, NOT_STATED)
    signs: dict[str, set[Sign]] = {}
    for effect in stated:
        signs.setdefault(plain_name(effect.marker), set()).update([effect.sign] if effect.sign else [])

    def similarity(a: MarkerEffect, b: MarkerEffect) -> float:
        name = plain_name(a.marker)
        if name != plain_name(b.marker) or len(signs[name]) > 1 or a.sign not in (None, b.sign):
            return 0.0
        return 1.0 if a.sign else 0.5

    near = [
        fading(relative_error(abs(stated[i].size or 0.0), abs(true[j].size or 0.0)), SIZE_FULL, SIZE_ZERO)
        for i, j, value in matches(stated, true, similarity)
        if value == 1.0
    ]
    reason = f"{len(near)} markers found of {len(true)}, mean closeness of their sizes {_mean(near):.2f}"
    return (
        score_list(f"{kind}_markers", stated, true, weight=2.5, similarity=similarity),
        Credit(f"{kind}_sizes", sum(near) / max(len(true), len(stated)), 0.75, reason),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(len(values), 1)


def _score_subtypes(stated: Sequence[Subtype] | None, true: Sequence[TrueSubtype]) -> tuple[Credit, Credit]:
    """Credit of the subtypes by markers and share, and of the treatment effects in matched subtypes."""
    if stated is None:
        return Credit("subtypes", 0.0, 2.5, NOT_STATED), Credit("subtype_effects", 0.0, 1, NOT_STATED)
    near = [
        fading(abs(effect - (true[j].treatment_effect or 0.0)), GROUP_FULL, GROUP_ZERO)
        for i, j, value in matches(stated, true, _subtype_similarity)
        if value >= SAME and (effect := stated[i].treatment_effect) is not None
    ]
    reason = f"{len(near)} effects told of {len(true)} subtypes, mean closeness {_mean(near):.2f}"
    return (
        score_list("subtypes", stated, true, weight=2.5, similarity=_subtype_similarity),
        Credit("subtype_effects", sum(near) / max(len(true), len(stated)), 1, reason),
    )


def _subtype_similarity(stated: Subtype, true: TrueSubtype) -> float:
    """Similarity in [0, 1]: guarded F1 of the raised and lowered markers, times a factor for the share."""
    right, stated_profile = _profile(true), _profile(stated)
    echoes = {plain_name(name) for name in true.echoes}
    stated_profile = {(name, way) for name, way in stated_profile if name not in echoes}
    both = {name for name, _ in stated_profile if {(name, "high"), (name, "low")} <= stated_profile}
    hits = sum(name not in both for name, _ in stated_profile & right)
    profile = guarded_f1(hits, len(stated_profile), len(right))
    if stated.share is None:
        return NO_SHARE * profile
    near = fading(abs(stated.share - (true.share or 0.0)), SHARE_FULL, SHARE_ZERO)
    return (LEAST_FACTOR + (1 - LEAST_FACTOR) * near) * profile


def _profile(subtype: Subtype) -> set[tuple[str, str]]:
    ways = (("high", subtype.high), ("low", subtype.low))
    return {(plain_name(name), way) for way, names in ways for name in names}
