from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.support.command_line import Labmates
from tests.support.openai_server import Answer, Json, OpenAIServer, fault

CHICKEN = """
name: chicken
actions: [swerve, straight]
payoffs: {swerve swerve: [3, 3], swerve straight: [2, 4], straight swerve: [4, 2], straight straight: [0, 0]}
"""


def test_mechanisms_are_listed_shown_and_checked(labmates: Labmates) -> None:
    assert [one["name"] for one in labmates("mechanisms", "--json").records] == [
        "cheap-talk",
        "contract",
        "correlation",
        "gifting",
        "mediation",
        "none",
        "repetition",
        "reputation",
        "stackelberg",
    ]
    shown = labmates("mechanisms", "show", "contract", "--term", "proposals=once", "--game", "public-goods").out
    assert "the other players pay it in equal parts" in shown
    assert "Calls in public-goods: 9 in each match, and 1 for each model and seat." in shown
    shown = labmates("mechanisms", "show", "stackelberg").out
    assert "Cooperation in prisoners is not an equilibrium under it alone." in shown
    [found] = labmates("mechanisms", "show", "contract+repetition", "--term", "rounds=4", "--json").records
    assert found["calls"] == {"per_match": 14, "per_model_and_seat": 0}
    checked = labmates("mechanisms", "check", "mediation", "--game", "prisoners")
    assert (checked.code, checked.out) == (0, "mediation: no problems.\n")


def test_dilemmas_are_listed_and_shown(labmates: Labmates, tmp_path: Path) -> None:
    assert len(labmates("dilemmas").out.splitlines()) == 6
    shown = labmates("dilemmas", "show", "trust").out
    assert "Better for all than D D: C C" in shown
    assert "C of player 2 (strictly, by D); then C of player 1 (strictly, by D)" in shown
    path = tmp_path / "chicken.yaml"
    path.write_text(CHICKEN)
    [found] = labmates("dilemmas", "show", str(path), "--json").records
    assert found["equilibria"] == ["swerve straight", "straight swerve"]
    assert found["dilemma"] is None


@pytest.mark.slow("tests/workflows/dilemmas")
def test_a_cross_play_is_run_rated_and_told(labmates: Labmates, tmp_path: Path) -> None:
    path = tmp_path / "chicken.yaml"
    path.write_text(CHICKEN)
    models = ("--models", "scripted:random,scripted:cooperate", "--models", "scripted:defect")
    for game, mechanism in (("prisoners", "contract"), (str(path), "mediation"), ("prisoners", "reputation")):
        terms = ("--term", "rounds=3", "--term", "order=3") if mechanism == "reputation" else ()
        done = labmates("run", "dilemma", "--game", game, "--mechanism", mechanism, *models, *terms, "--json")
        assert done.code == 0, done.err
    [run] = done.records
    assert run["condition"]["terms"]["order"] == 3
    assert run["models"] == ["scripted:random", "scripted:cooperate", "scripted:defect"]
    rated = labmates("analyze", "ratings", "--json").records
    assert list(dict.fromkeys((one["game"], one["mechanism"]) for one in rated)) == [
        ("prisoners", "contract"),
        ("chicken", "mediation"),
        ("prisoners", "reputation+"),
    ]
    assert len(labmates("analyze", "ratings", "--use", "sampled", "--json").records) == 9
    assert labmates("analyze", "ratings", run["id"], "--summary").code == 0
    told = labmates("analyze", "dilemmas", "--plots", "figures")
    assert "Outcomes of votes" in told.out
    one = labmates("analyze", "dilemmas", "--plot", "one.png")
    assert "Not drawn: " in one.err
    assert f"draws all {told.err.count('Drawn to')} figures" in one.err
    assert (labmates.folder / "figures" / "payoffs-chicken-mediation.png").exists()
    assert "matches" not in {row["table"] for row in labmates("analyze", "dilemmas", "--json").records}
    labmates("analyze", "dilemmas", "--table", "matches", "--out", "matches.csv")
    with (labmates.folder / "matches.csv").open(encoding="utf-8") as file:
        assert {"match", "seat", "model", "action", "payoff"} <= {*next(csv.reader(file))}
    rows = labmates("analyze", "dilemmas", "--table", "designs", "--json").records
    assert {one["table"] for one in rows} == {"designs"}
    shown = labmates("show", run["id"])
    assert shown.code == 0, shown.err
    # A model plays against itself, and its seats are told apart.
    choices = [line for line in shown.out.splitlines() if line.startswith("scripted:defect at all/1/1/choose/")]
    assert len(choices) == len(set(choices)) > 1


