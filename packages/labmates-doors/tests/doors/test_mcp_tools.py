"""Runs of the lab whose agents use tools of real MCP servers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labmates.agents.organisation_files import find_organisation
from labmates.budgets.tokens import text_of
from labmates.models.scripted.base import Draft, Heard, call
from labmates.records.events import ChargeEvent, ErrorEvent
from labmates.studies.fork import fork
from labmates.studies.replay import replay
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates_doors.own_graph import Lab as OwnLab
from tests.support.puppet import dutiful, puppet, step_of
from tests.workflows.science.test_science_lab import Lab, tool_results

SERVER = Path(__file__).with_name("mcp_server.py")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.store.close()


def servers(log: Path) -> dict[str, Any]:
    return {"papers": {"command": [sys.executable, str(SERVER), str(log)]}}


def reading(mcp: dict[str, Any], own_tools: list[str]) -> dict[str, Any]:
    solo = find_organisation("solo").model_dump()
    team = {**solo["teams"]["solo"], "own_tools": own_tools, "without": ["run_code"]}
    return {**solo, "name": "reading", "mcp": mcp, "teams": {"solo": team}}


async def test_tools_of_servers_are_paid_recorded_and_replayed(lab: Lab, tmp_path: Path) -> None:
    log = tmp_path / "log"
    answers: list[str] = []

    def play(heard: Heard) -> Draft:
        if step_of(heard).startswith("work") and heard.messages[-1].type == "human":
            uses = (
                call("papers__search", query="bees"),
                call("papers__crash"),
                call("papers__search", query="ants"),
                call("papers__long"),
                call("weather__now"),
                call("papers__fly"),
            )
            return Draft("", uses)
        answers.extend(text_of(message.content) for message in heard.messages if message.type == "tool")
        return dutiful(heard)

    mcp = {**servers(log), "weather": {"command": ["/no/such/program"]}}
    organisation = reading(mcp, ["papers", "papers.search", "weather.now"])
    run = await lab.play(play, organisation=organisation, prices={"tool_call": "0.001"}, code_timeout=60)
    assert run.status == "completed"
    assert [text for _, text in tool_results(lab, run, "papers__search")] == [
        "2 papers about bees",
        "2 papers about ants",
    ]
    [(died, why)] = tool_results(lab, run, "papers__crash")
    assert not died.ok
    assert why == "Error: the MCP server papers failed: Connection closed"
    [(_, long)] = tool_results(lab, run, "papers__long")
    assert "[8000 characters left out]" in long
    [(_, why)] = tool_results(lab, run, "weather__now")
    assert why.startswith("Error: the MCP server weather failed: FileNotFoundError")
    assert answers[0] == "2 papers about bees"
    assert "papers__fly" in answers[5]
    assert {e.amount for e in lab.events(run) if isinstance(e, ChargeEvent) and "/work/0/" in e.step} == {1000}
    asked = log.read_text()
    assert asked.splitlines() == ["started", "search bees", "started", "search ants"]
    with puppet(play):
        forked = await fork(lab.store, run.id, at=len(lab.events(run)) - 2, changes={"temperature": 0.5})
        [ended] = await Session(lab.store, RunSettings(sandbox="unsafe-local")).execute([forked])
        assert ended.status == "completed"
        anew = await fork(lab.store, run.id, at=0, changes={"temperature": 0.5})
    assert anew.taken_over == 0
    assert (await replay(lab.store, run)).is_same
    assert (await replay(lab.store, lab.store.run(ended.id))).is_same
    assert log.read_text() == asked


async def test_a_tool_that_a_server_lacks_ends_the_run_before_any_call(lab: Lab, tmp_path: Path) -> None:
    run = await lab.play(dutiful, organisation=reading(servers(tmp_path / "log"), ["papers.serch"]), code_timeout=60)
    assert run.status == "failed"
    [why] = [event.text for event in lab.events(run) if isinstance(event, ErrorEvent)]
    assert "unknown tool of the MCP server papers 'serch'. Did you mean 'search'?" in why
    assert run.usage.llm_calls == 0


async def look_up(lab: OwnLab) -> None:
    [search] = lab.tools(names=["papers.search"])
    text = await search.ainvoke({"query": "bees"})
    await lab.deliver(f"# Paper\n{text}. " + "All is said. " * 9)


async def test_an_organisation_as_code_uses_tools_of_servers(lab: Lab, tmp_path: Path) -> None:
    graph = {"name": "own", "graph": f"{__file__}:look_up", "mcp": servers(tmp_path / "log")}
    run = await lab.play(dutiful, organisation=graph, code_timeout=60)
    assert run.status == "completed"
    assert [text for _, text in tool_results(lab, run, "papers__search")] == ["2 papers about bees"]
    assert (await replay(lab.store, run)).is_same
    assert (tmp_path / "log").read_text().splitlines() == ["started", "search bees"]
