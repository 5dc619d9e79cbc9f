"""Organisations as code: graphs of LangChain's own packages, and plain functions, under the budget and the record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labmates.api import arun
from labmates.errors import UsageError
from labmates.records.events import ArtifactEvent, ChargeEvent, LLMCallEvent, ToolCallEvent
from labmates.studies.replay import replay
from labmates.workflows.science.condition import ScienceCondition
from labmates.workflows.science.organisation_check import check_organisation
from tests.support.plugins import ROOT
from tests.workflows.science.test_organisations import faults
from tests.workflows.science.test_science_lab import Lab

EXAMPLES = f"{ROOT / 'examples' / 'own_organisations.py'}"
SWARM = """
from langchain.agents import create_agent
from langgraph_swarm import create_handoff_tool, create_swarm


def swarm(lab):
    ana = create_agent(lab.model("ana"), [*lab.tools("ana"), create_handoff_tool(agent_name="ben")], name="ana")
    ben = create_agent(lab.model("ben"), [*lab.tools("ben"), create_handoff_tool(agent_name="ana")], name="ben")
    return create_swarm([ana, ben], default_active_agent="ana").compile()


def greedy(lab):
    async def work():
        while True:
            await lab.model().ainvoke([lab.brief])
    return work()


not_a_function = 3
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    (tmp_path / "mine.py").write_text(SWARM)
    lab = Lab(tmp_path)
    yield lab
    lab.store.close()


async def run(lab: Lab, organisation: str, **condition: Any) -> Any:
    values = {"task": "anomaly", "difficulty": "easy", "model": "scripted:diligent", **condition}
    settings = {"sandbox": "unsafe-local"}
    [ended] = await arun("science", store=lab.url, settings=settings, organisation=organisation, **values)
    return ended


async def test_an_agent_of_langchain_works_in_the_lab_and_replays(lab: Lab) -> None:
    ended = await run(lab, f"{EXAMPLES}:agent", prices={"tool_call": "0.001"})
    events = lab.events(ended)
    assert ended.status == "completed"
    assert ended.metrics["accuracy"] > 0.5
    calls = [event.step for event in events if isinstance(event, LLMCallEvent)]
    assert calls == [f"lab/0/ana/work/{number}" for number in range(len(calls))]
    tools = [event for event in events if isinstance(event, ToolCallEvent)]
    assert {"run_code", "write_artifact"} <= {event.tool for event in tools}
    assert [event.name for event in events if isinstance(event, ArtifactEvent)] == ["final_paper"]
    charged = {event.step: event.amount for event in events if isinstance(event, ChargeEvent)}
    assert all(charged[event.step] == 1000 for event in tools)
    assert float(ended.budget["spent"]) == pytest.approx(sum(charged.values()) / 1e6)
    assert (await replay(lab.store, lab.store.run(ended.id))).is_same


async def test_a_supervisor_gives_tasks_to_workers_with_models_of_their_own(lab: Lab) -> None:
    ended = await run(lab, f"{EXAMPLES}:supervised", model_for={"boss": "scripted:hasty"})
    assert ended.status == "completed"
    boss = [e for e in lab.events(ended) if isinstance(e, LLMCallEvent) and e.agent == "boss"]
    assert {event.model for event in boss} == {"scripted:hasty"}
    assert ended.models == ["scripted:diligent", "scripted:hasty"]


async def test_a_plain_function_calls_the_model_once(lab: Lab) -> None:
    ended = await run(lab, f"{EXAMPLES}:one_call")
    assert ended.status == "completed"
    assert ended.usage.llm_calls == 1


async def test_a_swarm_works_unmodified(lab: Lab) -> None:
    ended = await run(lab, f"{lab.url.removeprefix('sqlite:///').removesuffix('runs.db')}mine.py:swarm")
    assert ended.status == "completed"
    assert "ana" in {e.agent for e in lab.events(ended) if isinstance(e, LLMCallEvent)}


async def test_an_empty_pool_ends_the_work_and_is_never_overdrawn(lab: Lab) -> None:
    place = f"{lab.url.removeprefix('sqlite:///').removesuffix('runs.db')}mine.py:greedy"
    ended = await run(lab, place, budget="0.01")
    assert ended.status == "exhausted"
    assert 0 < sum(e.amount for e in lab.events(ended) if isinstance(e, ChargeEvent)) <= 10_000


async def test_the_same_seed_gives_the_same_events() -> None:
    values = {"task": "anomaly", "difficulty": "easy", "model": "scripted:diligent"}
    condition = ScienceCondition.model_validate({**values, "organisation": f"{EXAMPLES}:agent"})
    assert not {"repeats", "pays", "delivers"} & set(faults(await check_organisation(condition)))
    assert ScienceCondition.model_validate(condition.model_dump(mode="json")).key == condition.key


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("mine.py:nothing", "mine.py:nothing' can't be imported: AttributeError"),
        ("mine.py:not_a_function", "mine.py:not_a_function' is not a function that takes a Lab"),
        ("none.py:agent", "none.py:agent' can't be imported: FileNotFoundError"),
    ],
)
async def test_what_can_not_be_used_is_told(lab: Lab, tmp_path: Path, name: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        await run(lab, f"{tmp_path}/{name}")


def test_divided_evidence_needs_declared_seats() -> None:
    given = {
        "task": "ecology",
        "model": "scripted:diligent",
        "organisation": f"{EXAMPLES}:agent",
        "evidence": "split:1",
    }
    condition = ScienceCondition.model_validate(given)
    with pytest.raises(UsageError, match="--evidence split:1: an organisation as code does not declare its seats"):
        condition.check()
    condition.model_copy(update={"arm": "oracle"}).check()
