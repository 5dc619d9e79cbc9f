from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.command_line import Labmates

GOOD = ["--task", "anomaly", "--model", "scripted:silent"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--task", "alchemy", "--model", "scripted:silent"], "unknown task 'alchemy'"),
        (["--task", "ecologie", "--model", "scripted:silent"], "Did you mean 'ecology'"),
        (["--task", "anomaly", "--model", "scripted:dilligent"], "Did you mean 'diligent'"),
        (["--task", "anomaly", "--model", "gpt-5"], "has no provider"),
        (["--task", "anomaly", "--model", "nobody:gpt-5"], "unknown model provider 'nobody'"),
        (["--task", "anomaly", "--model", "openai:"], "no usable name"),
        (["--task", "anomaly", "--model", "openai:gpt-5"], "OPENAI_API_KEY"),
        (["--task", "anomaly"], "missing: --model"),
        ([*GOOD, "--visibility", "everything"], "'full', 'team', 'hidden'"),
        ([*GOOD, "--budget", "-1"], "--budget"),
        ([*GOOD, "--budget", "0"], "--budget: a pool of $0 can't pay for a call"),
        ([*GOOD, "--model", "scripted:hasty"], "--model is given 2 times; it takes one value"),
        ([*GOOD, "--base-url", "http://a/v1", "--base-url", "http://b/v1"], "--base-url is given 2 times"),
        ([*GOOD, "--model-for", "data=scripted:hasty", "--model-for", "data=a:b"], "--model-for: data is repeated"),
        ([*GOOD, "--budget", "much"], "not a dollar amount"),
        ([*GOOD, "--budget", "nan"], "not a dollar amount"),
        ([*GOOD, "--team-size", "4"], "--team-size: the largest team of pipeline has 3 seats"),
        ([*GOOD, "--team-size", "two"], "--team-size"),
        ([*GOOD, "--difficulty", "insane"], "'easy', 'medium', 'hard'"),
        ([*GOOD, "--model-for", "kitchen=scripted:silent"], "unknown team or seat 'kitchen'. Teams: data"),
        ([*GOOD, "--model-for", "writing"], "NAME=VALUE"),
        ([*GOOD, "--model-for", "writing=scripted:nobody"], "unknown scripted baseline 'nobody'"),
        ([*GOOD, "--prices", "/nowhere.json"], "can't read the price list"),
        ([*GOOD, "--prices", "input=x"], "price list"),
        ([*GOOD, "--replicates", "0"], "--replicates"),
        ([*GOOD, "--seed", "-3"], "--seed"),
        ([*GOOD, "--seed", "9" * 20], "seed must be from 0 to"),
        ([*GOOD, "--replicates", "9" * 20], "replicates must be from 1 to"),
        ([*GOOD, "--sandbox", "prison"], "unknown sandbox 'prison'"),
        ([*GOOD, "--store", "nonsense"], "is not the URL of a store"),
        ([*GOOD, "--store", "sqlite:////proc/nowhere/runs.db"], "runs.db': there is no folder '/proc/nowhere'"),
        (["--task", "anomaly", "--model", "openai:m", "--base-url", "ftp://here"], "http"),
        ([*GOOD, "--budgte", "1"], "--budgte"),
        (["--resume", "nope"], "does not exist yet"),
    ],
)
def test_wrong_input_is_told_clearly_and_exits_with_2(labmates: Labmates, arguments: list[str], says: str) -> None:
    done = labmates("run", "science", *arguments)
    assert done.code == 2
    assert says in " ".join(done.err.split())
    assert done.out == ""


def test_a_base_url_where_nothing_listens_exits_with_2(labmates: Labmates) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    done = labmates("run", "science", "--task", "anomaly", "--model", "openai:m", "--base-url", url)
    assert done.code == 2
    assert "can't reach" in done.err
    assert str(port) in done.err


def test_an_unknown_verb_kind_task_model_and_run_exit_with_2(labmates: Labmates, tmp_path: Path) -> None:
    for arguments, says in [
        (["dance"], "dance"),
        (["run", "opera"], "opera"),
        (["run", "gmae"], "Did you mean 'game'?"),
        (["analyze", "turnament"], "Did you mean 'tournament'?"),
        (["analyze", "check", "predictoin"], "Did you mean 'prediction'?"),
        (["tasks", "show", "alchemy"], "unknown task"),
        (["models", "show", "gpt-0"], "unknown model"),
        (["show", "nope"], "does not exist yet"),
    ]:
        done = labmates(*arguments)
        assert done.code == 2
        assert says in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_for_reports_that_can_not_be_made_exits_with_2_before_anything_runs(labmates: Labmates) -> None:
    done = labmates("demo", "--reports", "/proc/nowhere")
    assert done.code == 2
    assert "can't write reports to '/proc/nowhere'" in done.err
    assert done.out == ""


