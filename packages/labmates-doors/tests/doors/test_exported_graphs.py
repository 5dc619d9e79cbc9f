"""Every graph in ``langgraph.json``, loaded as LangGraph's server does: by file and name."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from langgraph.checkpoint.memory import InMemorySaver

from labmates.errors import UsageError
from labmates.models.scripted.base import Draft, Heard
from labmates.workflows.protocol.experiment import EXPERIMENTS
from labmates_doors.studio import studio_graph
from tests.support.approving import LAB, improving
from tests.support.interrupting import CODE, working
from tests.support.plugins import ROOT
from tests.support.puppet import puppet

EXPORTED = json.loads((ROOT / "langgraph.json").read_text())["graphs"]
CONDITIONS: dict[str, dict[str, Any]] = {
    "science": {"task": "anomaly", "difficulty": "easy", "model": "scripted:hasty"},
    "game": {"game": "weakest-link", "model": "scripted:cooperate", "group_size": 3},
    "dilemma": {"game": "prisoners", "mechanism": "repetition(rounds=2)", "entrants": ["scripted:grim"]},
    "tournament": {"structure": "gc", "model": "scripted:grim", "rounds": 2, "critique_turns": 0},
}
DRAWN = {
    "science": ("data_lead", "ml_engineer", "talk", "lead_author"),
    "game": ("deliberate", "decide", "sanction", "settle"),
    "dilemma": ("prepare", "match", "ask"),
    "tournament": ("pairing", "round start", "plan", "critique", "improve", "moves", "payoffs", "comprehension"),
}
HOLDS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "science": lambda ended: (
        ended["status"] == "completed"
        and ended["artifacts"].keys() >= {"dataset_description", "final_paper"}
        and "completeness" in ended["metrics"]
    ),
    "game": lambda ended: ended["metrics"]["level"] == 10 and len(ended["decisions"]) == 18,
    "dilemma": lambda ended: ended["metrics"]["cooperation_rate"] == 1 and len(ended["decisions"]) > 0,
    "tournament": lambda ended: ended["metrics"]["cooperation"] == 1 and len(ended["decisions"]) > 0,
}
"""What is true of the end of a run of `CONDITIONS`."""


def load(name: str) -> Any:
    path, _, attribute = EXPORTED[name]["path"].partition(":")
    spec = importlib.util.spec_from_file_location(f"exported_{name}", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return vars(module)[attribute]


def test_langgraph_s_own_command_line_finds_no_fault_with_the_file() -> None:
    langgraph = Path(sys.executable).with_name("langgraph")
    done = subprocess.run([langgraph, "validate"], cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_experiment_is_exported() -> None:
    assert set(EXPORTED) == set(EXPERIMENTS.names())


@pytest.mark.parametrize("name", CONDITIONS)
async def test_an_exported_graph_has_its_name_draws_its_inner_graph_and_runs(name: str) -> None:
    graph = load(name)
    assert graph.name == name
    assert graph.checkpointer is None
    drawing = graph.get_graph(xray=True).draw_mermaid()
    for node in DRAWN[name]:
        assert node in drawing
    assert set(graph.get_input_jsonschema()["properties"]) == {"condition", "seed"}
    assert "metrics" in graph.get_output_jsonschema()["properties"]
    with blockbuster_ctx("labmates"):  # what LangGraph's server has: whatever blocks its event loop raises
        result = await graph.ainvoke({"condition": CONDITIONS[name], "seed": 1})
    assert HOLDS[name](result), result


@pytest.mark.parametrize("organisation", ["approving", "asking"])
async def test_what_a_person_has_to_approve_is_approved_in_an_exported_graph(tmp_path: Path, organisation: str) -> None:
    (tmp_path / "asking.py").write_text(CODE)
    calls = list[str]()

    def play(heard: Heard) -> Draft:
        calls.append(repr(heard.messages))
        return improving(heard) if organisation == "approving" else working(heard)

    with puppet(play) as model:
        own = {**LAB, "approve": ["plan"]} if organisation == "approving" else f"{tmp_path}/asking.py:each"
        values = {"task": "anomaly", "difficulty": "easy", "model": model, "organisation": own}
        graph = load("science").copy({"checkpointer": InMemorySaver()})
        state = await graph.ainvoke({"condition": values, "seed": 1}, {"configurable": {"thread_id": "1"}})
    assert state["status"] == "completed"
    assert "final_paper" in state["artifacts"]
    assert "__interrupt__" not in state
    assert len(calls) == len(set(calls))  # none was made again


@pytest.mark.parametrize("name", CONDITIONS)
async def test_a_wrong_condition_is_told(name: str) -> None:
    with pytest.raises(UsageError, match="no_such_parameter"):
        await load(name).ainvoke({"condition": {**CONDITIONS[name], "no_such_parameter": 1}})


async def test_the_graph_for_studio_runs_any_organisation() -> None:
    condition = {"task": "anomaly", "difficulty": "easy", "model": "scripted:silent", "solo": True}
    result = await studio_graph("science").ainvoke({"condition": condition, "seed": 3})
    assert result["status"] == "completed"
    assert set(result["artifacts"]) == {"final_paper"}
