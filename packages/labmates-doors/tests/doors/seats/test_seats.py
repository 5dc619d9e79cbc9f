"""Agents from outside: what is refused before a run, what a resumed run repeats, and what a check tells."""

from __future__ import annotations

import asyncio
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from labmates.agents.organisation_files import find_organisation
from labmates.agents.organisation_parts import Seat
from labmates.agents.own_code import check_code
from labmates.api import arun
from labmates.errors import UsageError
from labmates.models.options import ModelOptions
from labmates.models.scripted.base import Draft, call
from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent, LLMCallEvent, ToolCallEvent, WarningEvent
from labmates.records.reading import RunReader
from labmates.sandboxes import bubblewrap
from labmates.studies.settings import RunSettings
from labmates.workflows.calls.call import outer_step
from labmates.workflows.science.analyses.shown import tables
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates_author.organisations import check_organisation
from labmates_doors.protocols.base import RefusedRequestError
from labmates_doors.seats import session
from labmates_doors.seats.adapters import PythonSeat
from labmates_doors.seats.programs import check_command
from tests.doors.seats import test_conformance as conformance
from tests.studies.test_resume import KILLED, go_on
from tests.support.children import run_child
from tests.support.openai_server import OpenAIServer, fault
from tests.support.plays import industrious
from tests.support.puppet import dutiful, puppet
from tests.support.seats import seated
from tests.support.story import story
from tests.workflows.science.test_science_lab import Lab

NO_FUNCTION: list[str] = []
EXAMPLES = Path(__file__).parents[3] / "examples" / "agents"


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


async def asking(seat: PythonSeat) -> str:
    """Ask the model, whatever comes back."""
    with suppress(RefusedRequestError):
        await seat.model.ainvoke(seat.messages)
    return "All is said."


class Asking(TypedDict):
    """The state of a graph that asks."""

    messages: list[str]


def interrupting(seat: PythonSeat) -> Any:
    """A graph that would ask a person."""
    del seat
    graph = StateGraph(Asking)
    graph.add_node("ask", lambda state: {"messages": [interrupt("Why?")]})
    graph.add_edge(START, "ask")
    return graph.compile()


async def test_a_graph_on_a_seat_that_interrupts_is_told_so(lab: Lab) -> None:
    run = await lab.play(dutiful, organisation=seated(python=f"{__file__}:interrupting"))
    [warning, *_] = [event.text for event in lab.events(run) if isinstance(event, WarningEvent)]
    assert warning.endswith("asks a person by an interrupt, which only an organisation as code can")


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


async def test_a_killed_run_resumes_its_agent_and_pays_nothing_twice(lab: Lab) -> None:
    condition: dict[str, Any] = {
        "organisation": seated(python=f"{conformance.__file__}:loop"),
        "prices": {"tool_call": "0.001"},
    }
    whole = await lab.play(industrious, **condition)
    condition |= {"task": "anomaly", "difficulty": "easy"}
    # The third model call of the agent's work, after the calls of two tools.
    code = KILLED.format(play="industrious", dies_at=4, store=lab.url, condition=condition)
    assert await asyncio.to_thread(run_child, textwrap.dedent(code)) == 9
    [stopped] = [run for run in lab.store.runs() if run.status == "running"]
    before = [event.step for event in lab.events(stopped) if isinstance(event, LLMCallEvent) and outer_step(event.step)]
    assert before[-1].endswith("/work/1/model/0")
    run = await go_on(lab.store, stopped.id, industrious)
    assert story(lab.store, run.id) == story(lab.store, whole.id)
    assert (run.budget, run.usage) == (whole.budget, whole.usage)


async def test_a_request_that_the_server_finds_invalid_ends_no_run(lab: Lab) -> None:
    refusal = fault(400, {"error": {"message": "the schema of the tool is invalid"}})
    with OpenAIServer(lambda _request, _number: refusal) as server:
        settings = RunSettings(sandbox="unsafe-local", models=ModelOptions(base_url=server.base_url))
        organisation = seated(python=f"{__file__}:asking")
        [run] = await arun(
            "science", store=lab.url, settings=settings, task="anomaly", model="openai:m", organisation=organisation
        )
    assert run.status == "completed"
    warnings = [event.text for event in lab.events(run) if isinstance(event, WarningEvent)]
    assert any("the model's server refused a request of the agent as invalid" in text for text in warnings)


async def test_an_agent_at_a_dead_address_is_told_and_the_run_ends(lab: Lab) -> None:
    organisation = seated(a2a="http://127.0.0.1:1/agent")
    run = await lab.play(dutiful, organisation=organisation, repair_turns=0)
    assert run.status == "completed"
    warnings = [event.text for event in lab.events(run) if isinstance(event, WarningEvent)]
    assert warnings
    assert all("the agent at http://127.0.0.1:1/agent failed: " in text for text in warnings)


async def raising(seat: PythonSeat) -> str:
    """Ask its model, and fail in every step."""
    await seat.model.ainvoke(seat.messages)
    raise RuntimeError("out of luck")


