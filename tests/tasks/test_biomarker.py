"""The biomarker task: the trial follows its equations, the records their habits, and the score what it promises."""

from __future__ import annotations

import datetime
import itertools
import re
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.tasks.base import DIFFICULTIES, Credit, Dataset, Difficulty, accuracy
from labmates.tasks.biomarker.data import (
    ASSAYS,
    BY_SCORE,
    LEVELS,
    MARKERS,
    SIGNATURE,
    Cohort,
    Trial,
    draw_cohort,
    draw_trial,
)
from labmates.tasks.biomarker.findings import BiomarkerFindings, BiomarkerTruth, MarkerEffect, Subtype
from labmates.tasks.biomarker.records import NOT_DONE, draw_laboratory
from labmates.tasks.biomarker.task import BiomarkerTask
from labmates.tasks.noise import Floats, random_for

TASK = BiomarkerTask()
SEEDS = range(4)


@cache
def made(seed: int = 0, difficulty: Difficulty = "medium") -> Dataset[BiomarkerTruth]:
    return TASK.generate(seed, difficulty)


@cache
def drawn(seed: int = 0, difficulty: Difficulty = "medium") -> tuple[Trial, Cohort]:
    trial = draw_trial(LEVELS[difficulty], random_for("biomarker", seed, difficulty, "trial"))
    return trial, draw_cohort(trial, LEVELS[difficulty], random_for("biomarker", seed, difficulty, "cohort"))


@cache
def patients(seed: int = 0, difficulty: Difficulty = "medium") -> pd.DataFrame:
    """Return the first row of every patient, in the order in which the cohort has them, with tidy arms."""
    first = made(seed, difficulty).frame.drop_duplicates("patient").sort_values("patient", ignore_index=True)
    return first.assign(arm=first["arm"].str.strip().str.lower())


def values(frame: pd.DataFrame, marker: str) -> Floats:
    return pd.to_numeric(frame[marker].astype(str).str.lstrip("<"), errors="coerce").to_numpy(float)


