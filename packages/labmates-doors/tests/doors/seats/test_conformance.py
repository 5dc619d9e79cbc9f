"""The same scripted mind on a seat in several ways: the findings and the ledger are the same."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent

from labmates.records.events import ChargeEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.sandboxes.image.names import image_tag
from labmates.studies.replay import replay
from labmates_doors.seats.adapters import PythonSeat
from tests.doors.a2a_agent import a2a_agent
from tests.support.plays import industrious
from tests.support.seats import findings, listing_usable_tools, seated
from tests.workflows.science.test_science_lab import Lab

PRICES = {"tool_call": "0.001"}
AGENT = Path(__file__).parents[1] / "seat_agent.py"


@pytest.fixture(scope="module", autouse=True)
def same_tools() -> Iterator[None]:
    with listing_usable_tools():
        yield


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.store.close()


def paid(store: Store, run_id: str) -> list[int]:
    return sorted(event.amount for event in store.events(run_id) if isinstance(event, ChargeEvent) and event.amount)


async def graph(seat: PythonSeat) -> object:
    """LangChain's own agent on the model and the tools of the seat."""
    return create_agent(seat.model, seat.tools)


async def loop(seat: PythonSeat) -> str:
    """A loop of one's own."""
    messages, model = list(seat.messages), seat.model.bind_tools(seat.tools)
    tools = {tool.name: tool for tool in seat.tools}
    while True:
        reply = await model.ainvoke(messages)
        messages.append(reply)
        if not reply.tool_calls:
            return str(reply.content)
        messages += [await tools[asked["name"]].ainvoke(asked) for asked in reply.tool_calls]
        if "your step is over" in str(messages[-1].content):
            return ""


WAYS: dict[str, dict[str, Any]] = {
    "http": {"command": [sys.executable, str(AGENT), "http"]},
    "stdio": {"command": [sys.executable, str(AGENT), "stdio"]},
    "messages": {"command": [sys.executable, str(AGENT), "messages"]},
    "responses": {"command": [sys.executable, str(AGENT), "responses"]},
    "docker": {"command": [sys.executable, str(AGENT), "http"], "image": image_tag()},
    "stdio in docker": {"command": [sys.executable, str(AGENT), "lines"], "image": image_tag()},
    "python": {"python": f"{__file__}:loop"},
    "graph": {"python": f"{__file__}:graph"},
}


def account(lab: Lab, run: RunRecord) -> tuple[Any, ...]:
    """How a run ended, and what it found and paid."""
    return run.status, paid(lab.store, run.id), findings(lab.store, run.id), run.budget, run.usage


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    """The account of the mind in this process."""
    lab = Lab(tmp_path_factory.mktemp("inside"))
    inside = account(lab, asyncio.run(lab.play(industrious, organisation=seated(), prices=PRICES)))
    lab.store.close()
    assert inside[0] == "completed"
    return inside


@pytest.mark.needs("bubblewrap")
@pytest.mark.needs("docker")
@pytest.mark.parametrize("way", [*WAYS, "a2a"])
async def test_one_mind_finds_and_costs_the_same_in_process_and_as(
    way: str, lab: Lab, expected: tuple[Any, ...]
) -> None:
    async with a2a_agent() as address:
        seat = {"a2a": address} if way == "a2a" else WAYS[way]
        outside = await lab.play(industrious, organisation=seated(**seat), prices=PRICES)
    assert account(lab, outside) == expected
    assert (await replay(lab.store, outside)).differences == ()
