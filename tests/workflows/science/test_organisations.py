"""Whole runs of organisations other than the pipeline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tracers.context import collect_runs

from labmates.agents.mcp_servers import McpServer
from labmates.agents.organisation import Organisation
from labmates.agents.organisation_files import find_organisation
from labmates.agents.tools import OWN_TOOLS, own_tool
from labmates.api import arun
from labmates.budgets.tokens import text_of
from labmates.errors import UsageError
from labmates.models.normalise import normalise
from labmates.models.objects import UnusableAnswerError
from labmates.models.scripted.base import Draft, Heard, call
from labmates.records.events import ArtifactEvent, FindingsEvent, LLMCallEvent, MessageEvent, PhaseEvent
from labmates.studies.fork import fork
from labmates.studies.replay import replay
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates.workflows.science.lab.facts import run_facts
from labmates.workflows.science.lab.state import first_state
from labmates.workflows.science.steps.bid import read_bid
from labmates_author.organisations import check_organisation
from labmates_author.trial import Trial
from tests.support.puppet import agent_of, dutiful, puppet, step_of
from tests.workflows.science.test_science_lab import Lab, tool_results

MORE = ("independent", "centralised", "decentralised", "hybrid", "blackboard")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.store.close()


def condition(**values: Any) -> ScienceCondition:
    return ScienceCondition.model_validate(
        {"task": "anomaly", "difficulty": "easy", "model": "scripted:hasty", **values}
    )


def faults(trial: Trial) -> dict[str, str]:
    return {problem.rule: problem.text for problem in trial.problems}


def without_code(heard: Heard) -> Draft:
    """Bid once and keep notes, since each sandbox takes a second to start."""
    step = step_of(heard)
    if step.startswith("bid"):
        earlier = sum(text_of(message.content).startswith("# Step: bid") for message in heard.messages) - 1
        return Draft(f"{0 if earlier else heard.seed % 10 + 1}: take notes")
    if step.startswith("work") and heard.messages[-1].type == "human":
        notes = call("write_artifact", name=f"notes_of_{agent_of(heard)}", content=f"Noted: {heard.seed}.")
        return Draft("", (call("list_artifacts"), notes))
    if step.startswith("talk"):
        return Draft("It went well. Nothing is doubtful.")
    if written := re.search(r"`(final_paper\w*)`", step):
        paper = call("write_artifact", name=written[1], content="# Paper\n" + "All is said. " * 9)
        return Draft("", (call("state_findings"), paper))
    return dutiful(heard)


@pytest.mark.parametrize("name", MORE)
@pytest.mark.parametrize(
    "seats",
    [{}, pytest.param({"team_size": 16}, marks=pytest.mark.slow("tests/workflows/science/test_organisations.py"))],
    ids=["own size", "16 seats"],
)
async def test_a_built_in_organisation_keeps_all_rules(name: str, seats: dict[str, int]) -> None:
    with puppet(without_code) as model:
        assert faults(await check_organisation(condition(organisation=name, model=model, **seats))) == {}


async def test_an_organisation_whose_seats_run_code_and_ask_a_person_keeps_all_rules() -> None:
    asking = find_organisation("decentralised").model_copy(update={"approve": ("write",)})
    assert faults(await check_organisation(condition(organisation=asking))) == {}


async def test_a_model_that_states_nothing_breaks_a_rule() -> None:
    broken = faults(await check_organisation(condition(organisation="decentralised", model="scripted:silent")))
    assert "states" in broken
    assert "repeats" not in broken


def test_an_organisation_has_as_many_seats_as_are_asked_for() -> None:
    crew = condition(organisation="hybrid", team_size=16).crew
    assert list(crew.teams["group"].seats) == ["coordinator", *(f"member_{number}" for number in range(1, 16))]
    assert len(condition(organisation="hybrid").crew.teams["group"].seats) == 4
    with pytest.raises(ValueError, match="the largest team of pipeline has 3 seats"):
        condition(team_size=4)


def test_the_phases_of_a_flow_are_numbered_by_team() -> None:
    agenda = first_state(find_organisation("hybrid"))["agenda"]
    assert [(phase["team"], phase["number"], phase["steps"]) for phase in agenda] == [
        ("group", 0, ["plan", "work", "talk"]),
        ("group", 1, ["plan", "work", "talk", "write"]),
    ]


@pytest.mark.parametrize(
    ("name", "opening"),
    [
        ("pipeline", "You work in a research project of four teams that work one after the other. A team knows"),
        ("decentralised", "You work in a research group whose members share one project"),
        ("independent", "You work on a research project by yourself. Other researchers"),
        ("solo", "You work on a research project alone"),
    ],
)
def test_default_prompts_begin_with_the_teams_that_there_are(name: str, opening: str) -> None:
    values = dict.fromkeys(("brief", "findings", "handed", "budget_rules"), "") | {"teams": "four"}
    facts = run_facts(condition(organisation=name))
    assert find_organisation(name).render("system", facts, **values).startswith(opening)


def remembering(**changes: Any) -> Organisation:
    pipeline = find_organisation("pipeline")
    teams = {name: team.model_copy(update={"memory": "conversation"}) for name, team in pipeline.teams.items()}
    return pipeline.model_copy(update={"name": "remembering", "teams": teams, **changes})


async def test_who_remembers_its_conversation_only_adds_to_it(lab: Lab) -> None:
    heard: dict[str, list[list[tuple[str, str]]]] = {}

    def play(call_: Heard) -> Draft:
        told = [(message.type, text_of(message.content)) for message in call_.messages]
        heard.setdefault(agent_of(call_), []).append(told)
        return dutiful(call_)

    run = await lab.play(play, organisation=remembering())
    assert run.status == "completed"
    assert len(heard) == 8
    for calls in heard.values():
        assert all(later[: len(earlier)] == earlier for earlier, later in pairwise(calls))
        assert [kind for kind, _ in calls[-1]].count("system") == 1
    stored = lab.store.run(run.id)
    assert stored.condition["organisation"]["name"] == "remembering"
    assert (await replay(lab.store, stored)).is_same


async def test_members_of_a_private_team_read_the_leads_work_alone(lab: Lab) -> None:
    heard_by: dict[str, str] = {}

    def play(heard: Heard) -> Draft:
        heard_by[agent_of(heard)] = "\n".join(text_of(message.content) for message in heard.messages)
        agent, phases = agent_of(heard), sum("# Step: work" in text_of(m.content) for m in heard.messages)
        if step_of(heard).startswith("work") and heard.messages[-1].type == "human":
            if phases == 1:
                return Draft("", (call("write_artifact", name=f"notes_of_{agent}", content=f"Notes of {agent}."),))
            names = ("notes_of_member_1", "notes_of_member_2")
            return Draft("", tuple(call("read_artifact", name=name) for name in names))
        return dutiful(heard)

    run = await lab.play(play, organisation="centralised", team_size=3)
    read = {(event.agent, text) for event, text in tool_results(lab, run, "read_artifact")}
    assert ("member_1", "Notes of member_1.") in read
    assert any(agent == "member_2" and "there is no artifact 'notes_of_member_1'" in text for agent, text in read)
    assert not any(agent == "member_2" and text == "Notes of member_1." for agent, text in read)
    assert "[member_1]: member_1 is done" in heard_by["coordinator"]
    assert "[member_1]:" not in heard_by["member_2"]


async def test_the_highest_bid_works_alone_until_nobody_bids(lab: Lab) -> None:
    bids = {"modeller": [3, 0], "checker": [9, 0], "explorer": [5, 0]}

    def play(heard: Heard) -> Draft:
        if not step_of(heard).startswith("bid"):
            return dutiful(heard)
        place = sum(text_of(m.content).startswith("# Step: bid") for m in heard.messages) - 1
        return Draft(f"{bids[agent_of(heard)][place]}: task of {agent_of(heard)}")

    run = await lab.play(play, organisation="blackboard")
    events = lab.events(run)
    steps = [e.step for e in events if isinstance(e, LLMCallEvent)]
    assert [step for step in steps if "/work/" in step] == ["group/0/checker/work/0"]
    assert [e.number for e in events if isinstance(e, PhaseEvent) and e.status == "ended"] == [0, 1, 8]
    assert [e.name for e in events if isinstance(e, ArtifactEvent)] == ["final_paper"]


async def test_all_phases_of_a_lab_of_one_team_are_one_traced_graph(lab: Lab) -> None:
    with collect_runs() as traced:
        [run] = await arun(
            "science", store=lab.store.url, task="anomaly", model="scripted:silent", organisation="blackboard"
        )
    phases = [event.status for event in lab.events(run) if isinstance(event, PhaseEvent)]
    assert phases == ["started", "ended"] * 2
    assert [span.name for span in traced.traced_runs if span.run_type == "chain"] == [
        f"science anomaly scripted:silent {run.id}"
    ]
    assert [span.run_type for span in traced.traced_runs].count("llm") == run.usage.llm_calls == 5


async def test_phases_of_a_team_in_a_row_are_one_traced_pass_of_its_graph(lab: Lab) -> None:
    pipeline = find_organisation("pipeline").model_dump(mode="json")
    data, *_, writing = pipeline["flow"]
    teams = {name: pipeline["teams"][name] for name in ("data", "writing")}
    twice = {**pipeline, "flow": [data, data, writing], "teams": teams}
    with collect_runs() as traced:
        [run] = await arun("science", store=lab.store.url, task="anomaly", model="scripted:silent", organisation=twice)
    phases = [event.team for event in lab.events(run) if isinstance(event, PhaseEvent) and event.status == "ended"]
    assert phases == ["data", "data", "writing"]
    spans = [span.name for span in traced.traced_runs]
    assert [spans.count(f"{team} team") for team in ("data", "writing")] == [1, 1]


@pytest.mark.parametrize(
    ("text", "bid"),
    [("7: fit it", (7, "fit it")), ("Well.\n- **10**: check", (10, "check")), ("0: nothing", (0, "nothing"))],
)
def test_a_bid_is_read_from_its_line(text: str, bid: tuple[int, str]) -> None:
    assert read_bid(normalise(AIMessage(text), sent=[], tools=[]), False) == bid


@pytest.mark.parametrize("text", ["", "eleven: much", "11: too much", "7"])
def test_a_reply_without_a_bid_is_sent_back(text: str) -> None:
    with pytest.raises(UnusableAnswerError, match="a number from 0 to 10, a colon and a task"):
        read_bid(normalise(AIMessage(text), sent=[], tools=[]), False)


MUTE = {"organisation": "hybrid", "team_size": 3, "arm": "mute", "evidence": "split:1"}


def test_the_mute_arm_has_the_same_seats_kept_apart_in_as_many_phases() -> None:
    team, mute = condition(**{**MUTE, "arm": "team"}), condition(**MUTE)
    assert [*mute.crew.seats] == [*team.crew.seats] == ["coordinator", "member_1", "member_2"]
    assert [phase.names for phase in mute.crew.flow] == [["work"], ["work", "report"]]
    assert not any(mute.crew.may(verb, "member_1", "coordinator") for verb in ("read", "tell", "ask"))
    assert mute.key != team.key
    four = condition(
        arm="mute", evidence="split:1", model_for={"eval": "scripted:silent", "statistician": "scripted:diligent"}
    )
    assert four.model_of("error_analyst") == four.model_of("eval_lead") == "scripted:silent"
    assert four.model_of("statistician") == "scripted:diligent"


async def test_seats_kept_apart_read_and_hear_nothing_and_their_findings_are_merged(lab: Lab) -> None:
    heard: dict[str, str] = {}
    numbers = {"coordinator": 3, "member_1": 9, "member_2": 4}

    def play(call_: Heard) -> Draft:
        agent = agent_of(call_)
        heard[agent] = "\n".join(text_of(message.content) for message in call_.messages)
        if step_of(call_).startswith("work"):
            return Draft("", (call("write_artifact", name="notes", content=f"Notes of {agent}."),
                              call("mark_complete", summary=f"Summary of {agent}.")))  # fmt: skip
        stated = call("state_findings", n_sensors=numbers[agent])
        content = f"Report of {agent}."
        return Draft("", (stated, call("write_artifact", name=f"final_paper_of_{agent}", content=content)))

    run = await lab.play(play, **MUTE)
    assert run.status == "completed"
    for agent, text in heard.items():
        assert not [other for other in numbers if other != agent and other in text]
    events, bodies = lab.events(run), lab.bodies(run)
    assert not [event for event in events if isinstance(event, MessageEvent)]
    stated = [bodies[event.findings]["n_sensors"] for event in events if isinstance(event, FindingsEvent)]
    assert stated[-1] == 4
    assert sorted(stated[:-1]) == [3, 4, 9]
    paper = [event for event in events if isinstance(event, ArtifactEvent)][-1]
    assert paper.name == "final_paper"
    assert [f"# Report of {name}\n\nReport of {name}." in bodies.text(paper.content) for name in numbers] == [True] * 3
    assert (await replay(lab.store, lab.store.run(run.id))).is_same


async def test_seats_with_shares_spend_no_more_and_the_paper_is_written() -> None:
    peers = {
        **find_organisation("decentralised").model_dump(),
        "name": "shared-out",
        "shares": {"peer_1": 0.2, "all": 0.1},
    }
    small = condition(organisation=peers, team_size=3, budget="0.05", model="scripted:diligent")
    broken = faults(await check_organisation(small))
    assert not {"shares", "delivers", "repeats", "pays"} & {*broken}


def count_letters(word: str) -> int:
    """Count the letters of a word."""
    if word == "no":
        raise LookupError("not that one")
    asked_of_tool.append(word)
    return len(word)


asked_of_tool: list[str] = []


async def test_a_tool_of_another_package_is_paid_and_recorded(lab: Lab) -> None:
    OWN_TOOLS.register("count_letters", count_letters)
    answers: list[str] = []

    def play(heard: Heard) -> Draft:
        if step_of(heard).startswith("work") and heard.messages[-1].type == "human":
            words: tuple[dict[str, Any], ...] = ({"word": "survey"}, {"word": "no"}, {"letters": 3})
            return Draft("", tuple(call("count_letters", **words_) for words_ in words))
        answers.extend(text_of(message.content) for message in heard.messages if message.type == "tool")
        return dutiful(heard)

    solo = find_organisation("solo").model_dump()
    teams = {"solo": {**solo["teams"]["solo"], "own_tools": ["count_letters"]}}
    run = await lab.play(play, organisation={**solo, "name": "counting", "teams": teams}, prices={"tool_call": "0.001"})
    assert run.status == "completed"
    told = [text for _, text in tool_results(lab, run, "count_letters")]
    assert told[0] == "6"
    assert told[1] == "Error: count_letters failed: LookupError: not that one"
    assert told[2].startswith("Error: wrong arguments for count_letters: word: ")
    assert answers[0] == "6"
    assert asked_of_tool == ["survey"]
    with puppet(play):
        forked = await fork(lab.store, run.id, at=len(lab.events(run)) - 2, changes={"temperature": 0.5})
        [ended] = await Session(lab.store, RunSettings(sandbox="unsafe-local")).execute([forked])
    assert ended.status == "completed"
    assert asked_of_tool == ["survey"]
    assert (await replay(lab.store, lab.store.run(run.id))).is_same


def test_an_unknown_tool_of_a_package_is_told() -> None:
    with pytest.raises(UsageError, match="unknown tool 'fly'"):
        own_tool("fly")
    pipeline = find_organisation("pipeline")
    teams = {**pipeline.teams, "data": pipeline.teams["data"].model_copy(update={"own_tools": ("papers", "paper")})}
    served = {"papers": McpServer(url="http://127.0.0.1:9/mcp")}
    crew = pipeline.model_copy(update={"name": "reading", "teams": teams, "mcp": served})
    told = "reading: teams.data.own_tools: there is no tool or MCP server 'paper'. Did you mean 'papers'?"
    with pytest.raises(UsageError, match=re.escape(told)):
        condition(organisation=crew).check()