def test_a_key_in_the_environment_is_never_shown(labmates: Labmates) -> None:
    key = "sk-very-secret-0123456789abcdef"
    done = labmates.process(
        "run", "science", "--task", "anomaly", "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1", "-vv",
        environment={"OPENAI_API_KEY": key},
    )  # fmt: skip
    assert done.code == 2
    assert key not in done.err
    assert key not in done.out


@pytest.mark.parametrize(("option", "value"), [("--max-concurrent-calls", "-1"), ("--call-timeout", "0")])
def test_a_wrong_setting_of_models_is_named_by_its_own_option(labmates: Labmates, option: str, value: str) -> None:
    done = labmates("run", "game", "--game", "o-ring", "--model", "scripted:random", option, value)
    assert done.code == 2
    assert f"{option}: " in done.err
    assert "--models:" not in done.err


FOREIGN = (
    "Input should",
    "Field required",
    "Extra inputs",
    "Value error",
    "Errno",
    "codec",
    "validation error",
    "<class",
)
FILES = {
    "empty.yaml": b"",
    "list.yaml": b"- 1\n",
    "binary.yaml": b"\xff\xfe",
    "cell.yaml": b"kind: science\nmodels: {a: 1}\ngrid: 3\nreplicates: many\nnope: 1\nconnection: {batch: maybe}\n",
    "inner.yaml": b"kind: game\nmodels: [scripted:random]\nfixed: {game: o-ring, rules: 3}\ngrid: {rounds: x}\n",
    "org.yaml": b"name: x\nsize: x\nflow: 3\nteams: {a: {seats: many, nope: 1}}\n",
    "payoffs.json": b'{"models": 3}',
    "half.json": b"{",
    "prices.json": b'{"a": 3}',
    "models.yml": b"cheap: {provider: openai, model: 3, temperature: hot}\n",
    "answers.yaml": b"x: 3\n",
    "table.csv": b"a,b\n1,2\n",
    "game.yaml": b"payoffs: 3\nactions: [a]\n",
}
SCIENCE = "run science --task anomaly --model scripted:silent"
GAME = "run game --game o-ring --model scripted:random"
DILEMMA = "run dilemma --game prisoners --models scripted:random,scripted:defect"
TOURNAMENT = "run tournament --model scripted:random --structure sa"
WRONG = [
    *(f"{verb} {name}" for verb in ("study run", "study plan", "organisations check") for name in FILES),
    *(f"analyze ratings --payoffs {name}" for name in (*FILES, "none.json")),
    *(f"{GAME} --models-file {name}" for name in ("list.yaml", "binary.yaml", "models.yml", "none.yaml")),
    *(f"{GAME} --prices {name}" for name in ("binary.yaml", "half.json", "prices.json", "none.json")),
    *(f"{GAME} {more}" for more in ("--rounds x", "--rounds 1.5", "--rounds -1", "--group-size 9999", "--rule nope=1")),
    *(f"{GAME} {more}" for more in ("--temperature hot", "--rule 3", "--call-timeout nan", "--store .")),
    *(f"{SCIENCE} {more}" for more in ("--organisation org.yaml", "--organisation .", "--evidence x", "--team-size 0")),
    *(f"{SCIENCE} {more}" for more in ("--max-turns x", "--code-timeout -1", "--context-tokens 5", "--judge nope")),
    *(f"{DILEMMA} --mechanism {name}" for name in ("nope", "repetition(", "repetition(rounds=x)")),
    *(f"{TOURNAMENT} {more}" for more in ("--teams x", "--noise 2", "--continuation x", "--team-size x", "--rounds 0")),
    *(f"tasks new x --csv table.csv --answers {name}" for name in ("answers.yaml", "binary.yaml", "none.yaml")),
    *(f"tasks score ecology {name} --seed 1" for name in ("binary.yaml", "none.md")),
    *("dilemmas show game.yaml", "dilemmas show binary.yaml", "tasks check none.py:X", "models check nope:x"),
    "worker nope",
    *("show last --store list.yaml", "runs --status x", "runs --sort x", "report --out x.txt"),
    *("store copy none.db x.db", f"{GAME} --store list.yaml", f"{DILEMMA} --mechanism reputation(order=9)"),
]  # fmt: skip


@pytest.mark.slow("tests/test_errors.py")
def test_a_hundred_wrong_inputs_are_told_in_our_words(labmates: Labmates) -> None:
    assert len(WRONG) > 100
    for name, content in FILES.items():
        (labmates.folder / name).write_bytes(content)
    answers = {command: labmates(*command.split()) for command in WRONG}
    assert {command: done.out for command, done in answers.items() if done.code != 2 or not done.err.strip()} == {}
    assert {command: done.err for command, done in answers.items() if any(map(done.err.__contains__, FOREIGN))} == {}
