from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from labmates.errors import UsageError
from tests.support.puppet import dutiful, puppet

ROOT = Path(__file__).parents[2]


def exported() -> object:
    """Load the graph as the LangGraph server does: by file and name."""
    entry = json.loads((ROOT / "langgraph.json").read_text())["graphs"]["science"]["path"]
    path, name = entry.split(":")
    spec = importlib.util.spec_from_file_location("exported", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["exported"] = module
    spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.mark.needs("bubblewrap")
async def test_the_exported_graph_runs_a_lab_from_plain_data_without_a_checkpointer() -> None:
    graph: object = exported()
    assert graph.checkpointer is None  # type: ignore[attr-defined]
    with puppet(dutiful) as model:
        condition = {"task": "anomaly", "difficulty": "easy", "model": model}
        result = await graph.ainvoke({"condition": condition, "seed": 3})  # type: ignore[attr-defined]
    assert result["status"] == "completed"
    assert set(result["artifacts"]) >= {"dataset_description", "final_paper"}


def test_the_lab_s_teams_show_in_the_drawing() -> None:
    drawing = exported().get_graph(xray=True).draw_mermaid()  # type: ignore[attr-defined]
    for name in ("data_lead", "ml_engineer", "deliberate", "lead_author"):
        assert name in drawing


async def test_a_wrong_condition_is_told() -> None:
    with pytest.raises(UsageError, match="task"):
        await exported().ainvoke({"condition": {"model": "scripted:silent"}})  # type: ignore[attr-defined]
