from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from labmates.models.orders import Order
from labmates.models.scripted import BASELINES
from labmates.tasks.base import accuracy
from labmates.tasks.findings import read_findings
from labmates_plugin_example.baseline import CODE, Kineticist
from labmates_plugin_example.task import InhibitorsFindings, InhibitorsTask

RUN_CODE: dict[str, Any] = {"type": "function", "function": {"name": "run_code", "parameters": {}}}
SYSTEM = Order("science", {"agent": "data_lead", "team": "data", "parts": {"data_lead": "leads"}}, "You lead.").system()


def order(text: str, **facts: Any) -> BaseMessage:
    return Order("science", facts, text).human()


def test_labmates_finds_the_baseline_by_its_entry_point() -> None:
    assert isinstance(BASELINES.get("kineticist")(), Kineticist)


def printed_by_the_code(capsys: pytest.CaptureFixture[str], seed: int = 0) -> str:
    exec(CODE, {"df": InhibitorsTask().generate(seed).frame, "__name__": "sandbox"})  # noqa: S102
    return capsys.readouterr().out


def test_its_analysis_finds_nearly_all_of_the_truth(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed_by_the_code(capsys, seed=3).removeprefix("RESULT "))["findings"]
    task = InhibitorsTask()
    assert accuracy(task.score(InhibitorsFindings.model_validate(found), task.generate(3).truth)) > 0.8


def test_it_runs_its_code_and_then_reports(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [SYSTEM, order("Fit.", step="work", task="fit")]
    first = Kineticist().invoke(asked, tools=[RUN_CODE])
    [made] = first.tool_calls
    assert made["name"] == "run_code"
    answer = ToolMessage(printed_by_the_code(capsys), tool_call_id=made["id"])
    [then] = Kineticist().invoke([*asked, AIMessage("", tool_calls=[made]), answer], tools=[RUN_CODE]).tool_calls
    assert then["name"] == "mark_complete"
    assert "Michaelis constant" in then["args"]["summary"]


def test_what_it_writes_has_the_sections_and_the_findings(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"## Material: what the members reported\n=== data_lead ===\nPrinted:\n{printed_by_the_code(capsys)}\n"
    asked = order(text, step="write", artifact="final_paper", sections=["Abstract", "Results"])
    [written] = Kineticist().invoke([SYSTEM, asked]).tool_calls
    text = written["args"]["content"]
    assert "## Abstract" in text
    assert "## Results" in text
    assert read_findings(text, InhibitorsFindings).findings is not None
