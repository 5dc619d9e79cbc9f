"""Contradictions between a paper's text and its findings are told, and what they contradict earns nothing."""

from __future__ import annotations

import pytest

from labmates.judges.contradictions import contradictions
from labmates.judges.verified import VerifiedJudge
from labmates.tasks.registry import get_task
from labmates_author.tasks.report import oracle_report
from tests.judges.edits import EDITS, edited
from tests.judges.recorded_papers import REAL, TRICK, made, real


async def test_the_trick_paper_earns_nothing_and_each_contradiction_is_told() -> None:
    trick = real(TRICK)
    [accuracy, skill, provenance] = await VerifiedJudge().score(trick.report)
    assert (accuracy.value, provenance.value) == (0.0, 0.0)
    assert skill.value is not None
    assert skill.value <= 0
    told = [problem for problem in accuracy.details["problems"] if "the paper's text says otherwise" in problem]
    assert len(told) == len(type(trick.findings).model_fields)
    assert all("withheld" in credit["reason"] for credit in accuracy.details["credits"])


@pytest.mark.parametrize("name", REAL)
def test_honest_real_papers_contradict_nothing(name: str) -> None:
    paper = real(name)
    assert contradictions(paper.report.text or "", paper.findings) == {}


@pytest.mark.parametrize("edit", EDITS)
def test_each_kind_of_edit_of_a_real_paper_is_found(edit: str) -> None:
    name, finding, replaced = EDITS[edit]
    paper = real(name)
    text = edited(paper.report.text or "", replaced)
    assert text != paper.report.text
    assert finding in contradictions(text, paper.findings)


@pytest.mark.parametrize("name", ["ecology", "anomaly", "biomarker", "geospatial"])
def test_the_right_report_contradicts_nothing(name: str) -> None:
    task = get_task(name)
    for difficulty in ("easy", "medium"):
        data = task.generate(1, difficulty)
        assert contradictions(oracle_report(task, data.truth), task.oracle(data.truth)) == {}


R2 = {"r2_random_cv": 0.59, "r2_block_cv": 0.44}


@pytest.mark.parametrize(
    ("text", "findings", "contradicted"),
    [
        ("The practical range is 1,200 m.", {"range_m": 1843.0}, True),
        ("The practical range is 1,850 m.", {"range_m": 1843.0}, False),
        ("The range is 1,200 m raw and 1,843 m after cleaning.", {"range_m": 1843.0}, False),
        ("A range of 1,200 m was fitted first. The range is 1,200 m, not 1,843.", {"range_m": 1843.0}, True),
        ("We found the range by maximum likelihood in 1,200 runs.", {"range_m": 1843.0}, False),
        ("There are 12 sites.", {"n_sites": 13}, True),
        (
            "We know 3,850 sites. Of 3,850 sites, 2,780 were assayed; all sites gave 2,961 samples.",
            {"n_sites": 2850},
            True,
        ),
        (
            "In blocks of 1000 m it is 0.54, without them 0.59; rock alone, in blocks of 1000 m: 0.2.",
            {"r2_block_cv": 0.54},
            False,
        ),
        ("There are twelve sites.", {"n_sites": 12}, False),
        ("At least one site is rich.", {"n_sites": 12}, False),
        ("Only one site is rich; one site is poor.", {"n_sites": 12}, True),
        ("The richest rock is slate.", {"richest_rock": "gabbro"}, True),
        ("The richest rock is gabbro, not slate.", {"richest_rock": "gabbro"}, False),
        ("Rocks are not told here.", {"range_m": 3.0}, False),
        ("In random folds R2 is 0.44, in spatial blocks 0.59.", R2, True),
        ("R2 falls from 0.59 (random folds) to 0.44 when blocks are left out.", R2, False),
        ("Leaving out blocks lowers the R2 by 0.15 to 0.44; with random folds it is 0.59.", R2, False),
        ("R2 is 0.44 and 0.59 in block and random folds, respectively.", R2, False),
    ],
)
def test_other_values_and_names_contradict_and_rounding_does_not(
    text: str, findings: dict[str, object], contradicted: bool
) -> None:
    stated = made("geospatial")[0].findings.model_validate(findings)
    assert bool(contradictions(f"## Results\n{text}\n", stated)) is contradicted


EFFECT = {"interactions": [{"source": "Lothria cinerea", "target": "Calvora lenta", "sign": "+", "strength": 0.29}]}


@pytest.mark.parametrize(
    ("text", "contradicted"),
    [
        ("Calvora lenta and Lothria cinerea declined to 0.43 and 0.45 of their former mean.", False),
        ("- Calvora lenta fell (ratio 0.43 [0.37, 0.50]), as did Lothria cinerea (0.45 [0.37, 0.54]).", False),
        ("| source | target | sign | strength |\n| --- | --- | --- | --- |\n| Lothria | Calvora | + | 0.90 |", True),
        ("| source | target | sign | strength |\n| --- | --- | --- | --- |\n| Lothria | Calvora | + | 0.29 |", False),
        ("Lothria cinerea -> Calvora lenta has 0.90.", True),
        ("Lothria cinerea acts on Calvora lenta with strength 0.90.", True),
    ],
)
def test_numbers_of_two_species_contradict_no_effect_of_one_on_the_other(text: str, contradicted: bool) -> None:
    stated = get_task("ecology").findings.model_validate(EFFECT)
    assert bool(contradictions(f"## Results\n{text}\n", stated)) is contradicted


MARKERS = {
    "prognostic_markers": [
        {"marker": "LX695", "sign": "-", "size": 2.94},
        {"marker": "MS644", "sign": "+", "size": 2.89},
    ],
    "predictive_markers": [{"marker": "MS644", "sign": "+", "size": 3.16}],
}


@pytest.mark.parametrize(
    ("text", "contradicted"),
    [
        ("predictive MS644: interaction +3.16 points per sd; prognostic LX695: -2.94 points per sd.", False),
        ("prognostic MS644: +3.16 points per sd; prognostic LX695: -2.94 points per sd.", True),
        ("predictive MS644: interaction +1.16 points per sd; prognostic LX695: -2.94 points per sd.", True),
    ],
)
def test_a_value_of_the_same_name_for_another_finding_contradicts_nothing(text: str, contradicted: bool) -> None:
    stated = get_task("biomarker").findings.model_validate(MARKERS)
    assert bool(contradictions(f"## Results\n{text}\n", stated)) is contradicted


GROUPS = {
    "average_treatment_effect": 3.75,
    "subtypes": [
        {"share": 0.31, "high": ["CC242"], "low": [], "treatment_effect": 0.69},
        {"share": 0.29, "high": ["MS468"], "low": [], "treatment_effect": 8.44},
    ],
}


def test_an_effect_of_a_group_contradicts_no_average() -> None:
    stated = get_task("biomarker").findings.model_validate(GROUPS)
    text = "The subtypes: share 0.31, high CC242, treatment_effect 0.69; share 0.29, high MS468."
    assert contradictions(f"## Results\n{text}\n", stated) == {}
    assert "subtypes" in contradictions(f"## Results\n{text.replace('0.69', '0.96')}\n", stated)
    average = f"{text} The average treatment effect is 0.69."
    assert contradictions(f"## Results\n{average}\n", stated).keys() == {"average_treatment_effect"}
