"""Each experiment with a real language model, and its replay.

The model is too small to play well, so its server holds what it says to a schema, and what it decides does not matter:
what is tested is that real replies pass from the server through the experiment into the record, and follow from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import labmates
from labmates import condition_types as types
from labmates.studies.result import Run
from tests.support.small_model import SMOLLM2, served

pytestmark = pytest.mark.needs("gguf")

MODEL = f"{SMOLLM2}&temperature=0"
CODE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"const": "run_code"},
        "arguments": {
            "type": "object",
            "properties": {"code": {"type": "string", "pattern": r"^print\(df\.[a-z]{3,8}\)$"}},
            "required": ["code"],
        },
    },
    "required": ["name", "arguments"],
}
"""A call of ``run_code``: the chat template of this model shows it no tools."""
PATIENT = {"models": {"call_timeout": 3000.0}}
"""No machine is so busy that a short reply takes as long."""
BRIEF = {"structured": True, "repair_turns": 0, "max_output_tokens": 64}


@pytest.fixture(scope="module", autouse=True)
def running() -> Iterator[None]:
    """Keep one server for all tests."""
    with served(MODEL):
        yield


@pytest.fixture
def play(tmp_path: Path) -> Any:
    """Play a run, replay it, and return it."""

    def played(kind: str, **condition: Any) -> Run:
        store = str(tmp_path / "runs.db")
        [run] = labmates.run(types.Kind(kind), store=store, settings=PATIENT, **condition)
        assert (run.status, run.usage.bill, run.usage.uncertain_attempts) == ("completed", "0", 0)
        assert labmates.replay(run.id, store=store).is_same
        return run

    return played


@pytest.mark.slow("tests/workflows/games")
def test_a_game(play: Any) -> None:
    run = play("game", game="common-pool", model=MODEL, groups=1, group_size=2, rounds=1, **BRIEF)
    assert (run.usage.llm_calls, run.metrics["failed_decision_rate"]) == (2, 0)


def test_a_dilemma(play: Any) -> None:
    run = play("dilemma", game="prisoners", entrants=[MODEL], reasoning="none", **BRIEF)
    assert run.usage.llm_calls == 2


@pytest.mark.slow("tests/workflows/tournament")
def test_a_tournament(play: Any) -> None:
    run = play(
        "tournament",
        structure="ri",
        model=MODEL,
        teams=1,
        team_size=2,
        rounds=2,
        critique_turns=0,
        comprehension="skipped",
        **BRIEF,
    )
    assert run.usage.llm_calls == 2
    assert run.metrics["rounds"] == 1


@pytest.mark.slow("packages/labmates-populations/tests")
def test_writing_strategies(play: Any) -> None:
    run = play(
        "strategies",
        model=MODEL,
        game="public-goods",
        attitude="collective",
        number=1,
        implementations=1,
        repair_turns=0,
        max_output_tokens=96,
    )
    assert run.usage.llm_calls >= 1
    assert run.usage.output_tokens > 20


@pytest.mark.slow("tests/workflows/science/test_science_lab.py")
def test_the_lab_with_code_that_the_model_writes(play: Any) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "call", "schema": CODE}}
    run = play(
        "science",
        task="anomaly",
        difficulty="easy",
        # Of all organisations the one with the fewest calls: one reply of work, and one for the report.
        organisation="independent",
        team_size=2,
        model=f"{MODEL}&response_format={quote(json.dumps(schema))}",
        budget="0.05",
        max_turns=1,
        max_output_tokens=64,
        repair_turns=0,
    )
    calls = [event for event in run.events if event.type == "tool_call"]
    assert (run.usage.llm_calls, run.usage.failed_replies) == (4, 2)
    assert [(event.tool, event.ok) for event in calls] == [("run_code", True)] * 2
    assert run.metrics["accuracy"] == 0