async def exiting(seat: PythonSeat) -> str:
    """Ask its model, and exit, as a program's library does."""
    await seat.model.ainvoke(seat.messages)
    sys.exit("no more")


async def silent(seat: PythonSeat) -> None:
    """End without a text."""
    del seat


async def stating(seat: PythonSeat) -> Any:
    """Return something other than text."""
    return StateGraph(Asking) if seat.step == "work" else {"messages": [f"All is said in {seat.step}."]}


@pytest.mark.parametrize(
    ("function", "told"),
    [
        ("raising", "failed in [1-9] of [1-9] steps .[1-9] model calls, .*: the agent failed: RuntimeError: out of l"),
        ("exiting", "failed in .*: the agent failed: RuntimeError: its code called sys.exit.'no more'"),
        ("silent", "failed in .*: the agent ended without a text"),
        ("stating", "failed in .*: the agent ended with a StateGraph; a text, .* or a compiled graph is needed"),
    ],
)
async def test_a_run_whose_agent_fails_in_a_step_is_invalid_and_says_why(
    lab: Lab, function: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="labmates")
    run = await lab.play(dutiful, organisation=seated(python=f"{__file__}:{function}"), repair_turns=0)
    assert re.search(f"^the agent of the seat researcher {told}", run.invalid or "")
    assert ("Traceback" in caplog.text) == (function in ("raising", "exiting"))  # with -v
    *_, seats = tables(RunReader(lab.store, run))
    assert [(row["seat"], row["agent"], row["calls"]) for row in seats.rows] == [
        ("researcher", "python", run.usage.llm_calls)
    ]


async def several(seat: PythonSeat) -> str:
    """Call three tools at once in its work."""
    tools = {tool.name: tool for tool in seat.tools}
    if seat.step == "work":
        codes = [f"print({number})" for number in range(3)]
        told = await asyncio.gather(*(tools["run_code"].ainvoke({"code": code}) for code in codes))
        assert [str(number) in text for number, text in enumerate(told)] == [True] * 3
    return "All is said, and this is the whole story of how it came about, with all of its details."


async def test_calls_of_tools_at_once_are_one_reply(lab: Lab) -> None:
    run = await lab.play(dutiful, organisation=seated(python=f"{__file__}:several"), max_turns=2)
    events = lab.events(run)
    assert [event.step for event in events if isinstance(event, ToolCallEvent) and event.tool == "run_code"] == [
        f"solo/0/researcher/work/0/{number}" for number in range(3)
    ]
    assert run.invalid is None


async def whole(seat: PythonSeat) -> str:
    """Tell the end and the text of its model's reply; else keep its text."""
    reply = await seat.model.bind_tools(seat.tools).ainvoke(seat.messages)
    return f"{reply.response_metadata}" if seat.step == "plan" else str(reply.content)


async def test_a_reply_that_is_cut_at_its_limit_is_told_and_is_no_text_of_the_agent(lab: Lab) -> None:
    long = Draft("", (call("write_artifact", name="notes", content="word " * 3000),))
    run = await lab.play(
        lambda _: long, organisation=seated(python=f"{__file__}:whole"), max_output_tokens=1000, repair_turns=0
    )
    [plan, *_] = [e for e in lab.events(run) if isinstance(e, LLMCallEvent) and not outer_step(e.step)]
    assert lab.bodies(run)[plan.reply]["content"] == "{'finish_reason': 'length'}"
    cut = "the agent ended without a text, after a reply of its model that was cut at its limit of 1000 tokens"
    assert (run.invalid or "").endswith(cut)


async def looping(seat: PythonSeat) -> str:
    """Ask the model again and again."""
    with suppress(RefusedRequestError):
        while True:
            await seat.model.ainvoke(seat.messages)
    return "All is said."


async def test_model_calls_of_a_step_are_limited(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MOST_MODEL_CALLS", 3)
    run = await lab.play(dutiful, organisation=seated(python=f"{__file__}:looping"))
    calls = Counter(
        event.step.rpartition("/model/")[0].rpartition("/")[0]
        for event in lab.events(run)
        if isinstance(event, LLMCallEvent) and outer_step(event.step)
    )
    assert set(calls.values()) == {3}


async def test_code_of_an_agent_counts_by_its_content_and_a_changed_file_is_refused(tmp_path: Path) -> None:
    def condition(folder: str, code: str) -> ScienceCondition:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "agent.py").write_text(code)
        place = str(tmp_path / folder / "agent.py")
        organisation = seated(command=(sys.executable, place))
        return ScienceCondition.model_validate({"task": "anomaly", "model": "scripted:x", "organisation": organisation})

    first, moved = condition("a", "print(1)"), condition("b", "print(1)")
    assert first.key == moved.key
    recorded = ScienceCondition.model_validate(first.model_dump(mode="json"))
    assert recorded.key == first.key
    check_code(recorded.organisation)
    assert condition("a", "print(2)").key != first.key
    with pytest.raises(UsageError, match=r"its code '.*agent.py' has changed \(SHA-256 .*; restore it, or start a new"):
        check_code(recorded.organisation)


