"""``labmates analyze prediction`` and ``labmates screen``, as a user types them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import tests.support.garbage  # noqa: F401 - registers a baseline
from labmates import screen
from labmates.models.roster import roster
from labmates.records.events import ScoreEvent
from labmates.records.store import Store
from tests.profiles.simulated_studies import write_prediction
from tests.studies.ended import ended_run
from tests.support.command_line import Labmates

PLAYERS = [f"scripted:{name}" for name in ("cooperate", "defect", "random", "fair-share", "conditional")]
GAMES = ("--game", "weakest-link", "--game", "o-ring")
FEW = ("--draws", "500", "--spec", "robust")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a simulated study as two files, ``games.csv`` and ``lab.csv``."""
    folder = tmp_path_factory.mktemp("study")
    write_prediction(folder)
    return folder


def of(files: Path) -> tuple[str, ...]:
    return ("--games", str(files / "games.csv"), "--lab", str(files / "lab.csv"), "--unit", "run")


def test_a_study_in_two_files_is_fitted_told_written_and_drawn(labmates: Labmates, files: Path) -> None:
    asked = ("--outcome", "quality", "--out", "t.tex", "--out", "t.csv", "--plot", "f.png", "--draws", "500")
    done = labmates("analyze", "prediction", *of(files), *asked)
    assert done.code == 0, done.err
    assert "Prediction of lab outcomes, the paper's form" in done.out
    assert "robust: models differ in level and reactions" in done.out
    assert "robust and with correlated dispositions" in done.out
    assert "300 observations of 20 models, scored by file; k-hat 0." in done.out
    assert "Better than the models' mean: yes" in done.out
    assert "The games predict quality" in done.out
    assert "Only 20 models for 11 coefficients per model" in done.out
    assert (labmates.folder / "f.png").read_bytes().startswith(b"\x89PNG")
    assert "common-pool-sanctions" in (labmates.folder / "t.tex").read_text("utf-8")
    table = (labmates.folder / "t-prediction-robust.csv").read_text("utf-8")
    rows = list(csv.DictReader(table.splitlines()))
    effects = {row["predictor"]: float(row["quality"]) for row in rows}
    assert effects["common-pool"] == pytest.approx(0.827, abs=0.3)
    assert effects["τ (residual SD)"] == pytest.approx(0.1, abs=0.02)
    table = (labmates.folder / "t-prediction-paper.csv").read_text("utf-8")
    printed = {row["predictor"]: row["quality_printed"] for row in csv.DictReader(table.splitlines())}
    assert (printed["common-pool"], printed["τ (residual SD)"], printed["IFEval"]) == ("0.827", "0.1", "0.098")


def test_json_tells_fits_evidence_and_all_that_is_left_out(labmates: Labmates, files: Path) -> None:
    rows = (files / "lab.csv").read_text("utf-8").splitlines()
    named = [row for row in rows[1:] if "gemma-3-1b-it" not in row]
    text = "\n".join([rows[0], *named, "openai:nobody,ecology,False,0.5,0.5,"])
    (labmates.folder / "lab.csv").write_text(text, "utf-8")
    done = labmates("analyze", "prediction", *of(files)[:2], "--lab", "lab.csv", *FEW, "--unit", "run", "--json")
    assert done.code == 0, done.err
    [found] = done.records
    by_name = {one["outcome"]: one for one in found["outcomes"]}
    assert list(by_name) == ["accuracy", "quality", "completeness"]
    left = {one["what"]: one["reason"] for one in by_name["quality"]["left_out"]}
    assert left["openai:gemma-3-1b-it"] == "it has a profile, but no scored lab runs"
    assert left["openai:nobody"] == "it has 1 scored lab runs, but no profile"
    assert by_name["completeness"]["left_out"][0]["reason"] == "completeness unscored by file: runs of openai:nobody"
    robust = by_name["quality"]["fits"]["robust"]
    assert robust["diagnostics"]["k_hat"] <= 0.7
    useful = {name: one["usefulness"] for name, one in by_name.items()}
    raw = sorted((one["p"], name) for name, one in useful.items())
    assert useful[raw[0][1]]["p_holm"] == pytest.approx(3 * raw[0][0])
    assert {one["better_than_mean"] for one in by_name.values()} <= {"yes", "no", "can't tell"}
    assert {one["name"] for one in robust["parameters"]} >= {"common-pool", "IFEval", "tau", "omega"}
    assert by_name["quality"]["evidence"]["permutation"]["permutations"] == 10_000