def score(truth: BiomarkerTruth, **stated: Any) -> dict[str, Credit]:
    return {credit.finding: credit for credit in TASK.score(BiomarkerFindings(**stated), truth)}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_markers_are_prognostic_predictive_both_or_neither_with_both_signs(seed: int, difficulty: Difficulty) -> None:
    trial, _ = drawn(seed, difficulty)
    prognostic, predictive = np.flatnonzero(trial.prognostic), np.flatnonzero(trial.predictive)
    assert len(set(trial.markers)) == MARKERS
    assert 4 <= len(prognostic) <= 6
    assert 3 <= len(predictive) <= 4
    assert len(np.intersect1d(prognostic, predictive)) == 1
    assert set(np.sign(trial.prognostic)) == {-1.0, 0.0, 1.0}
    for points, (low, high) in (
        (trial.prognostic[prognostic], LEVELS[difficulty].prognostic),
        (trial.predictive[predictive], LEVELS[difficulty].predictive),
    ):
        assert (np.abs(points) >= low - 0.01).all()
        assert (np.abs(points) <= high + 0.01).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_subtypes_have_raised_and_lowered_markers_and_two_differ_in_their_gain(seed: int) -> None:
    trial, cohort = drawn(seed)
    truth = made(seed).truth
    assert (np.count_nonzero(trial.shift, axis=1) == SIGNATURE).all()
    assert (np.count_nonzero(trial.shift, axis=0) <= 1).all()
    assert all(one.high and one.low for one in truth.subtypes)
    assert sum(one.share or 0 for one in truth.subtypes) == pytest.approx(1, abs=0.001)
    assert min(one.share or 0 for one in truth.subtypes) > 0.08
    gains = [one.treatment_effect or 0 for one in truth.subtypes]
    assert gains[0] == max(gains)
    assert max(gains) - min(gains) > 1
    realised = cohort.improvement[cohort.treated].mean() - cohort.improvement[~cohort.treated].mean()
    assert truth.average_treatment_effect == pytest.approx(realised, abs=0.01)
    assert truth.benefit_share == pytest.approx((cohort.benefit > 0).mean(), abs=1e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_outcome_follows_the_stated_equation(seed: int) -> None:
    trial, cohort = drawn(seed)
    n, treated = len(cohort.site), cohort.treated[:, None].astype(float)
    sites = np.eye(cohort.site.max() + 1)[cohort.site]
    others = np.stack([cohort.score, cohort.age, cohort.smoker], axis=1)
    design = np.hstack([treated, cohort.level, treated * cohort.level, others, sites])
    found, (rest,) = np.linalg.lstsq(design, cohort.improvement, rcond=None)[:2]
    error = np.sqrt(rest / (n - design.shape[1]) * np.diag(np.linalg.inv(design.T @ design)))
    true = np.array([trial.effect, *trial.prognostic, *trial.predictive, BY_SCORE])
    distance = np.abs(found[: len(true)] - true) / error[: len(true)]
    assert distance.max() < 4.5
    assert (distance < 2).mean() > 0.8
    assert np.sqrt(rest / n) == pytest.approx(LEVELS["medium"].noise, rel=0.06)


@pytest.mark.parametrize("seed", SEEDS)
def test_levels_are_standardised_correlated_and_differ_by_subtype_as_drawn(seed: int) -> None:
    trial, cohort = drawn(seed)
    assert np.abs(cohort.level.mean(axis=0)).max() < 1e-6
    assert cohort.level.std(axis=0) == pytest.approx(np.ones(MARKERS))
    correlation = (cohort.level.T @ cohort.level / len(cohort.level))[np.triu_indices(MARKERS, 1)]
    assert 0.3 < np.abs(correlation).max() < 0.8
    assert np.median(np.abs(correlation)) < 0.1
    for k, j in zip(*np.nonzero(trial.shift), strict=True):
        inside = cohort.level[cohort.subtype == k, j].mean()
        assert np.sign(inside) == np.sign(trial.shift[k, j])
        assert abs(inside) > 0.3


@pytest.mark.parametrize("seed", SEEDS)
def test_arms_are_balanced_within_sites_and_alike_before_the_treatment(seed: int) -> None:
    _, cohort = drawn(seed)
    balance = pd.Series(np.where(cohort.treated, 1, -1)).groupby(cohort.site).sum()
    assert balance.abs().max() <= 2
    for column in (*cohort.level.T, cohort.age, cohort.score):
        gap = column[cohort.treated].mean() - column[~cohort.treated].mean()
        assert abs(gap) < 0.2 * column.std()


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_missing_is_moderately_not_at_random(seed: int) -> None:
    _, cohort = drawn(seed, "hard")
    frame = patients(seed, "hard").replace(NOT_DONE, np.nan)
    left = frame["improvement"].isna().to_numpy()
    assert 0.1 < left.mean() < 0.25
    gap = (cohort.improvement[left].mean() - cohort.improvement[~left].mean()) / cohort.improvement.std()
    assert -0.8 < gap < -0.25
    samples = frame[list(drawn(seed, "hard")[0].markers)].isna().to_numpy()
    lost = np.asarray(samples.all(axis=1))
    assert 0.03 < lost.mean() < 0.12
    assert cohort.score[lost].mean() > cohort.score[~lost].mean()
    single = samples & ~lost[:, None]
    assert cohort.level[single].mean() > 0.1


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_some_sites_write_the_improvement_with_the_opposite_sign(difficulty: Difficulty) -> None:
    _, cohort = drawn(0, difficulty)
    written = patients(0, difficulty)["improvement"].replace(NOT_DONE, np.nan).to_numpy(float)
    stayed = np.isfinite(written) & (np.abs(written) > 1)
    turned = pd.Series((written / cohort.improvement < 0)[stayed]).groupby(cohort.site[stayed]).mean()
    assert set(turned) == {0.0, 1.0}
    assert turned.sum() == LEVELS[difficulty].turned_sites
    # Whoever looks at the sites can tell: patients improve at all of them.
    assert pd.Series(cohort.improvement).groupby(cohort.site).median().min() > 4


@pytest.mark.parametrize("difficulty", DIFFICULTIES)
def test_demography_is_that_of_adults_in_a_clinic(difficulty: Difficulty) -> None:
    frame = patients(0, difficulty).replace(NOT_DONE, np.nan)
    assert frame["age"].between(18, 85).all()
    assert 48 < frame["age"].median() < 60
    assert set(frame["sex"].str.lower().str[0]) == {"f", "m"}
    women = frame["sex"].str.lower().str.startswith("f")
    assert 0.5 < women.mean() < 0.62
    assert 10 < frame.loc[~women, "height_cm"].mean() - frame.loc[women, "height_cm"].mean() < 16
    assert frame["weight"].min() >= 35
    assert frame["weight"].quantile(0.99) > 170  # some scales show pounds
    assert frame["score_baseline"].between(30, 96).sum() == frame["score_baseline"].notna().sum()


@pytest.mark.parametrize("seed", SEEDS)
def test_batches_follow_enrolment_on_working_days(seed: int) -> None:
    frame = patients(seed)
    spans = frame.groupby("batch")["enrolled"].agg(["min", "max"])
    assert len(spans) == 15
    assert all(before <= after for before, after in zip(spans["max"], spans["min"][1:], strict=False))
    days = {datetime.date.fromisoformat(day).weekday() for day in frame["enrolled"]}
    assert days == set(range(5))
    numbers = frame.groupby(frame["patient"].str[:2])["enrolled"]
    assert numbers.apply(lambda one: one.is_monotonic_increasing).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_values_below_the_limit_are_written_as_such_and_no_others_are(seed: int) -> None:
    data = made(seed, "hard")
    limits = {name: float(limit) for name, limit in re.findall(r"- (\w+): .*limit ([\d.]+)$", data.description, re.M)}
    trial, _ = drawn(seed, "hard")
    assert len(limits) == LEVELS["hard"].limited
    for marker, assay in zip(trial.markers, trial.assays, strict=True):
        text = data.frame[marker].astype(str)
        below = text.str.startswith("<").to_numpy()
        assert below.any() == (marker in limits)
        if marker in limits:
            limit = limits[marker]
            assert {float(one[1:]) for one in text[below]} <= {limit, float(f"{limit * assay.factor:g}")}
            assert 0.05 < below.mean() < 0.4
            usual = ~data.frame["batch"].isin(other_batches(seed, marker)).to_numpy()
            assert np.nanmin(values(data.frame, marker)[usual & ~below]) >= 0.9 * limit


def other_batches(seed: int, marker: str) -> list[str]:
    trial, _ = drawn(seed, "hard")
    laboratory = draw_laboratory(trial, LEVELS["hard"], random_for("biomarker", seed, "hard", "laboratory"))
    return [f"B{b + 1:02d}" for b in np.flatnonzero(laboratory.other_unit[:, trial.markers.index(marker)])]


@pytest.mark.parametrize("seed", SEEDS)
def test_batch_effects_and_mixed_up_units_are_where_the_truth_says(seed: int) -> None:
    frame, truth = patients(seed), made(seed).truth
    trial, _ = drawn(seed)
    for marker, assay in zip(trial.markers, trial.assays, strict=True):
        log = pd.Series(np.log(values(frame, marker)))
        middle = log.groupby(frame["batch"]).median()
        jumps = (middle - middle.median()) / np.log(assay.factor)
        assert (jumps.round().abs().max() == 1) == (marker in truth.other_unit_markers)
        if marker not in truth.other_unit_markers:
            between = log.groupby(frame["batch"]).transform("mean")
            within = ((log - between) ** 2).sum() / (log.notna().sum() - 15)
            ratio = ((between - log.mean())[log.notna()] ** 2).sum() / 14 / within
            assert (ratio > 4) == (marker in truth.batch_markers)


def test_names_of_markers_tell_the_assay_and_nothing_else() -> None:
    trial, _ = drawn()
    assert all(re.fullmatch(r"[A-Z]{2}\d{3}", name) for name in trial.markers)
    assert {assay.letters for assay in trial.assays} == {assay.letters for assay in ASSAYS}
    roles = [{one.marker[:2] for one in made(seed).truth.predictive_markers} for seed in range(12)]
    assert set.union(*roles) == {assay.letters for assay in ASSAYS}


def test_harder_data_have_weaker_effects_and_more_dirt() -> None:
    easy, medium, hard = (LEVELS[difficulty] for difficulty in DIFFICULTIES)
    for a, b in ((easy, medium), (medium, hard)):
        assert a.patients[0] > b.patients[0]
        for name in ("separation", "prognostic", "predictive"):
            assert getattr(a, name)[0] > getattr(b, name)[0]
        for name in ("noise", "assay_noise", "batch_shift", "limited", "missing", "lost_tubes", "dropout", "slips"):
            assert getattr(a, name) < getattr(b, name)


@pytest.mark.parametrize("seed", SEEDS)
def test_listing_everything_does_not_pay(seed: int) -> None:
    truth, names = made(seed).truth, list(drawn(seed)[0].markers)
    for signs in ("+", "-", "+-"):
        effects = [MarkerEffect(marker=name, sign=sign, size=1.5) for name in names for sign in signs]
        kinds = [
            Subtype(share=share / 10, high=high, low=low, treatment_effect=4.0)
            for share in range(1, 5)
            for high, low in ((names, []), ([], names), (names, names))
        ]
        everything = BiomarkerFindings(
            prognostic_markers=effects,
            predictive_markers=effects,
            subtypes=kinds,
            batch_markers=names,
            other_unit_markers=names,
        )
        assert accuracy(TASK.score(everything, truth)) < 0.12


def test_a_marker_counts_in_full_half_or_not_at_all() -> None:
    one = made().truth.predictive_markers[0]
    truth = made().truth.model_copy(update={"predictive_markers": [one]})

    def credit(**change: object) -> float:
        return score(truth, predictive_markers=[one.model_copy(update=change)])["predictive_markers"].credit

    assert credit() == 1.0
    assert credit(marker=f" {one.marker.lower()} ") == 1.0
    assert credit(size=None) == 1.0
    assert credit(sign=None) == 0.5
    assert credit(sign="+" if one.sign == "-" else "-") == 0.0
    assert credit(marker="XX1") == 0.0
    both = [one.model_copy(update={"sign": sign}) for sign in "+-"]
    assert score(truth, predictive_markers=both)["predictive_markers"].credit == 0.0


def test_sizes_count_without_their_sign_and_only_for_markers_that_were_found() -> None:
    truth = made().truth
    right = truth.prognostic_markers
    scaled = {
        off: [one.model_copy(update={"size": sign * ((one.size or 0) + off)}) for one in right]
        for off, sign in ((0.0, 1), (0.5, -1), (1.2, 1), (1.9, 1))
    }
    credits = [score(truth, prognostic_markers=one)["prognostic_sizes"].credit for one in scaled.values()]
    assert credits == [1.0, 1.0, pytest.approx(0.5), 0.0]
    half = score(truth, prognostic_markers=right[:2])["prognostic_sizes"].credit
    assert half == pytest.approx(2 / len(right))
    padded = [*right, *(MarkerEffect(marker=f"XX{n}", sign="+", size=1.0) for n in range(len(right)))]
    assert score(truth, prognostic_markers=padded)["prognostic_sizes"].credit == pytest.approx(0.5)


def test_a_subtype_counts_by_its_markers_and_share() -> None:
    one = made().truth.subtypes[0].model_copy(update={"share": 0.3, "high": ["A1", "A2"], "low": ["B1", "B2"]})
    truth = made().truth.model_copy(update={"subtypes": [one.model_copy(update={"echoes": ["E1"]})]})

    def credit(**change: object) -> float:
        stated = {"share": 0.3, "high": ["a1", "A2"], "low": ["B1", "b2"], **change}
        return score(truth, subtypes=[Subtype.model_validate(stated)])["subtypes"].credit

    assert credit() == 1.0
    assert credit(share=0.315) == 1.0
    assert credit(share=0.6) == 0.5
    assert credit(share=None) == 0.6
    assert credit(low=[]) == pytest.approx(2 / 3)
    assert credit(high=["A1", "A2", "E1"]) == 1.0
    assert credit(high=["A1", "A2", "C1"]) == pytest.approx(8 / 9)
    assert credit(high=["B1", "B2"], low=["A1", "A2"]) == 0.0
    assert credit(high=["A1", "A2", "B1", "B2"], low=["A1", "A2", "B1", "B2"]) == 0.0


def test_the_order_in_which_subtypes_are_stated_does_not_matter() -> None:
    first, second = (one.model_copy(update={"echoes": []}) for one in made().truth.subtypes[:2])
    truth = made().truth.model_copy(update={"subtypes": [first, second]})
    both = Subtype(high=first.high + second.high, low=first.low + second.low)
    half = Subtype(high=first.high[:1], low=first.low[:1])
    found = [score(truth, subtypes=stated)["subtypes"].credit for stated in ([both, half], [half, both])]
    assert found[0] == found[1] > 0.3


def test_the_effect_in_a_subtype_counts_if_the_subtype_was_found() -> None:
    truth = made().truth

    def credit(off: float, **change: object) -> float:
        stated = [
            one.model_copy(update={"treatment_effect": (one.treatment_effect or 0) + off, **change})
            for one in TASK.oracle(truth).subtypes or []
        ]
        return score(truth, subtypes=stated)["subtype_effects"].credit

    assert credit(0.0) == credit(0.9) == credit(-0.9) == 1.0
    assert credit(2.0) == pytest.approx(0.5)
    assert credit(3.0) == 0.0
    assert credit(0.0, high=[], low=[]) == 0.0
    assert credit(0.0, treatment_effect=None) == 0.0


def test_more_subtypes_than_there_are_cost() -> None:
    truth = made().truth
    right = TASK.oracle(truth).subtypes or []
    once, twice = (score(truth, subtypes=right * times) for times in (1, 2))
    for name in ("subtypes", "subtype_effects"):
        assert once[name].credit == 1.0
        assert twice[name].credit < 0.7


def test_numbers_count_within_their_tolerances() -> None:
    truth = made().truth.model_copy(update={"average_treatment_effect": 4.0, "benefit_share": 0.8})
    effects = [
        score(truth, average_treatment_effect=4.0 + off)["average_treatment_effect"].credit
        for off in (0.0, 0.29, -0.6, 0.91, -8.0)
    ]
    assert effects == pytest.approx([1.0, 1.0, 0.5, 0.0, 0.0])
    shares = [score(truth, benefit_share=0.8 + off)["benefit_share"].credit for off in (-0.05, 0.12, 0.19)]
    assert shares == pytest.approx([1.0, 0.5, 0.0])
    for field, right in (("n_patients", truth.n_patients), ("n_subtypes", len(truth.subtypes))):
        assert score(truth, **{field: right})[field].credit == 1.0
        assert score(truth, **{field: right + 1})[field].credit == 0.0


NAMES = st.sampled_from([*drawn()[0].markers, "XX1", "", "el 576"])
EFFECTS = st.lists(
    st.builds(MarkerEffect, marker=NAMES, sign=st.sampled_from(["+", "-", None]), size=st.none() | st.floats()),
    max_size=12,
)
SUBTYPES = st.lists(
    st.builds(
        Subtype,
        share=st.none() | st.floats(0, 1),
        high=st.lists(NAMES, max_size=5),
        low=st.lists(NAMES, max_size=5),
        treatment_effect=st.none() | st.floats(-1e9, 1e9),
    ),
    max_size=8,
)


@settings(max_examples=40)
@given(EFFECTS, SUBTYPES)
def test_any_findings_get_credits_in_the_unit_interval(effects: list[MarkerEffect], kinds: list[Subtype]) -> None:
    credits = score(made().truth, prognostic_markers=effects, predictive_markers=effects, subtypes=kinds)
    assert all(0 <= one.credit <= 1 for one in credits.values())


@settings(max_examples=40)
@given(st.data())
def test_a_wrong_marker_more_never_pays(data: st.DataObject) -> None:
    truth = made().truth
    right = truth.prognostic_markers
    stated = data.draw(st.lists(st.sampled_from(right), unique_by=lambda one: one.marker))
    wrong = set(drawn()[0].markers) - {one.marker for one in right}
    before = score(truth, prognostic_markers=stated)
    extra = MarkerEffect(marker=data.draw(st.sampled_from(sorted(wrong))), sign="+", size=1.0)
    after = score(truth, prognostic_markers=[*stated, extra])
    for name in ("prognostic_markers", "prognostic_sizes"):
        assert after[name].credit <= before[name].credit


def test_the_checks_ask_for_facts_not_for_words() -> None:
    truth, other = made().truth, made(1).truth
    text = TASK.summary(truth)
    facts = ("patients counted", "prognostic marker named", "predictive marker named")
    mine, theirs = ({check.name: check.holds(text) for check in TASK.checks(one)} for one in (truth, other))
    assert all(mine.values())
    assert not any(theirs[name] for name in facts)


def test_no_two_seeds_share_their_markers() -> None:
    for a, b in itertools.combinations(range(6), 2):
        assert len({*drawn(a)[0].markers} & {*drawn(b)[0].markers}) <= 4
