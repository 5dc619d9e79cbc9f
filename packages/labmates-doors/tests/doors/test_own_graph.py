"""Organisations as code: graphs of LangChain's own packages, and plain functions, under the budget and the record."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from labmates.agents.organisation_files import find_organisation
from labmates.agents.tools import OWN_TOOLS
from labmates.api import arun
from labmates.budgets.tokens import text_of
from labmates.errors import UsageError
from labmates.models.scripted.base import Draft, Heard
from labmates.records.events import ArtifactEvent, ChargeEvent, LLMCallEvent, ToolCallEvent
from labmates.records.reading import RunReader
from labmates.studies.fork import fork
from labmates.studies.replay import replay
from labmates.studies.runs import stopped_run
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.tasks.evidence import instruments_of
from labmates.tasks.registry import get_task
from labmates.workflows.people.approval import Question
from labmates.workflows.science.analyses.team_page import team_sections
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates_author.organisations import check_organisation
from tests.support.children import run_child
from tests.support.plugins import ROOT
from tests.support.puppet import puppet
from tests.support.story import story
from tests.workflows.science.test_organisations import faults
from tests.workflows.science.test_science_lab import Lab, tool_results

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
PAIR = """
import asyncio

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import HumanMessage

LOOK = "print(sorted(df['table'].unique()) if 'table' in df else 'whole')"


async def pair(lab):
    for number in range(2):
        for seat in ("ana", "ben"):
            code, write = lab.tools(seat, ["run_code", "write_artifact"])
            seen = await code.ainvoke({"code": LOOK})
            reply = await lab.model(seat).ainvoke([lab.brief, HumanMessage(f"{seat} {number}: {lab.data(seat)}")])
            await write.ainvoke({"name": f"notes_of_{seat}", "content": f"{seen}{reply.text}"})
    await lab.deliver("# Results", {"n_sensors": 12}, seat="ana")


class Late(AsyncCallbackHandler):
    def __init__(self, seconds):
        self.seconds = seconds

    async def on_tool_start(self, *args, **kwargs):
        await asyncio.sleep(self.seconds)


async def together(lab):
    [code] = lab.tools("ana", ["run_code"])
    calls = [("seen = [1]", 0.05), ("seen.append(2)", 0.02), ("print(seen)", 0)]
    seen = await asyncio.gather(*(code.ainvoke({"code": c}, {"callbacks": [Late(s)]}) for c, s in calls))
    await lab.deliver(f"Seen: {seen[-1]}", seat="ana")


async def spelling(lab):
    [count] = lab.tools("ana", ["letters"])
    await lab.deliver(f"Letters: {await count.ainvoke({'word': 'tape'})}", seat="ana")


async def stranger(lab):
    await lab.model("cho").ainvoke([lab.brief])
"""
SEATS = "name: pair\ngraph: pair.py:pair\nseats: {ana: {evidence: 3}, ben: {}}\n"
KILLED = """
    import os
    from labmates.api import run
    from labmates.models.scripted.base import Draft
    from tests.support.puppet import puppet

    calls = 0

    def play(heard):
        global calls
        calls += 1
        if calls == {dies_at}:
            os._exit(9)
        return Draft("Noted.")

    with puppet(play) as model:
        run("science", store={store!r}, settings={{"sandbox": "unsafe-local"}}, model=model, **{condition!r})
