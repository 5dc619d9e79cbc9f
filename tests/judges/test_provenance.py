"""Provenance: papers whose numbers stand in what the code printed score high; salads, inventions and dumps don't."""

from __future__ import annotations

import json
import random
import re
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labmates.judges.base import Report, Trace
from labmates.judges.provenance import ENOUGH, MOST, audit
from labmates.judges.verified import VerifiedJudge
from labmates.tasks.base import Dataset
from labmates.tasks.registry import get_task

OUTPUT = """2735 rows, 36 columns
slope of growth: -0.2134, standard error 0.0312
              mean    sd
Calvora     59.312  4.871
Elomis      85.299  7.204
Farquia     98.731  6.518
correlation of silver and lead 0.7412
mannwhitneyu statistic 812.5 p 0.00314
variogram range 1184.2 nugget 0.3127
missing share 0.0671
RESULT {"r2": {"random": 0.481, "block": 0.216}, "folds": 214}
"""
PAPER = """## Results
The table has 2735 rows. Growth falls with a slope of -0.213 (standard error 0.031).
Calvora has a mean of 59.3 with an sd of 4.9, Elomis one of 85.3 and Farquia one of 98.7.
Silver and lead correlate at 0.74. A Mann-Whitney test gives a statistic of 812.5 (p = 0.0031).
The variogram has a range of 1184 m and a nugget of 0.31, and 6.7 % of the values are missing.
In cross-validation R2 reaches 0.48 in random folds but 0.22 in blocks (214 folds).
"""
SALAD = "\n".join(
    f"The data team used regression, random forest, PCA and a t-test with p-values, an interval of {i / 9 + 0.4:.4f}."
    for i in range(12)
)


@cache
def made() -> Dataset[Any]:
    return get_task("ecology").generate(0, "easy")


def report(text: str | None, *outputs: str, code: str = "") -> Report:
    trail = tuple(Trace("model", "output", "coder", output, code) for output in outputs)
    return Report(text, get_task("ecology"), made().truth, trail=trail)


def value(text: str | None, *outputs: str) -> float:
    return audit(report(text, *outputs)).value


def perturbed(text: str, seed: int = 0) -> str:
    rng = random.Random(seed)
    number = re.compile(r"(?<![\w.])\d+\.\d+|(?<![\w.])\d{3,}")

    def other(match: re.Match[str]) -> str:
        decimals = len(match[0].partition(".")[2])
        return f"{float(match[0]) * rng.choice((0.6, 0.75, 1.3, 1.6)):.{decimals}f}"

    return number.sub(other, text)


def test_a_paper_whose_numbers_were_printed_scores_high_and_each_claim_is_told() -> None:
    found = audit(report(PAPER, OUTPUT))
    assert found.value > 0.9
    assert found.count("contradicted") == found.count("not found") == 0
    assert {"0.213", "59.3", "6.7 %", "0.0031", "rank test", "validation"} <= {claim.text for claim in found.claims}
    assert json.loads(json.dumps(found.as_json()))["claims"]["found"] == len(found.claims)


@pytest.mark.parametrize("seed", range(8))
def test_the_same_paper_with_other_numbers_scores_low_and_is_contradicted(seed: int) -> None:
    found = audit(report(perturbed(PAPER, seed), OUTPUT))
    assert found.value < 0.25
    assert found.count("contradicted") >= 3


def test_a_share_of_wrong_numbers_costs_its_share() -> None:
    lines = PAPER.split("\n")
    half = "\n".join([*lines[:4], *perturbed("\n".join(lines[4:])).split("\n")])
    assert value(perturbed(PAPER), OUTPUT) < value(half, OUTPUT) < value(PAPER, OUTPUT)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        SALAD,
        "Great work was done by all teams, and every test was passed.",
        "regression, random forest, PCA, ARIMA, t-test, Wilcoxon, bootstrap, cross-validation, p < 0.001",
        "## 1.1 Results\n1. First of 6 species in 2019, 2020 and 2021.\n2. Second, at p < 0.05 and 95 % confidence.",
    ],
)
def test_salad_and_an_empty_paper_gain_nothing(text: str | None) -> None:
    assert value(text, OUTPUT) < 0.05


def test_without_recorded_output_the_value_is_zero_with_the_reason() -> None:
    for outputs in ((), ("", " \n")):
        found = audit(report(PAPER, *outputs))
        assert (found.value, found.reason) == (0.0, "no output of code is recorded that could support the paper")


def test_copied_output_is_no_paper_and_adds_nothing_to_one() -> None:
    for dump in (OUTPUT, "\n".join(f"- {line}" for line in OUTPUT.split("\n")), f"```\n{OUTPUT}\n```"):
        assert value(dump, OUTPUT) == 0
        assert value(f"{PAPER}\n{dump}", OUTPUT) == value(PAPER, OUTPUT)