def test_a_seat_of_an_own_agent_beyond_the_team_size_is_refused() -> None:
    peers = find_organisation("decentralised").model_dump()
    team = peers["teams"]["group"]
    mine = {"title": "t", "part": "p", "python": f"{__file__}:silent", "id": "mine"}
    seats = {**dict(list(team["seats"].items())[:2]), "mine": mine}
    organisation = {**peers, "name": "mine", "teams": {"group": {**team, "seats": seats}}}
    values = {"task": "anomaly", "model": "scripted:x", "organisation": organisation}
    with pytest.raises(ValueError, match="the seat mine, an agent of your own, would be left out; give at least"):
        ScienceCondition.model_validate({**values, "team_size": 2})
    del organisation["size"]
    condition = ScienceCondition.model_validate(values)
    assert [*condition.crew.seats] == [*seats]


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


@pytest.fixture
def no_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    bubblewrap._way.cache_clear()
    yield
    bubblewrap._way.cache_clear()


@pytest.mark.usefixtures("no_bubblewrap")
def test_a_command_without_bubblewrap_and_docker_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    missing = r"the seat ana: .*no program 'bwrap' .*apt-get install bubblewrap\), or in Docker: .*docker.sock"
    with pytest.raises(UsageError, match=missing):
        check_command("ana", Seat(title="t", part="p", command=(sys.executable,)))


@pytest.mark.needs("docker")
@pytest.mark.usefixtures("no_bubblewrap")
async def test_without_bubblewrap_a_command_runs_in_the_image_of_the_sandbox(lab: Lab) -> None:
    seat = {"command": ["python3", "-c", "import sys; print(sys.executable, input())"]}
    run = await lab.play(dutiful, organisation=seated(**seat))
    *_, paper = [e for e in lab.events(run) if isinstance(e, ArtifactEvent) and e.name == "final_paper"]
    assert Bodies(lab.store.bodies(run.id))[paper.content].startswith("/opt/venv/bin/python3 ")


@pytest.mark.needs("docker")
def test_a_missing_image_of_a_command_is_an_error() -> None:
    with pytest.raises(UsageError, match="the seat ana: image: the image no-such:1 is missing; build or pull"):
        check_command("ana", Seat(title="t", part="p", command=("agent",), image="no-such:1"))


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_the_example_of_a_program_is_an_organisation_with_its_command(name: str) -> None:
    organisation = find_organisation(str(EXAMPLES / f"{name}.yaml"))
    [(_, seat)] = organisation.seats.values()
    assert seat.command
    assert any("LABMATES_KEY" in part for part in seat.command)


@pytest.mark.needs("bubblewrap")
async def test_a_program_has_the_environment_of_its_seat_and_nothing_of_the_host(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/of/the/host")
    monkeypatch.setenv("EDITOR", "ed")
    seat = {"command": ["/usr/bin/env"], "environment": {"DEPTH": "3", "LABMATES_SEAT": "somebody else"}}
    run = await lab.play(dutiful, organisation=seated(**seat))
    *_, paper = [e for e in lab.events(run) if isinstance(e, ArtifactEvent) and e.name == "final_paper"]
    text = Bodies(lab.store.bodies(run.id))[paper.content]
    printed = dict(line.split("=", 1) for line in text.strip().splitlines() if "=" in line)
    assert printed["DEPTH"] == "3"
    assert printed["LABMATES_SEAT"] == "researcher"
    theirs = {name for name in printed if not name.startswith(("LABMATES_", "OPENAI_", "ANTHROPIC_"))}
    assert theirs == {"PATH", "HOME", "LANG", "DEPTH", "PWD"}


@pytest.mark.parametrize("name", ["A=B", "2ND", ""])
def test_a_variable_with_an_invalid_name_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match=f"environment: '{name}' can't be a variable"):
        Seat(title="t", part="p", command=("true",), environment={name: "x"})


@pytest.mark.parametrize("field", [{"environment": {"DEPTH": "3"}}, {"image": "agents:1"}])
def test_only_a_program_has_an_environment_and_an_image(field: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="only a seat with a command"):
        Seat.model_validate({"title": "t", "part": "p", **field})


@pytest.mark.needs("bubblewrap")
async def test_a_check_of_an_organisation_tells_what_its_agents_did_wrong() -> None:
    seat = {"command": [sys.executable, "-c", "raise SystemExit('no')"]}
    with puppet(industrious) as model:
        values = {"task": "anomaly", "difficulty": "easy", "model": model, "organisation": seated(**seat)}
        trial = await check_organisation(ScienceCondition.model_validate({**values, "repair_turns": 0}))
    [fault] = [problem.text for problem in trial.problems if problem.rule == "agents"]
    assert "researcher: " in fault
    assert "ended with exit status 1. no" in fault
