"""Agents from outside: what is refused before a run, what a resumed run repeats, and what a check tells."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labmates.errors import UsageError
from labmates.records.events import LLMCallEvent, ToolCallEvent, WarningEvent
from labmates.workflows.science.condition import ScienceCondition
from labmates.workflows.science.organisation_check import check_organisation
from labmates.workflows.science.seats.adapters import PythonSeat
from tests.support.puppet import dutiful, puppet
from tests.workflows.science.seats.test_conformance import mind, seated
from tests.workflows.science.test_science_lab import Lab

NO_FUNCTION: list[str] = []


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.store.close()


async def forgetful(seat: PythonSeat) -> str:
    """Fail once, in the middle of the work, and do all of it again."""
    tools = {tool.name: tool for tool in seat.tools}
    order = str(seat.messages[-1].content)
    if not order.startswith("# Step: work"):
        return "# A plan, or a paper\nAll is said."
    await seat.model.ainvoke(seat.messages[:1])
    if "Your reply was empty" not in await tools["run_code"].ainvoke({"code": "print(1)"}):
        raise RuntimeError("out of luck")
    await tools["write_artifact"].ainvoke({"name": "notes", "content": seat.budget()})
    return "done"


async def test_an_agent_that_fails_starts_again_where_it_was(lab: Lab) -> None:
    run = await lab.play(dutiful, organisation=seated(python=f"{__file__}:forgetful"), prices={"tool_call": "0.001"})
    events = lab.events(run)
    assert run.status == "completed"
    assert [e.text for e in events if isinstance(e, WarningEvent)] == [
        "solo/0/researcher/work/1: the agent failed: RuntimeError: out of luck"
    ]
    tools = [event for event in events if isinstance(event, ToolCallEvent)]
    assert [event.tool for event in tools] == ["run_code", "write_artifact", "mark_complete"]
    models = [e for e in events if isinstance(e, LLMCallEvent) and "/work/" in e.step and "/model/" in e.step]
    assert len(models) == 1  # the second start is answered from the record


async def test_an_agent_at_a_dead_address_is_told_and_the_run_ends(lab: Lab) -> None:
    organisation = seated(a2a="http://127.0.0.1:1/agent")
    run = await lab.play(dutiful, organisation=organisation, repair_turns=0)
    assert run.status == "completed"
    warnings = [event.text for event in lab.events(run) if isinstance(event, WarningEvent)]
    assert warnings
    assert all("the agent at http://127.0.0.1:1/agent failed: " in text for text in warnings)


@pytest.mark.parametrize(
    ("seat", "told"),
    [
        ({"command": ["no-such-program"]}, "the seat researcher: there is no program 'no-such-program'; install it"),
        ({"python": "no_such_module:agent"}, "the seat researcher: .*'no_such_module:agent' can't be imported"),
        ({"python": f"{__file__}:NO_FUNCTION"}, "the seat researcher: .*is not a function"),
    ],
)
def test_an_agent_that_cannot_start_is_refused_before_the_run(seat: dict[str, Any], told: str) -> None:
    condition = ScienceCondition.model_validate(
        {"task": "anomaly", "model": "scripted:diligent", "organisation": seated(**seat)}
    )
    with pytest.raises(UsageError, match=told):
        condition.check()


@pytest.mark.needs("bubblewrap")
async def test_a_check_of_an_organisation_tells_what_its_agents_did_wrong() -> None:
    seat = {"command": [sys.executable, "-c", "raise SystemExit('no')"]}
    with puppet(mind) as model:
        values = {"task": "anomaly", "difficulty": "easy", "model": model, "organisation": seated(**seat)}
        rules = await check_organisation(ScienceCondition.model_validate({**values, "repair_turns": 0}))
    [fault] = [rule.fault for rule in rules if rule.name == "agents"]
    assert "researcher: " in fault
    assert "ended with exit status 1. no" in fault
