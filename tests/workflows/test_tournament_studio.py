from __future__ import annotations

import pytest

from labmates.errors import UsageError
from labmates.workflows.tournament import studio
from labmates.workflows.tournament.match import match_graph


async def test_the_exported_graph_plays_a_tournament_from_plain_data_without_a_checkpointer() -> None:
    assert studio.graph.checkpointer is None
    condition = {"structure": "gc", "model": "scripted:tit-for-tat", "rounds": 2, "critique_turns": 0}
    result = await studio.graph.ainvoke({"condition": condition, "seed": 3})
    assert result["metrics"]["cooperation"] == 1
    assert len(result["matches"]) == 9


def test_the_drawing_shows_match_planning_and_moves() -> None:
    drawing = studio.TOURNAMENT.get_graph(xray=True).draw_mermaid()
    for name in ("pairing", "round start", "plan", "critique", "improve", "moves", "payoffs", "comprehension"):
        assert name in drawing
    assert match_graph().get_graph().draw_mermaid()


async def test_a_wrong_condition_is_told() -> None:
    with pytest.raises(UsageError, match="structure"):
        await studio.graph.ainvoke({"condition": {"model": "scripted:grim"}})