"""
SETTINGS = RunSettings(sandbox="unsafe-local")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    (tmp_path / "mine.py").write_text(SWARM)
    (tmp_path / "pair.py").write_text(PAIR)
    (tmp_path / "pair.yaml").write_text(SEATS)
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


async def test_a_person_reviews_the_texts_of_an_agent_of_langchain(lab: Lab) -> None:
    values: dict[str, Any] = {"task": "anomaly", "difficulty": "easy", "model": "scripted:diligent"}
    asked: list[str] = []

    def approve(question: Question) -> bool:
        asked.append(question.text.splitlines()[0])
        return True

    organisation = f"{EXAMPLES}:reviewed"
    [ended] = await arun(
        "science", store=lab.url, settings=SETTINGS, approve=approve, organisation=organisation, **values
    )
    assert ended.status == "completed"
    assert asked
    assert set(asked) == {"calls write_artifact"}
    assert (await replay(lab.store, lab.store.run(ended.id))).is_same


async def test_tools_called_at_once_run_in_the_order_of_their_calls_whenever_their_callbacks_end(lab: Lab) -> None:
    place = f"{lab.url.removeprefix('sqlite:///').removesuffix('runs.db')}pair.py:together"
    ended = await run(lab, place)
    [paper] = [lab.bodies(ended).text(e.content) for e in lab.events(ended) if isinstance(e, ArtifactEvent)]
    assert "[1, 2]" in paper
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
    with pytest.raises(UsageError, match=r"own_organisations.py:agent does not declare its seats.*seats: \[NAMES\]"):
        condition.check()
    condition.model_copy(update={"arm": "oracle"}).check()


def divided(folder: Path) -> dict[str, Any]:
    shared = {"task": "anomaly", "difficulty": "easy", "evidence": "split:1", "prices": {"tool_call": "0.001"}}
    return {**shared, "organisation": f"{folder}/pair.yaml"}


async def test_declared_seats_hold_their_parts_alone(lab: Lab, tmp_path: Path) -> None:
    described: dict[str, str] = {}

    def play(heard: Heard) -> Draft:
        told = text_of(heard.messages[-1].content)
        described[told[:3]] = told
        return Draft("Noted.")

    run = await lab.play(play, **divided(tmp_path))
    assert run.status == "completed"
    seen = {event.agent: text for event, text in tool_results(lab, run, "run_code")}
    assert seen == {"ana": "['checks', 'names']\n", "ben": "['readings']\n"}
    abouts = [*instruments_of(get_task("anomaly")).about.values()]
    assert [[about in described[seat] for about in abouts] for seat in ("ana", "ben")] == [
        [False, False, True], [True, False, False],
    ]  # fmt: skip
    [matrix] = [str(part.body) for part in team_sections(RunReader(lab.store, run)) if part.anchor == "seats"]
    for seat, name in (("ana", "workshop"), ("ben", "readings")):
        assert f'{seat} <span class="quiet">holds the {name}</span>' in matrix


def letters(word: str) -> int:
    """Count the letters of a word."""
    return len(word)


async def test_code_uses_tools_of_other_packages(lab: Lab, tmp_path: Path) -> None:
    OWN_TOOLS.register("letters", letters)
    run = await lab.play(lambda _: Draft("Noted."), organisation=f"{tmp_path}/pair.py:spelling")
    assert [(event.agent, text) for event, text in tool_results(lab, run, "letters")] == [("ana", "4")]


async def test_a_seat_that_is_not_declared_is_refused(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "pair.yaml").write_text(SEATS.replace("pair.py:pair", "pair.py:stranger"))
    run = await lab.play(lambda _: Draft("Noted."), **divided(tmp_path))
    assert run.status == "failed"
    assert "unknown seat 'cho'" in str(run.error)


def test_a_file_of_code_says_who_sits_and_not_who_talks(tmp_path: Path) -> None:
    (tmp_path / "pair.py").write_text(PAIR)
    (tmp_path / "pair.yaml").write_text(SEATS + "channels: none\n")
    with pytest.raises(UsageError, match="channels: an organisation as code says this in its code; leave it out"):
        find_organisation(f"{tmp_path}/pair.yaml")
    (tmp_path / "pair.yaml").write_text(SEATS.replace("pair.py:pair", "nowhere"))
    with pytest.raises(UsageError, match=r"pair.yaml:\d+: graph: 'nowhere' is not module:function or file.py:function"):
        find_organisation(f"{tmp_path}/pair.yaml")
    (tmp_path / "pair.yaml").write_text(SEATS)
    pair = find_organisation(f"{tmp_path}/pair.yaml")
    assert pair.graph == f"{tmp_path}/pair.py:pair"
    assert type(pair).model_validate(pair.model_dump(mode="json")) == pair


async def test_a_killed_or_forked_run_of_code_comes_to_the_same_end(lab: Lab, tmp_path: Path) -> None:
    condition = divided(tmp_path)
    with puppet(lambda _: Draft("Noted.")) as model:
        [expected] = await arun("science", store=lab.url, settings=SETTINGS, model=model, **condition)
        for dies_at in (1, 2, 4):
            code = textwrap.dedent(KILLED).format(dies_at=dies_at, store=lab.url, condition=condition)
            assert await asyncio.to_thread(run_child, code) == 9
            [stopped] = [run for run in lab.store.runs() if run.status == "running"]
            [run] = await Session(lab.store, SETTINGS).execute([stopped_run(lab.store, stopped.id)])
            assert story(lab.store, run.id) == story(lab.store, expected.id)
            assert (run.budget, run.usage) == (expected.budget, expected.usage)
        assert (await replay(lab.store, lab.store.run(run.id))).is_same
        events = lab.events(expected)
        for share in (0.2, 0.5, 0.9):
            forked = await fork(lab.store, expected.id, at=int(share * len(events)), changes={"temperature": 0.5})
            [ended] = await Session(lab.store, SETTINGS).execute([forked])
            assert story(lab.store, ended.id) == story(lab.store, expected.id)