def test_a_shotgun_of_numbers_loses_to_an_honest_paper() -> None:
    rng = random.Random(0)
    printed = [f"{rng.uniform(0, 1000):.3f}" for _ in range(1500)]
    output = OUTPUT + "".join(f"value {number}\n" for number in printed)
    shot = " ".join(f"A value of {number} was seen in the data." for number in printed[:1000])
    joined = "The values seen in the data are " + ", ".join(printed) + "."
    honest = value(PAPER, output)
    assert honest > 0.8
    assert value(shot, output) <= MOST / 1000 + 0.01
    assert value(joined, output) < 0.1


def test_printing_every_number_supports_no_invention() -> None:
    noise = "".join(f"mean {i / 100:.2f} slope range sd statistic\n" for i in range(1, 13_000))
    assert value(perturbed(PAPER), noise) < 0.25


def test_numbers_alone_without_a_word_in_common_are_met_only_with_four_digits() -> None:
    output = "zebra 0.42\nzebra 1184.2\n"
    claims = {
        one.text: one.status
        for one in audit(report("The slope of growth is 0.42 per step, range 1184 m.", output)).claims
    }
    assert claims == {"0.42": "not found", "1184": "found"}


def test_a_number_stated_many_times_is_one_claim_and_few_claims_earn_in_proportion() -> None:
    once = audit(report("The slope of growth is -0.2134 in all sites.", OUTPUT))
    often = audit(
        report("The slope of growth is -0.2134 in all sites.\n\n" * 5 + "Again the slope is -0.2134.", OUTPUT)
    )
    assert len(once.claims) == len(often.claims) == 1
    assert once.value == often.value == pytest.approx(1 / ENOUGH, abs=0.02)
    assert f"{ENOUGH} claims are due" in once.reason


def test_rounding_is_agreement_and_a_wrong_last_digit_is_not() -> None:
    for stated, status in (("0.21", "found"), ("0.213", "found"), ("0.2134", "found"), ("0.215", "contradicted")):
        [claim] = audit(report(f"The slope of growth is -{stated} in all sites.", OUTPUT)).claims
        assert (claim.text, claim.status) == (stated, status)


def test_a_test_counts_where_it_was_run_and_a_number_beside_it_was_printed() -> None:
    said = "A Wilcoxon test gives a statistic of {} for the growth."
    for number, code, status in (
        ("812.5", "scipy.stats.wilcoxon(a, b)", "found"),
        ("613.5", "scipy.stats.wilcoxon(a, b)", "not found"),
        ("812.5", "print(1)", "not found"),
    ):
        found = audit(report(said.format(number), "the statistic is 812.5", code=code))
        assert {claim.text: claim.status for claim in found.claims}["rank test"] == status


def test_findings_are_claims_with_their_keys_as_words() -> None:
    findings = {"r2": {"random": 0.481, "block": 0.317}}
    found = {one.text: one.status for one in audit(report("A paper.", OUTPUT), findings).claims}
    assert found == {"0.481": "found", "0.317": "contradicted"}


def test_an_entry_of_the_findings_is_found_by_the_names_that_stand_beside_its_number() -> None:
    printed = "Hare ridens -> Lynx major: -0.23 per log unit, t = -7.9"
    entry = {"source": "Hare ridens", "target": "Lynx major", "sign": "-", "strength": 0.23}
    for name, status in (("Lynx major", "found"), ("Vulpes minor", "found"), ("", "not found")):
        own = {**entry, "target": name} if name else {"source": "Owl", "target": "Elk", "sign": "-", "strength": 0.23}
        claims = {one.text: one.status for one in audit(report("A paper.", printed), {"interactions": [own]}).claims}
        assert claims == {"0.23": status}


def test_numbers_of_the_task_itself_claim_nothing() -> None:
    brief = get_task("ecology").brief
    assert audit(report(f"## Introduction\n{brief}", OUTPUT)).claims == ()


@settings(max_examples=40, deadline=None)
@given(st.text(), st.text())
def test_any_texts_give_a_value_in_the_unit_interval(text: str, output: str) -> None:
    assert 0 <= audit(report(f"{text}\n{PAPER}", f"{output}\n{OUTPUT}")).value <= 1
    assert 0 <= audit(report(text, output)).value <= 1


def test_a_huge_output_and_a_huge_paper_are_read_in_bounds() -> None:
    row = " ".join(f"word{i} {i / 7:.4f}" for i in range(20_000))
    found = audit(report(f"{row}\n{PAPER}", row, json.dumps([i / 3 for i in range(30_000)])))
    assert 0 <= found.value <= 1
    assert len(json.dumps(found.as_json())) < 60_000


async def test_verified_scores_it_with_its_claims_in_the_details() -> None:
    *_, score = await VerifiedJudge().score(report(PAPER, OUTPUT))
    assert (score.metric, score.version) == ("provenance", VerifiedJudge.version)
    assert score.value is not None
    assert score.value > 0.9
    assert score.details["claims"] == {"found": len(score.details["found"]), "contradicted": 0, "not found": 0}
    *_, none = await VerifiedJudge().score(report(None, OUTPUT))
    assert (none.value, none.reason) == (0.0, "there is no report")