def test_outcomes_that_runs_tell_nothing_of_are_left_out_unless_they_are_asked_for(
    labmates: Labmates, files: Path
) -> None:
    with (files / "lab.csv").open(newline="") as file:
        rows = [{**row, "accuracy": "1", "completeness": ""} for row in csv.DictReader(file)]
    with (labmates.folder / "lab.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    study = (*of(files)[:2], "--lab", "lab.csv", "--unit", "run")
    [found] = labmates("analyze", "prediction", *study, *FEW, "--json").records
    assert [one["outcome"] for one in found["outcomes"]] == ["quality"]
    left = {one["what"]: one["reason"] for one in found["left_out"]}
    assert left["accuracy"].startswith("does not vary within any model")
    assert left["completeness"].startswith("no lab run has a score of completeness")
    [screened] = labmates("screen", "openai:gemma-3-27b-it", *study, "--json").records
    assert list(screened["outcomes"]) == ["quality"]
    assert [one["what"] for one in screened["left_out"]] == ["skill", "completeness", "accuracy"]
    for outcome in ("accuracy", "completeness"):
        refused = labmates("analyze", "prediction", *study, "--outcome", outcome)
        assert refused.code == 2
        said = f"accuracy {left['accuracy']}" if outcome == "accuracy" else left[outcome]
        assert refused.err.strip() == f"labmates: {said}"


def test_a_model_screened_by_a_file_is_left_out_of_the_study_and_called_far_outside(
    labmates: Labmates, files: Path
) -> None:
    asked = (*of(files), "--outcome", "quality", "--spec", "robust")
    known = labmates("screen", "openai:gemma-3-27b-it", *asked)
    assert known.code == 0, known.err
    assert "The model is part of the study and was excluded from the fit." in known.out
    assert known.out.startswith("Quality. Better than the models' mean: ")
    assert "lies" in known.out
    extreme = [f"openai:qwen3-32b-think,{game},25,0.1,20" for game in ("weakest-link", "collective-risk", "o-ring")]
    extreme += [f"openai:qwen3-32b-think,{game},5,0.1,20" for game in ("common-pool", "common-pool-sanctions")]
    text = (files / "games.csv").read_text("utf-8") + "\n".join(
        [*extreme, "openai:qwen3-32b-think,public-goods,5,0.1,20"]
    )
    (labmates.folder / "games.csv").write_text(text, "utf-8")
    asked = ("--games", "games.csv", *asked[2:])
    done = labmates("screen", "openai:qwen3-32b-think", *asked, "--json")
    assert done.code == 0, done.err
    [found] = done.records
    quality = found["outcomes"]["quality"]
    assert quality["standing"]["where"] == "far outside"
    assert quality["study"]["judge"] == "file"
    assert len(quality["study"]["models"]) == 20
    assert quality["low"] < quality["mean"] < quality["high"]
    assert found["profile"]["levels"][0]["value"] == 25
    said = labmates("screen", "openai:qwen3-32b-think", *asked).out
    assert "far outside of the fitted models" in said
    assert "an extrapolation: do not rely on it" in said


def test_where_games_predict_no_better_the_headline_of_a_screening_is_the_mean(labmates: Labmates) -> None:
    rng = np.random.default_rng(5)
    levels = rng.standard_normal((15, 2))
    apart = {"quality": 0.5 + 0.08 * levels[:, 0], "completeness": 0.5 + rng.normal(0, 0.08, 15)}
    played = ["model,game,mean,error,simulations"]
    worked = ["model,quality,completeness"]
    for model in range(15):
        played += [f"m{model},{game},{levels[model, at]},0.05,20" for at, game in enumerate(("weakest-link", "o-ring"))]
        noise = rng.normal(0, 0.05, (6 if model < 14 else 0, 2))
        worked += [f"m{model},{apart['quality'][model] + a},{apart['completeness'][model] + b}" for a, b in noise]
    (labmates.folder / "g.csv").write_text("\n".join(played), "utf-8")
    (labmates.folder / "l.csv").write_text("\n".join(worked), "utf-8")
    asked = ("--games", "g.csv", "--lab", "l.csv", "--no-benchmarks", "--out", "s.csv")
    done = labmates("screen", "m14", *asked, "--json")
    assert done.code == 0, done.err
    [found] = done.records
    told, untold = found["outcomes"]["quality"], found["outcomes"]["completeness"]
    assert (told["better_than_mean"], told["headline"]) == ("yes", "with games")
    assert told["mean"] == told["with_games"]["mean"]
    assert told["high"] - told["low"] < 0.5 * (
        told["usefulness"]["models_mean"]["high"] - told["usefulness"]["models_mean"]["low"]
    )
    assert (untold["better_than_mean"], untold["headline"]) == ("can't tell", "models' mean")
    assert untold["mean"] == untold["usefulness"]["models_mean"]["mean"] != untold["with_games"]["mean"]
    rows = list(csv.DictReader((labmates.folder / "s.csv").read_text("utf-8").splitlines()))
    headlines = [(row["outcome"], row["prediction"]) for row in rows if row["headline"] == "True"]
    assert headlines == [("quality", "with games"), ("completeness", "models' mean")]
    shown = labmates("screen", "m14", *asked[:-2]).out
    assert "So the headline is the models' mean; the prediction with games comes second." in " ".join(shown.split())


def test_scripted_players_of_a_store_are_analysed_and_a_new_one_is_screened(
    labmates: Labmates,
) -> None:
    played = labmates("profile", *PLAYERS, *GAMES, "--simulations", "3", "--json")
    assert played.code == 0, played.err
    store = Store(f"sqlite:///{labmates.folder}/labmates.db")
    rng = np.random.default_rng(0)
    for place, model in enumerate(PLAYERS[:4]):
        for seed in range(6):
            value = float(np.clip(0.3 + 0.1 * place + rng.normal(0, 0.05), 0, 1))
            scores = [
                ScoreEvent(judge=judge, version="1", metric=metric, value=value, reason="so")
                for judge, metric in (
                    *(("heuristic", metric) for metric in ("accuracy", "heuristic_quality", "completeness")),
                    ("verified", "accuracy"),
                )
            ]
            ended_run(store, "paper", seed=seed, task=("anomaly", "ecology")[seed % 2], model=model, more=scores)
    store.close()
    told = labmates("analyze", "prediction", *GAMES, "--no-benchmarks", "--outcome", "accuracy", *FEW)
    assert told.code == 0, told.err
    assert "8 observations of 4 models, scored by verified" in told.out
    assert "scored by: heuristic (24 runs), verified (24 runs)" in told.out
    assert "scripted:conditional: it has a profile, but no scored lab runs" in told.out
    assert "Only 4 models for 3 coefficients per model: 1 degree of freedom" in told.out
    assert labmates("export", "--all", "--out", "all.csv").code == 0
    asked = ("analyze", "prediction", *GAMES, "--no-benchmarks", *FEW, "--json")
    [stored] = labmates(*asked, "--judge", "heuristic", "--outcome", "accuracy").records
    [exported] = labmates(
        *asked, "--outcome", "accuracy", "--judge", "heuristic", "--games", "all.csv", "--lab", "all.csv"
    ).records
    assert stored["outcomes"][0]["fits"] == exported["outcomes"][0]["fits"]
    assert {"what": "runs", "count": 30, "reason": "not a run of the science lab"} in exported["left_out"]
    assert labmates("report", "--kind", "science", "--out", "r.html").code == 0
    assert "Do the games predict better than the models" in (labmates.folder / "r.html").read_text("utf-8")
    screened = labmates(
        "screen", "scripted:conditional", *GAMES, "--no-benchmarks", "--outcome", "accuracy", "--simulations", "3"
    )
    assert screened.code == 0, screened.err
    assert "scripted:conditional in the lab, predicted from how it plays" in screened.out
    assert "Profile: 6 simulations, " in " ".join(screened.out.split())
    [one] = screen(
        ["scripted:conditional"],
        games=GAMES[1::2],
        benchmarks=False,
        outcomes=["accuracy"],
        simulations=3,
        store=f"sqlite:///{labmates.folder}/labmates.db",
    )
    assert f"{one.outcomes['accuracy'].with_games.mean:.3f}" in screened.out
    assert "verified" in screened.out
    broken = labmates(
        "screen", "scripted:garbage", *GAMES, "--no-benchmarks", "--outcome", "accuracy", "--simulations", "2"
    )
    assert broken.code == 2
    assert "the profile can't be used: scripted:garbage in " in broken.err
    again = labmates("screen", "scripted:garbage", *GAMES, "--no-benchmarks", "--outcome", "accuracy", "--stored")
    assert again.code == 2
    assert "there is no profile of scripted:garbage" in again.err or "can't be used" in again.err
    missing = labmates("screen", "scripted:conditional", *GAMES)
    assert missing.code == 2
    assert "0 models have both a profile and scored lab runs; at least 4 are needed. Left out:" in missing.err
    assert "scripted:defect: its size and benchmark scores are unknown (add them with --roster" in missing.err
    assert "ended" not in missing.err, "nothing is played for a study that can't predict"
    nowhere = labmates("analyze", "prediction", *GAMES, "--study", "pilot")
    assert nowhere.code == 2
    assert "unknown study 'pilot'" in nowhere.err
    nobody = labmates("screen", "scripted:nobody", *GAMES)
    assert nobody.code == 2
    assert "unknown scripted baseline 'nobody'" in nobody.err


def test_the_prediction_is_checked_and_forms_are_compared_by_models_left_out(labmates: Labmates, files: Path) -> None:
    with (files / "games.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["game"] in ("o-ring", "common-pool")]
    with (labmates.folder / "g.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows[:16])
    study = ("--games", "g.csv", *of(files)[2:], "--no-benchmarks", "--outcome", "quality")
    done = labmates(
        "analyze", "check", "prediction", *study, "--spec", "robust", "--spec", "paper", "--draws", "500", "--json"
    )
    assert done.code == 0, done.err
    [found] = done.records
    tables = {table["name"]: table["rows"] for table in found["tables"]}
    assert {row["form"] for row in tables["check-quality-left-out"]} == {"robust", "paper"}
    assert all(row["models"] == 8 for row in tables["check-quality-left-out"])
    assert {"check-quality-robust-cells", "check-quality-paper-priors"} <= tables.keys()
    assert "quality, robust, without openai:" in done.err
    assert len(found["verdict"]) == 2


def test_a_users_own_control_enters_the_prediction_and_the_analysed_rows(labmates: Labmates, files: Path) -> None:
    known = roster()[:20]
    lines = ["name,size,thinking,mmlu_pro,ifeval,price"]
    for place, one in enumerate(known):
        told = (one.name, one.size, "yes" if one.thinking else "no", one.mmlu_pro, one.ifeval, (place * 7) % 20)
        lines.append(",".join(map(str, told)))
    (labmates.folder / "mine.csv").write_text("\n".join(lines), "utf-8")
    own = ("--roster", "mine.csv", "--covariate", "price", "--rows-out", "rows.csv", "--outcome", "quality")
    done = labmates("analyze", "prediction", *of(files), *FEW, *own, "--json")
    assert done.code == 0, done.err
    [quality] = done.records[0]["outcomes"]
    assert quality["controls"][-1] == "covariate:price (per sd)"
    effects = {one["name"]: one for one in quality["fits"]["robust"]["parameters"]}
    assert effects["covariate:price (per sd)"]["p_holm"] is not None
    with (labmates.folder / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 300
    with (files / "games.csv").open(newline="") as file:
        levels = {(row["model"], row["game"]): float(row["mean"]) for row in csv.DictReader(file)}
    assert all(float(row["o-ring"]) == pytest.approx(levels[row["model"], "o-ring"]) for row in rows[:20])
    size = {f"openai:{one.name}": one.size for one in known}
    assert all(10 ** float(row["log(size)"]) == pytest.approx(size[row["model"]]) for row in rows[:20])
    missing = labmates("analyze", "prediction", *of(files), "--covariate", "price")
    assert missing.code == 2
    assert "no file has a column 'price'; the columns are: game, mean, error, simulations, task" in missing.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--outcome", "beauty"), "unknown outcome 'beauty'"),
        (("--judge", "beauty=x"), "unknown outcome 'beauty'"),
        (("--judge", "x"), "the judge 'x' has not scored accuracy; these have: file (300 runs)"),
        (("--judge", "x", "--judge", "y"), "--judge: two judges for all outcomes"),
        (("--game", "chess"), "no model has simulations of chess"),
        (("--variant", "temperature=1"), "--variant takes NAME=VALUE with one of framing"),
        (("--plot", "f.gif"), "ends in .png, .svg, .pdf"),
        (("--out", "f.doc"), "a table's file ends in .csv"),
        (("--roster", "none.csv"), "does not exist"),
        (("--spec", "wild"), "is not one of 'paper', 'robust', 'correlated'"),
    ],
)
def test_a_wrong_prediction_exits_with_2_and_says_why(
    labmates: Labmates, files: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = labmates("analyze", "prediction", *of(files), *arguments)
    assert done.code == 2
    assert said in done.err


def test_what_is_not_there_is_said(labmates: Labmates, files: Path) -> None:
    nothing = labmates("analyze", "prediction")
    assert nothing.code == 2
    assert "labmates.db" in nothing.err
    unknown = labmates("screen", "openai:nobody", *of(files), "--stored")
    assert unknown.code == 2
    assert "there is no profile of openai:nobody" in unknown.err
    (labmates.folder / "r.csv").write_text("name,size,thinking,mmlu_pro\nnobody,3,perhaps,40\n", "utf-8")
    wrong = labmates("analyze", "prediction", *of(files), "--roster", "r.csv")
    assert wrong.code == 2
    assert "line 2 (nobody): thinking must be yes or no, not 'perhaps'" in wrong.err