def test_models_over_http_have_their_own_settings_and_are_shown_their_faults(labmates: Labmates) -> None:
    def behave(request: Json, n: int) -> Answer:
        said = 'A1 is never worse, so I take it.\n```json\n{"A0": 10, "A1": 90}\n```'
        return Answer(text=said, finish="length" if n == 0 else "stop")

    with OpenAIServer(behave) as server:
        done = labmates(
            "run", "dilemma", "--game", "prisoners", "--models", "openai:m?temperature=0.25&reasoning=none,openai:m",
            "--temperature", "1.0", "--base-url", server.base_url, "--max-concurrent-calls", "1", "--json",
            OPENAI_API_KEY="sk-0123456789",
        )  # fmt: skip
    assert done.code == 0, done.err
    [run] = done.records
    assert run["metrics"]["normalised"] == pytest.approx(0.1)
    assert run["usage"]["llm_calls"] == 9
    assert run["usage"]["failed_replies"] > 0
    temperatures = [request.body["temperature"] for request in server.requests]
    assert sorted(set(temperatures)) == [0.25, 1.0]
    # A cut reply is not sent back: its request is made again, with what was wrong at its end.
    [again] = [body for request in server.requests if "cut off" in (body := request.body["messages"])[-1]["content"]]
    assert len(again) == 2
    asked = server.requests[0].body["messages"]
    assert "prisoner" not in json.dumps(asked).lower()


def test_a_run_whose_server_dies_goes_on_with_the_calls_that_are_missing(labmates: Labmates) -> None:
    def behave(request: Json, n: int) -> Answer:
        return Answer(text='{"A0": 100, "A1": 0}') if n < limit[0] else fault(500, "gone")

    limit = [9]
    condition = ("--game", "prisoners", "--mechanism", "repetition", "--term", "rounds=4", "--models", "openai:m")
    with OpenAIServer(behave) as server:
        at = ("--base-url", server.base_url, "--max-retries", "0", "--max-concurrent-calls", "1", "--json")
        models = ("--models", "scripted:tit-for-tat")
        done = labmates("run", "dilemma", *condition, *models, *at, OPENAI_API_KEY="sk-0123456789")
        assert done.code == 1
        [run] = done.records
        before = len(server.requests)
        limit[0] = 1000
        done = labmates("run", "dilemma", "--resume", run["id"], *at, OPENAI_API_KEY="sk-0123456789")
    assert done.code == 0, done.err
    [again] = done.records
    assert again["metrics"]["normalised"] == pytest.approx(1)
    assert again["usage"]["llm_calls"] == 32
    assert len(server.requests) - before == 16 - 9


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("mechanisms", "show", "telepathy"), "unknown mechanism 'telepathy'"),
        (("mechanisms", "show", "repetition", "--term", "rounds"), "--term takes NAME=VALUE"),
        (("mechanisms", "show", "repetition", "--term", "rounds=0"), "rounds"),
        (("dilemmas", "show", "prisoner"), "Did you mean 'prisoners'"),
        (("dilemmas", "show", "nothing.yaml"), "can't be read"),
        (("run", "dilemma", "--game", "prisoners"), "--entrants"),
        (
            ("run", "dilemma", "--game", "prisoners", "--entrant", "scripted:grim?temperature=9"),
            "labmates: --models: must be at most 2, not '9'\n",
        ),
        (("run", "dilemma", "--game", "chess", "--models", "scripted:grim"), "unknown dilemma 'chess'"),
        (("run", "dilemma", "--game", "prisoners", "--models", "scripted:grim?heat=1"), "heat"),
        (("analyze", "ratings"), "does not exist yet"),
    ],
)
def test_wrong_input_exits_with_2(labmates: Labmates, arguments: tuple[str, ...], said: str) -> None:
    done = labmates(*arguments)
    assert done.code == 2
    assert said in done.err
    assert done.out == ""
