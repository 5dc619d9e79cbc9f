"""A provider that takes no calls for hours stops its model's runs at once, loses nothing, and says when to resume."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from labmates.cli.main import run_command
from labmates.records.run import PAUSED
from labmates.records.store import Store
from labmates.workflows.protocol.verb import PAUSED_CODE
from tests.judges.conftest import answer
from tests.support.form_filler import FormFiller
from tests.support.openai_server import Answer, Json, OpenAIServer, fault, serve_model

STUDY = """
name: paused
kind: game
models: [openai:m, openai:n]
fixed: {{game: public-goods, rounds: 3, group_size: 2, groups: 1, max_output_tokens: 128}}
replicates: 4
connection: {{base_url: "{url}"}}
concurrency: {{max_concurrent_runs: 2, max_concurrent_calls: 4}}
"""


class Limited:
    """A server whose model `m` answers `calls` times and then takes none for hours, until `is_well`."""

    def __init__(self, calls: int, judges: str = "") -> None:
        self.answered: Counter[str] = Counter()
        self.refused = 0
        self.is_well = False
        self._calls = calls
        self._play = Answer(text=judges) if judges else serve_model(FormFiller(), latency=0)

    async def __call__(self, request: Json, number: int) -> Answer:
        model = request["model"]
        if model == "m" and self.answered["m"] >= self._calls and not self.is_well:
            self.refused += 1
            return fault(429, {"error": {"message": "Daily quota reached."}}, retry_after="18750")
        self.answered[model] += 1
        played = self._play if isinstance(self._play, Answer) else self._play(request, number)
        return played if isinstance(played, Answer) else await played


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def test_a_study_stops_a_paused_model_s_runs_and_goes_on_with_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limited = Limited(calls=8)  # a run and a third of the next
    store = f"sqlite:///{tmp_path}/runs.db"
    with OpenAIServer(limited) as server:
        path = tmp_path / "paused.yaml"
        path.write_text(STUDY.format(url=server.base_url))
        assert run_command(["study", "run", str(path), "--store", store]) == PAUSED_CODE
        said = capsys.readouterr()
        assert "takes no calls until 2" in said.err
        assert "UTC (5 h 13 min after the refusal): HTTP 429: Daily quota reached.\n" in said.err
        assert "Everything is kept. Resume then with the same command." in said.err
        assert "paused: openai:m" in said.out
        assert 1 <= limited.refused <= 4  # the calls in flight at the first refusal
        with Store(store) as database:
            runs = list(database.runs(study="paused"))
        ended = Counter((run.models[0], run.status) for run in runs)
        assert ended["openai:n", "completed"] == 4
        assert ended["openai:m", "failed"] == 0
        stopped = [run for run in runs if run.status == "interrupted"]
        assert 1 <= len(stopped) <= 2
        assert all(run.error and run.error.startswith(PAUSED) for run in stopped)
        assert not any(run.usage.failed_replies for run in runs)
        # The same command again asks once for each run at work, and no other run is begun.
        refused = limited.refused
        assert run_command(["study", "run", str(path), "--store", store, "--json"]) == PAUSED_CODE
        assert limited.refused - refused <= 4
        [status] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert len(status["paused"]) >= 1
        limited.is_well = True
        assert run_command(["study", "run", str(path), "--store", store]) == 0
        assert limited.answered == {"m": 24, "n": 24}  # nothing is asked twice


def test_a_run_is_interrupted_and_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    limited = Limited(calls=3)
    with OpenAIServer(limited) as server:
        common = ["--base-url", server.base_url, "--store", f"sqlite:///{tmp_path}/runs.db"]
        game = ["--game", "public-goods", "--rounds", "2", "--group-size", "2", "--groups", "1"]
        command = ["run", "game", "--model", "openai:m", *game, "--replicates", "3", "--json", *common]
        assert run_command(command) == PAUSED_CODE
        said = capsys.readouterr()
        runs = [json.loads(line) for line in said.out.splitlines()]
        assert {run["status"] for run in runs} == {"interrupted"}
        assert limited.refused <= 6
        assert "is paused: openai:m at http" in said.err
        assert "resume then with: labmates run game --resume" in said.err
        limited.is_well = True
        for run in runs:
            assert run_command(["run", "game", "--resume", run["id"], *common, "--json"]) == 0
        assert limited.answered["m"] == 12


JUDGED = """
name: judged
kind: science
models: [scripted:hasty]
judges: [openai:m]
fixed: {{task: anomaly, difficulty: easy, organisation: solo}}
replicates: 4
connection: {{base_url: "{url}"}}
concurrency: {{max_concurrent_runs: 1}}
sandbox: unsafe-local
"""


def test_a_paused_judge_stops_a_study_and_its_runs_are_judged_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limited = Limited(calls=1, judges=answer())
    store = f"sqlite:///{tmp_path}/runs.db"

    def outcomes() -> dict[str, tuple[str, bool]]:
        """Status of each run that was begun, and whether the model judged it."""
        with Store(store) as database:
            runs = {run.id: run.status for run in database.runs(study="judged")}
            scores = {run: database.scores(run) for run in runs}
        assert not any(score.failed for of_run in scores.values() for score in of_run)
        return {run: (runs[run], any("openai:m" in each.judge for each in of)) for run, of in scores.items()}

    with OpenAIServer(limited) as server:
        path = tmp_path / "judged.yaml"
        path.write_text(JUDGED.format(url=server.base_url))
        assert run_command(["study", "run", str(path), "--store", store]) == PAUSED_CODE
        assert "takes no calls until 2" in capsys.readouterr().err
        assert limited.refused == 1  # nothing is begun that can't be judged
        first = outcomes()
        assert sorted(first.values()) == [("completed", True), ("interrupted", False)]
        ended = min(first, key=lambda run: first[run])
        command = ["judge", ended, "--judge", "openai:m", "--again", "--base-url", server.base_url, "--store", store]
        assert run_command(command) == PAUSED_CODE
        assert "was not judged: openai:m at http" in capsys.readouterr().err
        limited.is_well = True
        assert run_command(["study", "run", str(path), "--store", store]) == 0
        assert list(outcomes().values()) == [("completed", True)] * 4
        assert run_command(command) == 0
