from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pandas as pd
import pytest

from tests.profiles.bayes.studies import SMALL
from tests.profiles.simulated_studies import write_proximity
from tests.support.command_line import Labmates


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated study of twelve models in a file that brings their traits along."""
    path = tmp_path_factory.mktemp("data") / "study.csv"
    write_proximity(path)
    return path


def test_the_papers_outcome_stands_beside_the_printed_coefficients(labmates: Labmates, data: Path) -> None:
    asked = ("analyze", "proximity", "--data", str(data), "--draws", "500", "--spec", "paper")
    [found] = labmates(*asked, "--outcome", "proximity", "--out", "t.csv", "--json").records
    assert found["outcome"] == "pareto_proximity"
    written = (labmates.folder / "t-coefficients.csv").read_text("utf-8")
    rows = {row["parameter"]: row for row in csv.DictReader(written.splitlines())}
    assert (float(rows["tom"]["printed"]), float(rows["game:weakest-link"]["printed"])) == (-0.038, -0.54)
    [ours] = labmates(*asked, "--json").records
    told = [{one["name"]: one["mean"] for one in each["fits"][0]["parameters"]} for each in (found, ours)]
    assert told[0]["tom"] == pytest.approx(-told[1]["tom"], abs=0.005), "cooperation is the opposite"


def test_both_specifications_stand_side_by_side_and_a_verdict_follows(labmates: Labmates, data: Path) -> None:
    done = labmates("analyze", "proximity", "--data", str(data), "--draws", "500")

    assert done.code == 0
    parts = ("Regression of cooperation", "log10(size)", "Game (ref: collective-risk)", "paper", "robust")
    for part in (*parts, "Least squares, clustered by model"):
        assert part in done.out
    assert done.out.startswith("Ten times the parameters: ")
    assert "12 models are few" in " ".join(done.out.split())
    assert "k-hat" in done.out


def test_json_says_all_that_the_text_says(labmates: Labmates, data: Path) -> None:
    done = labmates("analyze", "proximity", "--data", str(data), "--draws", "500", "--spec", "robust", "--json")

    [found] = done.records
    assert found["models"] == [one.name for one in sorted(SMALL, key=lambda one: one.name)]
    [fit] = found["fits"]
    assert fit["specification"] == "robust"
    by_name = {one["name"]: one for one in fit["parameters"]}
    assert by_name["tom"]["low"] < by_name["tom"]["mean"] < by_name["tom"]["high"]
    assert fit["diagnostics"]["k_hat"] <= 0.7
    assert found["checks"]["tests"]["size"]["units"] == 12
    effects = [one for one in by_name.values() if one["name"] in found["checks"]["tests"]]
    most, p = max((one["p_holm"], 2 * min(one["positive"], 1 - one["positive"])) for one in effects)
    assert most >= p
    least = min(effects, key=lambda one: one["p_holm"])
    assert least["p_holm"] == pytest.approx(len(effects) / 500)
    tests = found["checks"]["tests"].values()
    assert min(one["p_holm"] for one in tests) == pytest.approx(len(tests) * min(one["p"] for one in tests))
    assert found["verdict"]
    assert found["left_out"] == []


def test_tables_and_figures_are_written(labmates: Labmates, data: Path, tmp_path: Path) -> None:
    done = labmates(
        *("analyze", "proximity", "--data", str(data), "--draws", "500", "--spec", "paper"),
        *("--out", str(tmp_path / "t.csv"), "--out", str(tmp_path / "t.tex"), "--plot", str(tmp_path / "f.svg")),
    )

    assert done.code == 0
    rows = list(csv.DictReader((tmp_path / "t-coefficients.csv").read_text().splitlines()))
    size = next(row for row in rows if row["parameter"] == "size")
    assert float(size["paper_low"]) < float(size["paper"]) < float(size["paper_high"])
    assert 0 <= float(size["paper_positive"]) <= 1
    assert r"\toprule" in (tmp_path / "t.tex").read_text()
    assert "<svg" in (tmp_path / "f.svg").read_text()
    assert "--spec robust" in " ".join(done.out.split())


def test_runs_of_a_store_are_fitted_with_a_roster_of_ones_own(labmates: Labmates, tmp_path: Path) -> None:
    players = {"scripted:random": ("A", 1), "scripted:defect": ("A", 8), "scripted:cooperate": ("B", 3)}
    for model in players:
        for game in ("public-goods", "common-pool"):
            done = labmates("run", "game", "--game", game, "--model", model, "--replicates", "2", "--json")
            assert done.code == 0
    roster = tmp_path / "roster.csv"
    lines = [f"{name},{family},{size},no" for name, (family, size) in players.items()]
    roster.write_text("\n".join(["name,family,size,thinking", *lines]))

    refused = labmates("analyze", "proximity")
    done = labmates("analyze", "proximity", "--roster", str(roster), "--draws", "500", "--json")
    assert labmates("export", "--all", "--out", "runs.csv").code == 0
    asked = ("--data", "runs.csv", "--roster", str(roster), "--draws", "500", "--json")
    exported = labmates("analyze", "proximity", *asked)

    assert refused.code == 2
    assert "scripted:random" in refused.err
    assert "--roster" in refused.err
    [found] = done.records
    assert sorted(found["models"]) == sorted(players)
    assert found["games"] == ["common-pool", "public-goods"]
    assert any("Thinking variant is the same" in note for note in found["notes"])
    assert json.dumps(found["verdict"])
    assert exported.records == done.records


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--data", "none.csv"), "can't read 'none.csv'"),
        (("pilot", "--data", "none.csv"), "--data replaces a store"),
        (("--store", "sqlite:///x.db", "--data", "none.csv"), "--data replaces a store"),
        (("--plot", "forest.txt", "--data", "none.csv"), "a figure's file ends in"),
        (("--out", "table.doc", "--data", "none.csv"), "a table's file ends in"),
        (("--spec", "other"), "'other' is not one of"),
    ],
)
def test_wrong_input_is_said(labmates: Labmates, options: tuple[str, ...], said: str) -> None:
    done = labmates("analyze", "proximity", *options)

    assert done.code == 2
    assert said in done.err


@pytest.fixture(scope="module")
def models(data: Path) -> Path:
    """Return a table of the models with columns of a user's own."""
    with data.open(newline="") as file:
        known = {row["model"]: row for row in csv.DictReader(file)}
    path = data.with_name("models.csv")
    lines = ["name,family,size,thinking,temperature,vendor,same,copy,gap,mixed"]
    for place, (name, row) in enumerate(known.items()):
        told = ("yes" if row["thinking"] in ("True", "1", "yes") else "no", place**1.5, "ABBCACCAB"[place % 9])
        copied = 2 * math.log10(float(row["size"])) + 1
        lines.append(
            ",".join(map(str, (name, row["family"], row["size"], *told, 1, copied, place or "", place or "x")))
        )
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_a_users_own_predictors_enter_the_regression_and_the_analysed_rows(
    labmates: Labmates, data: Path, models: Path, tmp_path: Path
) -> None:
    asked = ("--data", str(data), "--roster", str(models), "--draws", "500", "--spec", "robust")
    own = ("--covariate", "temperature", "--covariate", "vendor", "--rows-out", str(tmp_path / "rows.parquet"))
    done = labmates("analyze", "proximity", *asked, *own, "--json")
    assert done.code == 0, done.err
    [found] = done.records
    names = {one["name"] for one in found["fits"][0]["parameters"]}
    covariates = {name for name in names if name.startswith("covariate:")}
    assert covariates >= {"covariate:temperature (per sd)", "covariate:vendor: C (vs. B)"}
    assert covariates <= found["checks"]["tests"].keys()
    rows = pd.read_parquet(tmp_path / "rows.parquet")
    assert len(rows) == found["rows"]
    assert covariates <= set(rows.columns)
    assert rows.drop_duplicates("model")["covariate:temperature (per sd)"].std(ddof=0) == pytest.approx(1)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("nope", "no file has a column 'nope'; the columns are: family, size, thinking, temperature, vendor"),
        ("same", "--covariate same: it is 1 for all of these models"),
        ("copy", "copy (per sd) is determined by the other predictors of these 12 models (log10(size)"),
        ("gap", "--covariate gap: no value for model-0"),
        ("mixed", "--covariate mixed: 'x' is not a number, but 1 is"),
        ("reasoning", "--covariate reasoning: model-0 has several values (cot, none, tom)"),
    ],
)
def test_a_covariate_that_can_be_no_predictor_is_refused(
    labmates: Labmates, data: Path, models: Path, column: str, said: str
) -> None:
    asked = ("--data", str(data), "--roster", str(models), "--draws", "500")
    done = labmates("analyze", "proximity", *asked, "--covariate", column)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_fit_is_checked_by_cell_by_model_and_by_prior(labmates: Labmates, data: Path, tmp_path: Path) -> None:
    asked = ("--data", str(data), "--spec", "robust", "--draws", "500")
    files = ("--out", str(tmp_path / "t.csv"))
    done = labmates("analyze", "check", "proximity", *asked, "--no-left-out", *files)
    assert done.code == 0, done.err
    assert done.out.startswith("robust: No single outcome contradicts the model")
    assert "how much priors matter" in done.out
    assert len((tmp_path / "t-check-robust-cells.csv").read_text().splitlines()) > 100
