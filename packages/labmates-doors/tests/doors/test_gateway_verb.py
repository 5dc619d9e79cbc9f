from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.command_line import Labmates
from tests.support.openai_server import Answer, OpenAIServer

BUDGET = ("gateway", "--budget", "0.05", "--seat", "alice", "--seat", "bob=0.01")
ASKED = {"model": "m", "messages": [{"role": "user", "content": "What is a pool?"}], "max_tokens": 500}


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LABMATES")}
    command = [sys.executable, "-m", "labmates.cli.main", *arguments, "--port", "0"]
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(url: str, path: str, body: Any = None, key: str = "") -> dict[str, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    headers = {"Authorization": f"Bearer {key}"}
    connection.request("POST" if body else "GET", path, json.dumps(body) if body else None, headers)
    found: dict[str, Any] = json.loads(connection.getresponse().read())
    connection.close()
    return found


@pytest.mark.slow("packages/labmates-doors/tests/doors/gateway")
def test_the_gateway_serves_until_ctrl_c_and_resumes_its_run(labmates: Labmates) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 100, "total_tokens": 110}
    with OpenAIServer(Answer(text="money", usage=usage)) as server:
        upstream = f"openai:m?base_url={server.base_url}"
        options = ("--upstream", upstream, "--prices", "input=1,output=10", "--json")
        with started(labmates.folder, *BUDGET, *options) as first:
            assert first.stdout is not None
            said = json.loads(first.stdout.readline())
            assert said.keys() == {"url", "keys"}
            assert said["keys"].keys() == {"alice", "bob"}
            reply = ask(said["url"], "/v1/chat/completions", ASKED, said["keys"]["alice"])
            assert reply["choices"][0]["message"]["content"] == "money"
            assert ask(said["url"], "/budget")["spent"] == "0.00101"
            first.send_signal(signal.SIGINT)
            _, err = first.communicate(timeout=60)
            assert first.returncode == 0
        [text, run] = err.strip().split(" Run: ")
        assert "Budget: $0.0010 of $0.0500 spent" in text
        with started(labmates.folder, "gateway", "--json", "--resume", run) as second:
            assert second.stdout is not None
            again = json.loads(second.stdout.readline())
            budget = ask(again["url"], "/budget")
            wrong = labmates(*BUDGET, *options, "--resume", run)
    assert again["keys"] == said["keys"]
    assert (budget["spent"], budget["seats"]["alice"]["spent"]) == ("0.00101", "0.00101")
    assert wrong.code == 2
    assert "goes on" in wrong.err
    shown = labmates("show", run)
    assert "money" in shown.out
    assert said["keys"]["alice"] not in (labmates.folder / "labmates.db").read_bytes().decode("latin-1")


def test_people_are_told_what_to_set_for_each_seat(labmates: Labmates) -> None:
    options = ("--upstream", "openai:m?base_url=http://127.0.0.1:1/v1", "--prices", "input=1,output=10")
    with started(labmates.folder, *BUDGET, *options) as gateway:
        assert gateway.stdout is not None
        lines = [gateway.stdout.readline() for _ in range(8)]
    text = "".join(lines)
    assert "Budget: $0.0000 of $0.0500 spent" in text
    assert "alice: OPENAI_BASE_URL=http://127.0.0.1:" in text
    assert "bob: ANTHROPIC_BASE_URL=http://127.0.0.1:" in text
    assert "--resume" in text


MODEL = ("--upstream", "openai:gpt-5.4-mini")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--budget", "abc", "--seat", "a", *MODEL), "--budget: 'abc' is"),
        (("--budget", "-1", "--seat", "a", *MODEL), "--budget: '-1' is"),
        (("--budget", "0", "--seat", "a", *MODEL), "--budget: a pool of $0 can't pay for a call (try 0.50)"),
        (("--budget", "1", "--seat", "a=0", *MODEL), "--seat: a limit of $0 lets a make no call (try a=0.50)"),
        (
            ("--budget", "1", "--seat", "a=1", "--seat", "b=1.50", *MODEL),
            "--seat: the limit of b, $1.5, exceeds the pool of $1; give at most 1, or no limit",
        ),
        (("--budget", "1", *MODEL), "--seat is missing: name at least one"),
        (("--budget", "1", "--seat", "a"), "--upstream is missing: name at least one"),
        (("--budget", "1", "--seat", "a", "--seat", "a", *MODEL), "--seat: 'a' is not a new name"),
        (("--budget", "1", "--seat", "a=x", *MODEL), "--seat a: 'x' is"),
        (("--budget", "1", "--seat", "a", "--upstream", "gpt"), "model 'gpt' has no provider"),
        (("--budget", "1", "--seat", "a", "--upstream", "scripted:nobody"), "nobody"),
        (("--budget", "1", "--seat", "a", "--upstream", "openai:m?top_p=0.9"), "remove 'top_p=0.9'"),
        (("--budget", "1", "--seat", "a", "--upstream", "openai:no-such-model"), "the price of 'openai:no-such-model'"),
        (("--budget", "1", "--seat", "a", *MODEL, *MODEL), "two models are called 'gpt-5.4-mini'"),
        (("--budget", "1", "--seat", "a", *MODEL, "--prices", "input"), "can't read the price list 'input'"),
        (("--budget", "1", "--seat", "a", *MODEL, "--host", "0.0.0.0"), "the gateway listens on this machine alone"),
        (("--budget", "1", "--seat", "a", *MODEL, "--store", "sqlite:///no/such/folder/x.db"), "no/such/folder"),
        (("--budget", "1", "--seat", "a", *MODEL, "--resume", "nothing"), "does not exist yet"),
    ],
)
def test_wrong_options_are_told_before_anything_listens(
    labmates: Labmates, arguments: tuple[str, ...], message: str
) -> None:
    done = labmates("gateway", *arguments, OPENAI_API_KEY="sk-test")
    assert done.code == 2
    assert message in done.err.replace("\n", " ")
