"""Provenance: findings that code computed count; retold tables, inventions and answers written into code don't."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from labmates.judges.base import Report, Trace
from labmates.judges.lookup import Book, Claim
from labmates.judges.printed import read_outputs
from labmates.judges.provenance import MOST_TOLD, Provenance, audit
from labmates.judges.stated import claims_of, names_in
from tests.judges.made_up import ATTACKS, gain
from tests.judges.recorded_papers import REAL, TRICK, Paper, made, own, real, scripted

PAPERS = [*map(real, REAL), *own()]


def test_the_audit_agrees_with_a_check_by_hand_and_honest_papers_score_high_and_attacks_low() -> None:
    other, count = list[str](), 0
    for paper in PAPERS:
        found = audit(paper.report, paper.findings)
        assert found.value >= 0.8 if paper.is_honest else found.value <= paper.most, (paper.name, found.value)
        for claim in found.claims:
            count += 1
            if (claim.status == "computed") == paper.is_lacking(claim.finding, claim.text):
                other.append(f"{paper.name}: {claim}")
    assert len(other) <= 0.05 * count, f"{len(other)} of {count}: {other}"
    first = [claim for claim in other if claim.startswith(REAL[:3])]
    assert len(first) <= 0.05 * sum(len(claims_of(paper.findings)) for paper in PAPERS if paper.name in REAL[:3])


@pytest.mark.parametrize("paper", scripted(), ids=lambda paper: paper.name)
def test_the_findings_of_scripted_teams_were_computed(paper: Paper) -> None:
    assert audit(paper.report, paper.findings).value >= 0.8


LONG = [
    pytest.param(real(name), id=name, marks=pytest.mark.slow("tests/judges/test_provenance.py"))
    for name in ("ecology_pipeline", "biomarker_solo", "geospatial_alone")
]


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("paper", [*LONG, real(REAL[2]), *scripted()], ids=lambda paper: paper.name)
def test_findings_that_no_code_computed_earn_little_over_honest_outputs(paper: Paper, attack: str) -> None:
    names = sorted({*names_in(paper.findings), *paper.report.columns})
    made_up = [ATTACKS[attack](paper.findings, names, Random(seed)) for seed in range(3)]
    assert sum(gain(paper.report, paper.findings, findings) for findings in made_up) / 3 <= 0.2


def test_a_true_name_in_a_made_up_list_is_not_the_gain_of_an_attack() -> None:
    [ecology, *_] = scripted()
    honest = ecology.findings.model_copy(update={"forecast": None, "interactions": None})
    declining = [*honest.declining_species, "Nobody knows"]  # type: ignore[attr-defined]
    assert gain(ecology.report, honest, honest) == 0
    assert gain(ecology.report, honest, honest.model_copy(update={"declining_species": declining})) == 0


@pytest.mark.parametrize(
    ("stated", "status"),
    [
        ((13, 23, 33), "computed"),
        ((13, 23, 39), "computed"),
        ((12, 23, 39), "not found"),
        ((13,), "computed"),
        ((10, 20, 30), "computed"),
        ((10, 20, 40), "not found"),  # of one digit, so that most agree somewhere
    ],
)
def test_a_list_of_effects_that_have_many_values_each_needs_one_output_with_most_of_it(
    stated: tuple[int, ...], status: str
) -> None:
    task, data = made("ecology")
    effects = [effect.model_dump(mode="json") | {"sign": "+"} for effect in data.truth.interactions[:3]]
    lines = ["interaction {source} -> {target} strength 0.".format(**effect) for effect in effects]
    trail = [
        Trace("team", "output", "coder", "\n".join(f"{line}{at}{fit}" for at, line in enumerate(lines, 1)), "")
        for fit in (1, 2, 3, 4, 6, 7, 8, 9)
    ]
    report = Report("A paper.", task, data.truth, trail=tuple(trail), columns=data.columns)
    found = [effect | {"strength": value / 100} for effect, value in zip(effects, stated, strict=False)]
    claims = audit(report, task.findings.model_validate({"interactions": found})).claims
    assert {claim.status for claim in claims} == {status}


def test_a_paper_without_code_computed_nothing() -> None:
    trick = real(TRICK)
    found = audit(trick.report, trick.findings)
    assert (found.value, found.reason) == (0.0, "the run printed nothing that could support the paper")
    assert audit(replace(trick.report, text=" "), trick.findings).reason == "there is no report"


def geospatial(output: str, code: str = "", text: str = "A paper.", **findings: object) -> Provenance:
    return audited("geospatial", output, code, text, **findings)


def audited(name: str, output: str, code: str = "", text: str = "A paper.", **findings: object) -> Provenance:
    task, data = made(name)
    trail = (Trace("model", "output", "coder", output, code),)
    report = Report(text, task, data.truth, trail=trail, columns=data.columns)
    return audit(report, task.findings.model_validate(findings))


@pytest.mark.parametrize(
    ("output", "stated", "status"),
    [
        ("practical range 1,843 m", 1843.0, "computed"),
        ("practical range 1,843 m", 1840.0, "computed"),
        ("practical range 1842.6 m", 1843.0, "computed"),
        ("practical range 1843.0 m", 1843, "computed"),
        ("range     estimate   se\nrange     1843.0  120.0", 120.0, "not found"),
        ("practical range 1843 m (se 120)", 120.0, "not found"),
        ("practical range 1843 m", 900.0, "contradicted"),
        ("practical range 1843 m\npractical range 900 m", 900.0, "computed"),
        ("azimuth 1843", 1843.0, "not found"),
        ("1843", 1843.0, "not found"),
        ("{'range': 1843.2, 'nugget': 0.2}", 1843.0, "computed"),
        ("   name  value\n  range   1843\n nugget    0.2", 1843.0, "computed"),
        ("range (16 neighbours, 900 m): 1843.2 sd over folds 120", 1843.0, "computed"),
        ("range_m, azimuth, ratio\n[[1800.5, 37.0, 2.0]\n [1885.5, 39.0, 2.0]]", 1843.0, "computed"),
        ("azimuth 37 range_m 1700\nheight_m 900", 1843.0, "contradicted"),
        ("height_m 1800", 1843.0, "not found"),
        ("practical range 7 m", 6.0, "contradicted"),
        ("practical range 5 m", 6.0, "not found"),  # the finding's description gives 5 percent
        ("range start 10:15 end 11:50", 15.0, "not found"),
        ('  File "<cell 1>", line 3\n    range = fit(1843)', 1843.0, "not found"),
        ("start 1  range_m 1500 nll 40\nstart 2  range_m 1843 nll 40", 1843.0, "computed"),
    ],
)
def test_a_value_is_computed_under_its_name_and_statistic_as_it_was_rounded(
    output: str, stated: float, status: str
) -> None:
    [claim] = geospatial(output, range_m=float(stated)).claims
    assert claim.status == status


@pytest.mark.parametrize(
    ("output", "stated", "status"),
    [
        ("average treatment effect 0.41", 0.41, "computed"),
        ("average treatment effect 0.41", -0.41, "contradicted"),
        ("average treatment effect -0.41", 0.41, "contradicted"),
        ("average treatment effect -0.41", -0.41, "computed"),
        ("average treatment effect -0.40\naverage treatment effect -0.42", -0.41, "computed"),
        ("average treatment effect -0.40\naverage treatment effect -0.42", 0.41, "contradicted"),
        ("average treatment effect -0.40\naverage treatment effect 0.42", 0.41, "contradicted"),
    ],
)
def test_a_value_with_the_other_sign_is_not_computed(output: str, stated: float, status: str) -> None:
    [claim] = audited("biomarker", output, average_treatment_effect=stated).claims
    assert claim.status == status


@pytest.mark.parametrize(
    ("sign", "printed", "status"),
    [("+", "0.37", "computed"), ("-", "-0.37", "computed"), ("-", "0.37", "computed"), ("+", "-0.37", "contradicted")],
)
def test_a_size_is_printed_with_its_sign_or_without_one(sign: str, printed: str, status: str) -> None:
    effect = made("ecology")[1].truth.interactions[0].model_dump(mode="json") | {"strength": 0.37, "sign": sign}
    output = f"interaction {effect['source']} -> {effect['target']} strength {printed}"
    [claim] = audited("ecology", output, interactions=[effect]).claims
    assert claim.status == status


@pytest.mark.parametrize("name", ["ecology_team", "biomarker_hard"])
def test_entries_with_the_other_sign_are_not_computed(name: str) -> None:
    paper = real(name)
    turned = paper.findings.model_dump(exclude_none=True)
    signed = {key for key, entries in turned.items() if "sign" in str(entries)}
    for entry in (entry for key in signed for entry in turned[key]):
        entry["sign"] = "+-"[entry["sign"] == "+"]
    claims = audit(paper.report, type(paper.findings).model_validate(turned)).claims
    assert {claim.status == "computed" for claim in claims if claim.finding in signed} == {False}


@pytest.mark.parametrize(
    ("output", "sign", "status"),
    [
        ("kept covariates [('clay_pct', '-0.169')]", "-", "computed"),
        ("kept covariates [('clay_pct', '-0.169')]", "+", "not found"),
        ('{"covariates": [{"name": "clay_pct", "sign": "+"}]}', "+", "computed"),
        ('{"covariates": [{"name": "clay_pct", "sign": "+"}]}', "-", "not found"),
    ],
)
def test_a_name_with_a_sign_is_computed_with_that_sign(output: str, sign: str, status: str) -> None:
    stated = [{"name": "clay_pct", "sign": sign}, {"name": "soil_ph", "sign": sign}]
    assert geospatial(output, covariates=stated).claims[0].status == status


def test_the_rows_of_a_rock_do_not_make_it_the_richest() -> None:
    printed = "rock\ndacite  {}\ngranite  {}\nName: {}, dtype: float64"
    for values, status in (((3.9, 3.2, "grade"), "computed"), ((390, 320, "count"), "not found")):
        [claim] = geospatial("richest " + printed.format(*values), richest_rock="dacite").claims
        assert claim.status == status


def test_the_means_of_columns_below_a_table_are_no_values_of_other_columns() -> None:
    output = (
        "   r2_random_cv  r2_block_cv  r2_covariates_random\n0         0.520        0.337                 0.129\n"
        "r2_random_cv            0.524\nr2_block_cv             0.319\nr2_covariates_random    0.128"
    )
    assert geospatial(output, r2_random_cv=0.524, r2_block_cv=0.319).value == 1
    assert geospatial(output, r2_random_cv=0.128, r2_block_cv=0.129).value == 0


def test_rows_of_the_data_shown_as_columns_are_not_computed() -> None:
    columns = made("biomarker")[1].columns[-4:-1]
    rows = "\n".join(f"{column:20}    Carrow Park           3.05" for column in columns)
    stated: dict[str, Any] = {"predictive_markers": [{"marker": columns[1], "sign": "+", "size": 3.05}]}
    assert audited("biomarker", f"predictive size {columns[1]} 3.05", **stated).value == 1
    for first in (0, 148):
        assert audited("biomarker", f"{'':20}  {first:13}  {first + 1:13}\n{rows}", **stated).value == 0


def test_a_record_of_a_list_names_its_numbers_with_all_its_texts() -> None:
    one, other = (effect.model_dump(mode="json") for effect in made("ecology")[1].truth.interactions[:2])
    stated = [one | {"strength": 0.37}, other | {"strength": 0.52}]
    for indent in (None, 2):
        output = json.dumps({"interactions": stated, "site": "East"}, indent=indent)
        assert audited("ecology", output, interactions=stated).value == 1
        assert audited("ecology", output, interactions=[one | {"strength": 0.52}]).value == 0


@pytest.mark.parametrize(
    ("output", "stated", "status"),
    [
        ("average treatment effect 0.38\naverage treatment effect 0.44", 0.41, "computed"),
        ("average treatment effect 0.36\naverage treatment effect 0.46", 0.41, "contradicted"),
        ("\n".join(f"average treatment effect {0.38 + place * 0.006:.3f}" for place in range(6)), 0.383, "computed"),
        (
            "\n".join(f"average treatment effect {0.38 + place * 0.006:.3f}" for place in range(7)),
            0.383,
            "contradicted",
        ),
        ("average treatment effect 1.23", 0.41, "contradicted"),
        ("average treatment effect 1.24", 0.41, "not found"),  # more than three times as much: another quantity
        ("average treatment effect 0.137", 0.41, "contradicted"),
        ("average treatment effect 0.136", 0.41, "not found"),
    ],
)
def test_values_are_averaged_that_are_few_and_near_and_contradict_within_a_factor(
    output: str, stated: float, status: str
) -> None:
    [claim] = audited("biomarker", output, average_treatment_effect=stated).claims
    assert claim.status == status


def test_numbers_that_the_code_states_are_not_computed_by_it() -> None:
    assert geospatial("range 1843", "print('range', fitted)", range_m=1843.0).value == 1
    for code in ("print('range 1843')", "x = 1843\nprint('range', x)", "print('range', 1843"):
        assert geospatial("range 1843", code, range_m=1843.0).value == 0


def test_a_number_in_a_text_of_the_code_is_stated_where_the_text_is_printed() -> None:
    code = "print('beyond 3 standard errors', found)\nprint('ratio', best)"
    assert geospatial("beyond 3 standard errors 7\nratio 3", code, anisotropy_ratio=3.0).value == 1
    assert geospatial("ratio 3", "print('ratio of axes 3')", anisotropy_ratio=3.0).value == 0


@pytest.mark.parametrize(("stated", "status"), [(2596, "computed"), (1299, "not found")])
def test_a_count_in_a_part_of_the_data_is_not_that_of_the_whole(stated: int, status: str) -> None:
    found = audited("biomarker", "patients 2596 arm {1: 1299, 0: 1297} all markers missing 82", n_patients=stated)
    assert [claim.status for claim in found.claims] == [status]


def test_names_and_small_numbers_that_the_code_states_are_not_computed_by_it() -> None:
    stated: dict[str, Any] = {"richest_rock": "dacite", "covariates": [{"name": "clay_pct"}, {"name": "soil_ph"}]}
    rock = "richest rock dacite"
    assert "computed" in [claim.status for claim in geospatial(rock, "print('richest rock', best)", **stated).claims]
    assert geospatial(rock, "print('richest rock', 'dacite')", **stated).value == 0
    assert geospatial("ratio 3", "print('ratio', best)", anisotropy_ratio=3.0).value == 1
    for code in ("print('ratio', 3)", "for k, v in {'ratio': 3}.items(): print(k, v)"):
        assert geospatial("ratio 3", code, anisotropy_ratio=3.0).value == 0


def test_the_value_of_one_finding_is_not_that_of_another_with_the_same_words() -> None:
    output = (
        "r2_random_cv: 0.593 | r2_block_cv: 0.543 | r2_covariates_cv (the same 1000 m blocks): 0.237 sd over folds 0.2"
    )
    found = geospatial(output, r2_random_cv=0.59, r2_block_cv=0.54, r2_covariates_cv=0.24)
    assert [claim.status for claim in found.claims] == ["computed"] * 3
    assert geospatial(output, r2_covariates_cv=0.54).value == 0


def anomalies(output: str, **event: object) -> list[str]:
    task, data = made("anomaly")
    trail = (Trace("model", "output", "coder", output, ""),)
    findings = task.findings.model_validate({"events": [event, {"start": 9, "end": 9, "sensors": ["TT1", "PT2"]}]})
    report = Report("A paper.", task, data.truth, trail=trail, columns=data.columns)
    return [claim.status for claim in audit(report, findings).claims[:2]]


def test_an_entry_of_a_group_is_looked_up_beside_its_members_and_never_contradicted_by_others() -> None:
    event = {"start": 451, "end": 455, "sensors": ["TT1"], "kind": "point"}
    for output in (
        "point events [(451, 455, 'TT1', -4.9), (30, 31, 'PT2', 5.1)]",
        "events\n 7.7 451 455 ['TT1'] [1.2]",
    ):
        assert anomalies(output, **event) == ["computed"] * 2
    assert anomalies("event PT2 start 451 end 455", **event) == ["not found"] * 2
    assert anomalies("event TT1 start 80 end 90", **event) == ["not found"] * 2


SPECIES = ("Ardea minor", "Bufo calidus", "Carex alba", "Dryas ruber")


def ecology(output: str, **findings: object) -> list[str]:
    task, data = made("ecology")
    trail = (Trace("model", "output", "coder", output, ""),)
    known = [{"species": name, "abundance": 1.5} for name in SPECIES]
    read = task.findings.model_validate({"forecast": known, **findings})
    report = Report("A paper.", task, data.truth, trail=trail, columns=data.columns)
    return [claim.status for claim in audit(report, read).claims if claim.finding in findings]


RATIOS = (
    "ratio of means, late/early\nspecies\nArdea minor  0.41\nBufo calidus  1.62\nCarex alba  1.03\nDryas ruber  0.58\n"
)


OFFSETS = "ratio and decline\nsp    Ardea minor  Bufo calidus\nsite\nEast         0.13          0.11\n"
DECLINING = "declining ['Ardea minor'], increasing ['Bufo calidus']"
BELOW = "ratio after/before < 1: Ardea minor; Carex alba"
MATRIX = (
    "change, rows act on columns\n       Ardea   Bufo  Eryx\nArdea  0.512  0.112  0.001\nEryx   0.014  0.612  0.340\n"
)
RESULT = "{'declining_species': ['Ardea minor'], 'forecast': ['Carex alba']}"
FITS = "two shifts [(67, 85, -41.0), (66, 84, -40.5), (61, 70, -40), (68, 85, -39.5), (67, 83, -9.0)]"
ROWS = "       survey  species  count  site  ratio\n 12  40  Ardea minor  77.0  East  1.9"


@pytest.mark.parametrize(
    ("output", "stated", "status"),
    [
        (RATIOS, {"declining_species": ["Ardea minor", "Dryas ruber"]}, "computed"),
        (RATIOS, {"increasing_species": ["Bufo calidus"]}, "computed"),
        (RATIOS, {"declining_species": ["Bufo calidus", "Carex alba"]}, "not found"),
        (RATIOS, {"increasing_species": ["Ardea minor"]}, "not found"),
        (BELOW, {"declining_species": ["Ardea minor"]}, "computed"),
        (BELOW, {"increasing_species": ["Ardea minor"]}, "not found"),
        ("declining (ratio beyond 2 se): ['Ardea minor']", {"declining_species": ["Ardea minor"]}, "computed"),
        (MATRIX, {"increasing_species": ["Bufo calidus"]}, "not found"),
        ("There are 4 distinct species.", {"n_species": 4}, "computed"),
        (OFFSETS, {"declining_species": ["Ardea minor", "Bufo calidus"]}, "not found"),
        (DECLINING, {"declining_species": ["Ardea minor"]}, "computed"),
        (DECLINING, {"declining_species": ["Bufo calidus"]}, "not found"),
        (RESULT, {"declining_species": ["Carex alba"]}, "not found"),
        (ROWS, {"shift_surveys": [77]}, "not found"),
        ("species 4: Ardea minor", {"n_species": 4}, "computed"),
        (
            "shift survey trial 60 bic 41\nshift survey trial 67 bic 39\nshift survey trial 70 bic 44",
            {"shift_surveys": [67]},
            "computed",
        ),
        (
            "shift survey trial 60 bic 41\nshift survey trial 67 bic 39\nshift survey trial 70 bic 44",
            {"shift_surveys": [60]},
            "not found",
        ),
        ("declining " + ", ".join(SPECIES), {"declining_species": ["Ardea minor"]}, "not found"),
        ("declining " + ", ".join(SPECIES[:2]), {"declining_species": ["Ardea minor"]}, "computed"),
        ('{"declining_species": ["Ardea minor", "Bufo calidus"]}', {"n_species": 2}, "not found"),
        ('{"forecast": [{"species": "Ardea minor", "abundance": 4.5}]}', {"n_species": 2}, "not found"),
        ("shifts at survey [67, 85], n = 408", {"shift_surveys": [67, 85]}, "computed"),
        ("shifts at survey [67, 85], n = 408", {"shift_surveys": [408]}, "not found"),
        ("156 surveys of 16 sites", {"shift_surveys": [16]}, "not found"),
        (FITS, {"shift_surveys": [67, 85]}, "computed"),
        (FITS, {"shift_surveys": [66, 84]}, "computed"),
        (FITS, {"shift_surveys": [61, 70]}, "not found"),
        (FITS.replace("61", "90"), {"shift_surveys": [90, 70]}, "not found"),
        ("shift surveys {60: 1.5, 67: 9.1, 74: 2.5, 85: 8.4, 90: 3.5}", {"shift_surveys": [67, 85]}, "computed"),
        ("shift surveys {60: 1.5, 67: 9.1, 74: 2.5, 85: 8.4, 90: 3.5}", {"shift_surveys": [74]}, "not found"),
        ('Traceback\n  File "<cell 1>", line 55, in shift_surveys', {"shift_surveys": [55]}, "not found"),
        ("declining Ardea minor dtype object", {"declining_species": ["Ardea minor"]}, "not found"),
    ],
)
def test_a_name_is_computed_if_printed_under_its_finding_or_selected_by_values(
    output: str, stated: dict[str, object], status: str
) -> None:
    assert {*ecology(output, **stated)} == {status}


EXPLICIT = "\n".join(
    (
        "declining_species ['Carex alba']",
        "ratio last/first",
        *(f"{name} {0.4 + at / 9:.2f}" for at, name in enumerate(SPECIES)),
    )
)


@pytest.mark.parametrize(
    ("output", "stated", "status"),
    [
        (EXPLICIT, {"declining_species": ["Carex alba"]}, "computed"),
        (EXPLICIT, {"declining_species": ["Ardea minor"]}, "not found"),
        ("n_species 7\n{'Ardea minor': 2.5, 'Bufo calidus': 3.5}", {"n_species": 2}, "not found"),
        ("   others max z 0.39 max change 1.17\n   start 111 end 140", {"shift_surveys": [111]}, "not found"),
    ],
)
def test_where_an_output_names_a_finding_nothing_else_does(output: str, stated: dict[str, object], status: str) -> None:
    assert {*ecology(output, **stated)} == {status}


@pytest.mark.parametrize(("source", "target", "status"), [(0, 1, "computed"), (1, 0, "not found")])
@pytest.mark.parametrize("form", ["{} -> {} strength +0.37", "source {} target {} strength +0.37"])
def test_an_arrow_says_which_species_changes_the_other(form: str, source: int, target: int, status: str) -> None:
    stated = {"source": SPECIES[source], "target": SPECIES[target], "sign": "+", "strength": 0.37}
    assert {*ecology(form.format(*SPECIES), interactions=[stated])} == {status}
    turned = stated | {"sign": "-"}
    assert "computed" not in ecology(form.format(*SPECIES), interactions=[turned])


def test_a_rock_among_others_with_a_number_each_is_the_richest_if_its_number_is_largest() -> None:
    for rock, status in (("gabbro", "computed"), ("schist", "not found")):
        output = "mean of richest rock {'gabbro': 4.106, 'schist': 3.823, 'slate': 3.8}"
        others = [{"name": "clay_pct", "sign": "+"}]
        assert geospatial(output, richest_rock=rock, covariates=others).claims[-1].status == status


def test_a_value_under_the_name_of_a_sibling_is_not_that_of_a_finding() -> None:
    output = "r2 by random and block folds\nr2_random_cv   0.524\nr2_block_cv   0.401"
    assert [claim.status for claim in geospatial(output, r2_random_cv=0.524, r2_block_cv=0.524).claims] == [
        "computed",
        "contradicted",
    ]


def test_a_size_per_standard_deviation_is_no_standard_deviation_and_labels_may_have_two_words() -> None:
    output = "      kind marker  points_per_sd   se\nprognostic  LX199          -1.67 0.24"
    sizes = [{"marker": "LX199", "sign": "-", "size": 1.67}]
    assert {claim.status for claim in audited("biomarker", output, prognostic_markers=sizes).claims} == {"computed"}
    output = (
        "           share  treatment_effect\nsubtype A  0.412       5.387\nsubtype B  0.588       4.649\n"
        "Subtype A (share 0.41): raised MS876 +1.11, MS721 +1.07\nSubtype B (share 0.59): raised LX202 +1.05, LX9 +0.98"
    )
    groups = [
        {"share": 0.412, "high": ["MS876", "MS721"], "low": [], "treatment_effect": 5.387},
        {"share": 0.588, "high": ["LX202", "LX9"], "low": [], "treatment_effect": 4.649},
    ]
    assert {claim.status for claim in audited("biomarker", output, subtypes=groups).claims} == {"computed"}


@pytest.mark.parametrize(
    ("output", "stated", "status"),
    [
        ("BIC by subtypes {2: 410.1, 3: 400.4, 4: 405.8}", 3, "computed"),
        ("BIC by subtypes {2: 410.1, 3: 400.4, 4: 405.8}", 4, "not found"),
        ("subtypes 2 bic 410.1; subtypes 3 bic 400.4; subtypes 4 bic 405.8", 3, "computed"),
        ("subtypes 2 bic 410.1; subtypes 3 bic 400.4; subtypes 4 bic 405.8", 4, "not found"),
        ("subtypes 4", 4, "computed"),
    ],
)
def test_a_number_with_values_is_computed_if_they_select_it(output: str, stated: int, status: str) -> None:
    task, data = made("biomarker")
    trail = (Trace("model", "output", "coder", output, ""),)
    report = Report("A paper.", task, data.truth, trail=trail, columns=data.columns)
    [claim] = audit(report, task.findings.model_validate({"n_subtypes": stated})).claims
    assert claim.status == status


@pytest.mark.parametrize(
    ("output", "stated", "status"),
    [
        ("sowing_day F 0.18 p 0.67", False, "computed"),
        ("sowing_day F 0.18 p 0.67", True, "not found"),
        ("sowing p 0.013, sowing with rain p 0.67", True, "computed"),
        ("sowing p 0.013, sowing with rain p 0.67", False, "not found"),
        ("sowing t 3.20", True, "computed"),
        ("sowing t 3.20", False, "not found"),
        ("sowing t 1.20", True, "not found"),
        ("sowing t 1.20", False, "computed"),
        ("sowing 0.0011", False, "not found"),
    ],
)
def test_a_yes_or_no_is_computed_if_a_printed_test_says_so(output: str, stated: bool, status: str) -> None:
    task, data = made("mulch")
    trail = (Trace("model", "output", "coder", output, ""),)
    report = Report("A paper.", task, data.truth, trail=trail, columns=data.columns)
    [claim] = audit(report, task.findings.model_validate({"sowing_matters": stated})).claims
    assert claim.status == status


@pytest.mark.parametrize(("finding", "stated"), [("worst_block", "Tamm"), ("careless_observer", "B5")])
def test_a_name_in_a_row_of_a_table_is_named_by_its_column(finding: str, stated: str) -> None:
    row = "    plot  block  observer  ratio\n31  P032     B5      Tamm    2.1"
    names = {"worst_block": "B5", "careless_observer": "Tamm", "wrong_plots": ["P032"]}
    assert mulch(row, **names) == ["computed"] * 3
    assert "not found" in mulch(row, **names | {finding: stated})


def test_a_count_of_a_table_of_ones_own_has_no_decimals() -> None:
    assert mulch("repeated rows [3]", repeated_rows=3.0) == ["computed"]
    assert mulch("repeated rows [2.05]", repeated_rows=2.05) == ["not found"]


def mulch(output: str, **stated: object) -> list[str]:
    return [claim.status for claim in audited("mulch", output, "", "A paper.", **stated).claims]


def test_a_number_of_a_group_needs_the_group() -> None:
    group = {"share": 0.297, "high": ["EL356", "LX358"], "low": ["EL850"]}
    output = "subtype high EL356 LX358, low EL850\nshares [0.235 0.297]"
    assert audited("biomarker", output, subtypes=[group]).value == 1
    assert audited("biomarker", output, subtypes=[group | {"high": ["CC627", "MS663"], "low": ["LX341"]}]).value == 0


def test_terms_of_a_model_beside_a_name_are_those_of_their_finding() -> None:
    output = "est {'CC415': 0.85, 'act:EL291': 1.93}"
    main, term = {"marker": "CC415", "size": 0.85}, {"marker": "EL291", "size": 1.93}
    right = audited("biomarker", output, prognostic_markers=[main], predictive_markers=[term])
    wrong = audited("biomarker", output, prognostic_markers=[term], predictive_markers=[main])
    assert (right.value, wrong.value) == (1, 0)


def test_a_transposed_description_of_the_data_computes_nothing() -> None:
    table = "           count    mean   std\n{}  900.0  1843.2  12.0"
    columns = made("geospatial")[1].columns
    assert geospatial(table.format(columns[-1]) + "\n\nrange 3.5", range_m=1843.0).value == 0
    assert geospatial(table.format("range     "), range_m=1843.0).value == 1


@pytest.mark.parametrize(("printed", "value"), [(1843, 1), (1837, 1), (1847, 0), (1880, 0)])
def test_a_stated_number_of_tens_may_be_rounded_to_tens(printed: int, value: int) -> None:
    assert geospatial(f"range {printed}", range_m=1840.0).value == value


def test_a_word_of_several_names_mentions_none_of_them() -> None:
    stated = {"declining_species": ["Ardea minor"], "increasing_species": ["Bufo minor"]}
    book = Book(read_outputs([], []), made("ecology")[0].findings.model_validate(stated))
    mentioned = [{*book.mentioned(frozenset({word}))} for word in ("ardea", "buf", "minor", "min")]
    assert mentioned == [{"Ardea minor"}, {"Bufo minor"}, set(), set()]


def test_a_variable_names_what_the_code_puts_into_it() -> None:
    code = "q = fit.azimuth\nprint(q.round(1))\nprint('q', q)"
    assert geospatial("q 37.4", code, anisotropy_azimuth=37.4).value == 1
    assert geospatial("q 37.4", "q = fit.ratio", anisotropy_azimuth=37.4).value == 0


def test_numbers_outside_the_findings_are_counted_apart() -> None:
    said = geospatial(
        f"range 1843\nslope 0.312\nsites [{'x, ' * 100}]",
        text="100 sites, 99 days, a slope of 0.31, an error of 0.77.",
        range_m=1843.0,
    )
    assert (said.value, said.printed, said.nowhere) == (1.0, 1, 2)
    assert json.loads(json.dumps(said.as_json()))["numbers"] == {"printed": 1, "nowhere": 2}


def test_findings_weigh_the_same_however_many_claims_they_make() -> None:
    spots = [{"x": 1200, "y": 3400}, {"x": 9999, "y": 8888}]
    found = geospatial("range 1843 m\nhot spots x 1200 y 3400", range_m=1843.0, hot_spots=spots)
    assert [claim.status for claim in found.claims] == ["computed"] * 3 + ["not found"] * 2
    assert found.value == (1 + 0.5) / 2


def test_details_tell_the_first_claims_and_count_all() -> None:
    told = Provenance(1.0, "", (Claim("range", "1", "computed"),) * (MOST_TOLD + 1)).as_json()
    assert (len(told["computed"]), told["claims"]["computed"]) == (MOST_TOLD, MOST_TOLD + 1)


def test_a_dump_of_numbers_is_read_in_bounded_time() -> None:
    dump = "\n".join(f"range {n} nugget {n / 7:.4f} [{n}, {n}]" for n in range(40_000))
    assert geospatial(dump, range_m=1.5).claims
    assert geospatial("(" * 20_000 + "1" + ")" * 20_000, "(" * 5_000, range_m=1.5).value == 0


def found(task: str, output: str, code: str = "", /, **findings: Any) -> dict[str, str]:
    return {claim.text: claim.status for claim in audited(task, output, code, "A paper.", **findings).claims}


@pytest.mark.parametrize(
    ("output", "code", "status"),
    [
        ("The plant has 11 sensors: all work", "", "computed"),
        ("The plant has 12 sensors: all work", "", "not found"),
        ("11 ['TT1', 'PT2']", "", "not found"),
        ("sensors 11", "print('sensors', len(columns))", "computed"),
        ("sensors 11", "count = 11\nprint('sensors', count)", "not found"),
        ("sensors 11", "count = 11\nprint(f'sensors {count}')", "not found"),
    ],
)
def test_a_count_is_named_by_its_noun_and_not_computed_by_setting_it(output: str, code: str, status: str) -> None:
    assert found("anomaly", output, code, n_sensors=11) == {"11": status}


def test_a_list_of_all_stated_names_of_a_kind_counts_them() -> None:
    spots = [{"start": 700, "end": 700, "sensors": [name], "kind": "point"} for name in ("TT1", "PT2", "VT3")]
    assert found("anomaly", "3 ['TT1', 'PT2', 'VT3']", n_sensors=3, events=spots)["3"] == "computed"
    assert found("anomaly", "2 ['TT1', 'PT2']", n_sensors=2, events=spots)["2"] == "not found"


def test_the_columns_of_a_table_hold_below_the_name_of_its_rows() -> None:
    table = "              before   after  ratio\nspecies                             \n"
    table += "Ara bus        95.05   49.63   0.52\nCis dux       159.32  153.19   0.96\n"
    table += "Elo fex        89.23  159.42   1.79\n"
    stated = {"declining_species": ["Ara bus"], "increasing_species": ["Elo fex"]}
    fine = [{"species": name, "abundance": 7} for name in ("Ara bus", "Cis dux", "Elo fex")]
    claims = found("ecology", table, forecast=fine, **stated)
    assert (claims["Ara bus"], claims["Elo fex"]) == ("computed", "computed")
    claims = found("ecology", table, forecast=fine, increasing_species=["Ara bus"])
    assert claims["Ara bus"] == "not found"


def test_the_number_of_a_row_is_no_value_of_it() -> None:
    table = "    start   end  sensors   kind\n0     320   320      PT2  point\n1     646   646      TT1  point"
    point = {"end": 646, "sensors": ["TT1"], "kind": "point"}
    assert found("anomaly", table, events=[point | {"start": 646}])["TT1: start 646"] == "computed"
    assert found("anomaly", table, events=[point | {"start": 1}])["TT1: start 1"] == "not found"


def test_the_numbers_of_an_entry_without_a_name_stand_in_one_row() -> None:
    table = (
        "          E         N   amp  r_half\n0  426262.0  719351.0  1.66    84.0\n1  423530.0  717175.0  1.29   163.0"
    )
    right, mixed = {"x": 426262, "y": 719351, "radius": 84}, {"x": 426262, "y": 717175, "radius": 84}
    assert found("geospatial", table, hot_spots=[right])["y 719351"] == "computed"
    assert found("geospatial", table, hot_spots=[mixed])["y 717175"] == "not found"


def test_sizes_of_two_fits_may_be_averaged_by_hand() -> None:
    output = (
        "full [('LX434', 1.47, 4.9), ('MS352', 1.23, 4.9)]\nrestricted {'LX434': (1.61, 0.24), 'MS352': (1.29, 0.25)}"
    )
    sizes = [{"marker": "LX434", "sign": "+", "size": 1.54}, {"marker": "MS352", "sign": "+", "size": 1.26}]
    assert set(found("biomarker", output, prognostic_markers=sizes).values()) == {"computed"}
    sizes[0]["size"] = 1.8
    assert found("biomarker", output, prognostic_markers=sizes)["LX434: size 1.8"] == "not found"


def test_an_effect_of_the_other_sign_names_no_gain() -> None:
    line = "temperature acts on the growth of {}: coefficient {} (p = {})"
    output = f"{line.format('Ara bus', -0.091, 0.002)}\n{line.format('Elo fex', 0.183, 0.001)}"
    fine = [{"species": name, "abundance": 7} for name in ("Ara bus", "Cis dux", "Elo fex")]
    assert found("ecology", output, forecast=fine, warmth_gains=["Ara bus"])["Ara bus"] == "not found"
    assert found("ecology", output, forecast=fine, warmth_loses=["Ara bus"])["Ara bus"] == "computed"


@pytest.mark.parametrize(("effect", "status"), [(4.1, "computed"), (-4.1, "not found")])
def test_a_group_has_the_printed_share_and_an_effect_of_the_printed_sign(effect: float, status: str) -> None:
    line = (
        "Subtype 1: 32 % of patients; raised: EL636 (+0.92); lowered: MS472 (-0.99); mean expected effect 4.09 points"
    )
    group = {"share": 0.32, "high": ["EL636"], "low": ["MS472"], "treatment_effect": effect}
    assert [*found("biomarker", line, subtypes=[group]).values()] == ["computed", status, "computed"]


def test_symbols_are_read_as_the_words_they_stand_for() -> None:
    assert found("biomarker", "P(eff>0) 0.876", benefit_share=0.88) == {"0.88": "computed"}
    assert found("biomarker", "P(eff<-2) 0.876", benefit_share=0.88) == {"0.88": "not found"}


SIGNED = (
    "          source           target sign  strength  lo95  hi95\n"
    "  Ara bus          Cis dux            -      0.14 -0.23 -0.05\n"
    "  Cis dux          Elo fex            +      0.21  0.11  0.30\n"
)


@pytest.mark.parametrize(("sign", "status"), [("-", "computed"), ("+", "not found")])
def test_a_row_named_by_names_of_two_words_is_no_header_and_may_tell_the_sign_apart(sign: str, status: str) -> None:
    effect = {"source": "Ara bus", "target": "Cis dux", "sign": sign, "strength": 0.14}
    other = {"source": "Cis dux", "target": "Elo fex", "sign": "+", "strength": 0.21}
    claims = found("ecology", SIGNED, interactions=[effect, other])
    assert claims == {"Ara bus, Cis dux: strength 0.14": status, "Cis dux, Elo fex: strength 0.21": "computed"}


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("benefit_share 0.864", "computed"),
        ("benefit_share 95% [0.864 0.914]", "not found"),
        ("benefit_share 0.89, 95% interval [0.864 0.914]", "contradicted"),
        ("benefit_share [0.31 0.42 0.864 0.71 0.52 0.66 0.77 0.12]", "not found"),
    ],
)
def test_the_bounds_of_an_interval_and_long_lists_are_no_values_of_one_number(output: str, status: str) -> None:
    assert found("biomarker", output, benefit_share=0.864) == {"0.864": status}


def test_the_names_in_brackets_before_a_pair_do_not_name_its_number() -> None:
    claims = found("biomarker", "used ['EL5', 'CC7'] benefit_share 0.864", benefit_share=0.864, batch_markers=["EL5"])
    assert claims["0.864"] == "computed"


@pytest.mark.parametrize(("stated", "status"), [(3194, "computed"), (3293, "contradicted")])
def test_a_number_with_a_noun_of_its_own_is_not_that_of_the_lines_first_word(stated: int, status: str) -> None:
    assert geospatial("n_sites 3194 rows 3293", n_sites=stated).claims[0].status == status


def test_numbers_of_one_entry_are_not_those_of_another() -> None:
    lines = "hot_spot 1 x 659873 y 6439239 radius 285\nhot_spot 2 x 665691 y 6438021 radius 354"
    spot = {"x": 659873, "y": 6439239}
    assert found("geospatial", lines, hot_spots=[spot | {"radius": 285}])["radius 285"] == "computed"
    assert found("geospatial", lines, hot_spots=[spot | {"radius": 354}])["radius 354"] == "not found"


@pytest.mark.parametrize(("sign", "status"), [("+", "computed"), ("-", "not found")])
def test_a_number_without_a_sign_is_positive_beside_negative_ones(sign: str, status: str) -> None:
    line = "covariates [('clay_pct', -0.344, 'z', -19.7), ('iron_pct', 0.404, 'z', 12.1)]"
    stated = [{"name": "clay_pct", "sign": "-"}, {"name": "iron_pct", "sign": sign}]
    assert found("geospatial", line, covariates=stated)["iron_pct"] == status


@pytest.mark.parametrize(("rock", "status"), [("Gneiss", "computed"), ("Schist", "not found")])
def test_a_name_in_a_list_of_names_with_numbers_is_the_richest_if_its_number_is_largest(rock: str, status: str) -> None:
    line = "rocks [('Gneiss', 3.84, 'z', 93.0), ('Schist', 3.07, 'z', 70.3), ('Basalt', 3.15, 'z', 71.8)]"
    covariates = [{"name": name, "sign": "+"} for name in ("iron_pct", "clay_pct", "ndvi")]
    assert found("geospatial", line, richest_rock=rock, covariates=covariates)[rock] == status


@pytest.mark.parametrize(("typed", "status"), [("144", "computed"), ("144, 880, 1902", "not found")])
def test_a_number_that_the_code_states_counts_in_a_column_of_mostly_other_ones(typed: str, status: str) -> None:
    starts = {"FT1": 144, "FT2": 880, "FT3": 1902, "FT4": 2700}
    output = "\n".join(f"edges {name} start {start} gain 4.{start % 7}1" for name, start in starts.items())
    events = [{"start": start, "end": start, "sensors": [name], "kind": "point"} for name, start in starts.items()]
    assert found("anomaly", output, f"days = [{typed}]", events=events)["FT1: start 144"] == status


@pytest.mark.parametrize(("survey", "status"), [(42, "computed"), (37, "not found"), (36, "not found")])
def test_of_candidates_in_the_order_of_their_scores_the_first_count(survey: int, status: str) -> None:
    line = "shift [(1681.1, 42, 1, 1), (1681.9, 37, 6, 1), (1682.2, 41, 8, 1), (1682.4, 36, 2, 1)]"
    assert found("ecology", line, shift_surveys=[survey]) == {str(survey): status}


EFFECTS = "source | target | sign | strength | se (sites left out)"
PIPES = (
    f"| {EFFECTS} |\n|---|---|---|---|---|\n"
    "| Ara bus | Cis dux | + | 0.17 | 0.016 |\n| Cis dux | Elo fex | - | 0.31 | 0.04 |"
)


@pytest.mark.parametrize(
    ("source", "target", "sign", "status"),
    [
        ("Ara bus", "Cis dux", "+", "computed"),
        ("Ara bus", "Cis dux", "-", "not found"),
        ("Cis dux", "Ara bus", "+", "not found"),
    ],
)
def test_a_markdown_table_names_its_columns_signs_and_directions(
    source: str, target: str, sign: str, status: str
) -> None:
    effect = {"source": source, "target": target, "sign": sign, "strength": 0.17}
    other = {"source": "Cis dux", "target": "Elo fex", "sign": "-", "strength": 0.31}
    claims = found("ecology", PIPES, interactions=[effect, other])
    assert claims == {f"{source}, {target}: strength 0.17": status, "Cis dux, Elo fex: strength 0.31": "computed"}


def test_numbers_in_other_brackets_are_not_beside_those_of_an_entry() -> None:
    line = "hot spot 1: x 620414 y 7014648 radius 276 t 6.8 | by radius {166: 16.1, 221: 4.2, 331: 3.9, 442: 11.8}"
    spot = {"x": 620414, "y": 7014648, "radius": 276}
    assert {*found("geospatial", line, hot_spots=[spot]).values()} == {"computed"}


def test_a_line_of_all_stated_names_of_a_finding_lists_them() -> None:
    names = ("elevation_m", "iron_pct", "soil_ph")
    stated = [{"name": name, "sign": "+"} for name in names]
    claims = found("geospatial", f"covariates kept: {', '.join(names)}", covariates=stated, richest_rock="Gneiss")
    assert [claims[name] for name in names] == ["computed"] * 3


def test_rows_counted_in_braces_do_not_make_a_rock_the_richest() -> None:
    assert found("geospatial", "rock {'Gneiss': 889, 'Schist': 702}", richest_rock="Gneiss") == {"Gneiss": "not found"}


def test_a_part_of_the_names_of_several_columns_names_none() -> None:
    first, second = [column for column in made("geospatial")[1].columns if column.endswith("_pct")][:2]
    output = f"covariates\ndropped {second} t 0.64"
    assert found("geospatial", output, covariates=[{"name": first, "sign": "+"}]) == {first: "not found"}


@pytest.mark.parametrize(
    ("output", "stated", "status"),
    [
        ("hot spot x 668946 y 7425905 radius 276", {"hot_spots": [{"x": 668946, "y": 7425900}]}, "computed"),
        ("practical range 1377 m", {"range_m": 1400}, "computed"),
        ("practical range 1377 m", {"range_m": 1500}, "contradicted"),
        ("block bootstrap se: nugget_share 0.051", {"nugget_share": 0.051}, "not found"),
        ("sites: 26 June to 28 June, nugget 4", {"n_sites": 26}, "not found"),
        (
            "covariates ['elevation_m', 'iron_pct']",
            {"covariates": [{"name": "ELEVATION_M", "sign": "+"}, {"name": "Iron_pct", "sign": "+"}]},
            "computed",
        ),
    ],
)
def test_rounded_places_and_ranges_count_and_errors_and_dates_do_not(
    output: str, stated: dict[str, Any], status: str
) -> None:
    assert {*found("geospatial", output, **stated).values()} == {status}


@pytest.mark.parametrize("typed", ["nugget = 0.6141", "told = 'nugget share 0.614'"])
def test_a_number_typed_in_an_earlier_cell_is_not_computed_by_printing_it(typed: str) -> None:
    task, data = made("geospatial")
    cells = (("", typed), ("nugget share 0.614", "print('nugget share', value)"))
    trail = tuple(Trace("model", "output", "coder", text or "done", code) for text, code in cells)
    report = Report("A paper.", task, data.truth, trail=trail, columns=data.columns)
    assert [claim.status for claim in audit(report, task.findings(nugget_share=0.614)).claims] == ["not found"]
