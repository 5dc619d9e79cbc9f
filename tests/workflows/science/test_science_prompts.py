"""What the agents of the lab are told, read out of the prompts of whole runs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labmates.api import arun
from labmates.budgets.tokens import estimate_tokens, text_of
from labmates.models.orders import order_of
from labmates.models.prefix import is_continued, shared_chars
from labmates.models.scripted.base import Draft, Heard, call
from tests.support.lab_orders import order_facts, system_facts
from tests.support.orders import check_rendered
from tests.support.puppet import agent_of, dutiful, puppet, step_of, turn_of
from tests.support.teams import TEAMS

Play = Callable[[Heard], Draft | None]


async def heard_in(folder: Path, play: Play, **condition: Any) -> list[Heard]:
    """Return what the model heard in each call of a run, in order; where `play` has no idea, it is dutiful."""
    calls: list[Heard] = []

    def reply(heard: Heard) -> Draft:
        calls.append(heard)
        return play(heard) or dutiful(heard)

    with puppet(reply) as model:
        values = {"task": "anomaly", "difficulty": "easy", "model": model, **condition}
        settings = {"sandbox": "unsafe-local"}
        [run] = await arun("science", store=f"sqlite:///{folder}/runs.db", settings=settings, **values)
    assert run.status == "completed"
    return calls


def order(heard: Heard) -> str:
    """Return the order of the step."""
    return next(t for m in reversed(heard.messages) if (t := text_of(m.content)).startswith("# Step:"))


def orders(calls: list[Heard], step: str, agent: str = "") -> list[str]:
    return [order(c) for c in calls if step_of(c).startswith(step) and agent in ("", agent_of(c))]


def artifact(name: str, text: str) -> Draft:
    return Draft("", (call("write_artifact", name=name, content=text),))


def write_artifacts(heard: Heard) -> Draft | None:
    step = step_of(heard)
    if not step.startswith("write"):
        return None
    written = artifact(step.split("`")[1], f"Text of {step}.")
    return Draft("", (call("state_findings"), *written.calls))


def nothing(_: Heard) -> None:
    return None


@pytest.mark.parametrize("condition", [{"theory_of_mind": True, "team_size": 3}, {"solo": True}])
async def test_the_texts_of_a_run_render_all_facts(tmp_path: Path, condition: dict[str, Any]) -> None:
    for heard in await heard_in(tmp_path, asking_for_more, **condition):
        rules, *orders = [message for message in heard.messages if order_of(message)]
        check_rendered([rules])
        assert system_facts(text_of(rules.content)) == heard.orders[0].facts
        for message, order in zip(orders, heard.orders[1:], strict=True):
            assert json.loads(json.dumps(order.facts)) == order.facts
            assert order_facts(text_of(message.content)) == order.facts


def asking_for_more(heard: Heard) -> Draft | None:
    """Ask the first team for more work once, and state findings."""
    if step_of(heard) == "work" and agent_of(heard) == "statistician" and not turn_of(heard):
        return Draft("", (call("request_additional_work", target_team="data", request="Count the rows, please."),))
    return write_artifacts(heard)


async def test_who_writes_sees_the_newest_artifacts_of_the_teams_before(tmp_path: Path) -> None:
    calls = await heard_in(tmp_path, write_artifacts)
    names = [team.artifact for team in TEAMS.values()]
    shown = [[name for name in names if f"=== {name} ===" in text] for text in orders(calls, "write")]
    assert shown == [names[:n] for n in range(4)]
    assert ["## Material: artifacts" in text for text in orders(calls, "write")] == [False, True, True, True]


async def test_what_is_said_of_readers_fits_the_teams_place(tmp_path: Path) -> None:
    calls = await heard_in(tmp_path, nothing, theory_of_mind=True)
    written = orders(calls, "write")
    assert ["teams after yours" in text for text in written] == [True, True, True, False]
    assert "It is the result of the project." in written[-1]
    assert not any("next team" in order(c) for c in calls)
    planned = orders(calls, "plan")
    assert ["team that works after yours" in text for text in planned] == [True, True, True, False]
    told = ["can still read a message from you:" in text for text in orders(calls, "work")]
    assert told == [True] * 6 + [False] * (len(told) - 6)


async def test_who_writes_reads_on_where_an_artifact_is_shown_in_part(tmp_path: Path) -> None:
    text = "".join(f"line {number} of the data\n" for number in range(420))
    told: list[str] = []

    def play(heard: Heard) -> Draft | None:
        step, agent = step_of(heard), agent_of(heard)
        if step.startswith("write") and agent == "data_lead":
            return artifact("dataset_description", text)
        if not step.startswith("write") or agent != "ml_engineer":
            return None
        told[:] = [text_of(message.content) for message in heard.messages if message.type == "tool"]
        calls = [
            call("read_artifact", name="dataset_description", offset=6_000),
            call("read_artifact", name="nothing"),
        ]
        return [Draft("", (calls[0],)), Draft("", tuple(calls))][turn_of(heard)] if turn_of(heard) < 2 else None

    calls = await heard_in(tmp_path, play)
    hints = ["Where characters are left out, read_artifact shows them." in text for text in orders(calls, "write")]
    assert hints == [False, *[True] * 4, False]
    assert told[1].partition("\n\nBudget")[0] == told[0].partition("\n\nBudget")[0]
    assert "line 410 of the data\n" in told[0]
    assert told[2].startswith("Error: there is no artifact 'nothing'")


async def test_who_only_reads_writes_in_the_end_or_is_given_up(tmp_path: Path) -> None:
    def play(heard: Heard) -> Draft | None:
        reads = step_of(heard).startswith("write") and agent_of(heard) == "ml_engineer"
        return Draft("", (call("read_artifact", name="dataset_description"),)) if reads else None

    calls = await heard_in(tmp_path, play, repair_turns=1)
    assert sum(step_of(c).startswith("write") and agent_of(c) == "ml_engineer" for c in calls) == 6 + 2


async def test_the_form_of_the_findings_is_shown_to_who_states_the_projects(tmp_path: Path) -> None:
    calls = await heard_in(tmp_path, nothing)
    shown = {agent_of(c) for c in calls if any("```findings" in text_of(m.content) for m in c.messages)}
    assert shown == {"lead_author"}
    assert all("- n_sensors (whole number)" in text_of(c.messages[0].content) for c in calls)


async def test_a_fault_is_told_once(tmp_path: Path) -> None:
    def play(heard: Heard) -> Draft | None:
        return Draft("") if step_of(heard) == "plan" and "empty" not in text_of(heard.messages[-1].content) else None

    calls = await heard_in(tmp_path, play)
    again = [text_of(c.messages[-1].content) for c in calls if "was empty" in text_of(c.messages[-1].content)]
    assert len(again) == 4
    assert all(text.count("nswer again") == 1 and "can't be used" not in text for text in again)


async def test_a_lead_plans_with_each_members_part_turns_and_tools(tmp_path: Path) -> None:
    calls = await heard_in(tmp_path, nothing, team_size=3, max_turns=5)
    for team in TEAMS.values():
        plan = next(c for c in calls if step_of(c) == "plan" and agent_of(c) == team.lead.id)
        system, text = text_of(plan.messages[0].content), order(plan)
        assert all(f"- {role.id}: {role.title}" in system and role.part in system for role in team.members)
        assert "at most 5 replies" in text
        assert ("a Python session of its own" in text) == team.has_code
        assert ("no code tools" in text) != team.has_code


async def test_all_agents_share_the_beginning_of_their_prompts_up_to_their_team(tmp_path: Path) -> None:
    calls = await heard_in(tmp_path, nothing)
    systems = {text_of(c.messages[0].content) for c in calls}
    assert len(systems) == 8
    [shared] = {system.partition("## Your team\n")[0] for system in systems}
    assert len(shared) > 0.8 * max(map(len, systems))


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        ("plan", "Error: no tool can be called in this step, and nothing was done. Answer with text alone"),
        ("deliberation", "Error: no tool can be called in this step, and nothing was done. Answer with text alone"),
        ("write", "you have no tool 'run_code' in this step. Your tools: read_artifact, write_artifact"),
    ],
)
async def test_a_call_that_a_step_forbids_is_answered_and_not_carried_out(
    tmp_path: Path, step: str, answer: str
) -> None:
    def stray(heard: Heard) -> Draft | None:
        if step_of(heard).startswith(step) and heard.messages[-1].type != "tool":
            return Draft("", (call("run_code", code="print('x' * 9)"),))
        return None

    calls = await heard_in(tmp_path, stray)
    told = [text_of(each.messages[-1].content) for each in calls if each.messages[-1].type == "tool"]
    stray_answers = [text for text in told if answer in text]
    assert stray_answers
    assert not any("x" * 9 in text for text in stray_answers)


async def test_the_tools_of_a_step_of_work_are_those_that_its_order_names(tmp_path: Path) -> None:
    calls = await heard_in(tmp_path, nothing)
    named = {agent_of(c): (order(c), list(c.tool_names())) for c in calls if step_of(c) == "work"}
    for agent, line in {
        "data_lead": "all", "data_engineer": "all but state_findings",
        "methods_writer": "all but run_code, state_findings",
    }.items():  # fmt: skip
        team = TEAMS["data" if agent.startswith("data") else "writing"]
        assert f"\nTools in this step: {line}.\n" in named[agent][0]
        assert named[agent][1] == team.tools(states=agent == team.lead.id)


async def test_a_further_round_of_talk_asks_those_alone_whose_answer_is_needed(tmp_path: Path) -> None:
    def play(heard: Heard) -> Draft | None:
        step, agent = step_of(heard), agent_of(heard)
        if step == "work" and agent == "data_lead" and turn_of(heard) == 0:
            return Draft("", (call("run_code", code="print(6 * 7)", description="multiply"), call("fly")))
        asks = "\nAnswer needed: data_lead" if agent == "data_engineer" else ""
        return Draft(f"{agent} in {step[14:21]}{asks}") if step.startswith("deliberation") else None

    calls = [c for c in await heard_in(tmp_path, play) if step_of(c).startswith("deliberation")]
    first, second = (c for c in calls if agent_of(c) == "data_lead")
    assert "What you did: run_code (multiply); fly: failed" in order(first)
    assert "What your code printed:\n42" in order(first)
    assert "Said so far" not in order(first)
    assert second.messages[: len(first.messages)] == first.messages
    assert text_of(second.messages[-2].content) == "data_lead in round 1"
    assert "Said since you spoke:\n[data_engineer]: data_engineer in round 1\nAnswer needed" in order(second)
    assert [agent_of(c) for c in calls].count("data_engineer") == 1
    assert [agent_of(c) for c in calls].count("ml_engineer") == 1


async def test_who_said_nothing_in_the_first_round_is_told_everything_when_asked_again(tmp_path: Path) -> None:
    def play(heard: Heard) -> Draft | None:
        step, agent = step_of(heard), agent_of(heard)
        if not step.startswith("deliberation, round 1"):
            return None
        return Draft("" if agent == "data_lead" else "What of the gaps?\nAnswer needed: data_lead")

    calls = await heard_in(tmp_path, play, repair_turns=0)
    [_, second] = orders(calls, "deliberation", "data_lead")
    assert "Your task was:" in second
    assert "Said so far:\n[data_engineer]:" in second


@pytest.mark.parametrize("keep", ["ends", "first"])
async def test_the_last_printed_line_reaches_the_lead_unless_the_papers_rule_is_chosen(
    tmp_path: Path, keep: str
) -> None:
    def play(heard: Heard) -> Draft | None:
        if step_of(heard) != "work" or agent_of(heard) != "data_engineer" or turn_of(heard) > 1:
            return None
        code = ["print('loading'); print('x' * 4_000)", "print('the answer is 42')"][turn_of(heard)]
        return Draft("", (call("run_code", code=code),))

    calls = await heard_in(tmp_path, play, output_excerpt=keep)
    written = orders(calls, "write", "data_lead")[0]
    assert "loading" in written
    assert ("the answer is 42" in written) == (keep == "ends")
    assert "characters left out]" in written
    told = "long outputs lose their middle" if keep == "ends" else "the first 3,000 characters of each"
    assert told in orders(calls, "work", "data_engineer")[0]


async def test_a_team_that_waits_for_another_reads_no_message_until_it_starts_again(tmp_path: Path) -> None:
    said: list[str] = []

    def play(heard: Heard) -> Draft | None:
        if step_of(heard) != "work":
            return None
        again = "asks your team" in order(heard)
        if agent_of(heard) == "ml_engineer" and turn_of(heard) == 0:
            return Draft("", (call("request_additional_work", target_team="data", request="more"),))
        if agent_of(heard) == "data_lead" and again and turn_of(heard) == 0:
            return Draft("", (call("send_message", to_team="model", content="here"),))
        if agent_of(heard) == "data_lead" and again:
            said.append(text_of(heard.messages[-1].content))
        return None

    await heard_in(tmp_path, play)
    assert "the model team has no phase left to start" in said[0]
    assert "still read one: eval, writing" in said[0]


@pytest.mark.parametrize("kind", ["additional", "redo"])
async def test_a_team_that_completes_its_work_is_told_that_its_variables_are_still_there(
    tmp_path: Path, kind: str
) -> None:
    found: list[str] = []

    def play(heard: Heard) -> Draft | None:
        if step_of(heard) != "work":
            return None
        if agent_of(heard) == "ml_engineer" and turn_of(heard) == 0:
            if kind == "redo":
                return Draft("", (call("request_team_redo", target_team="data", request="anew", justification="bad"),))
            return Draft("", (call("request_additional_work", target_team="data", request="more"),))
        if agent_of(heard) == "data_lead" and turn_of(heard) == 0:
            return Draft("", (call("run_code", code="print('kept' in globals()); kept = 1"),))
        if agent_of(heard) == "data_lead":
            found.append(text_of(heard.messages[-1].content).split()[0])
        return None

    calls = await heard_in(tmp_path, play)
    assert found == ["False", str(kind == "additional")]
    again = [text for text in orders(calls, "", "data_lead") if "asks your team" in text]
    assert len(again) == 2 + (kind == "redo")
    assert {"variables of your earlier work are still there" in text for text in again} == {kind == "additional"}
    assert {"=== end of dataset_description ===" in text for text in again} == {kind == "additional"}


async def test_an_agent_is_told_when_it_has_one_reply_left(tmp_path: Path) -> None:
    def play(heard: Heard) -> Draft | None:
        if step_of(heard) != "work" or agent_of(heard) not in ("data_lead", "data_engineer"):
            return None
        return Draft("", (call("list_artifacts"),)) if agent_of(heard) == "data_lead" else Draft("I think.")

    calls = await heard_in(tmp_path, play, max_turns=3)
    for agent in ("data_lead", "data_engineer"):
        said = [text_of(c.messages[-1].content) for c in calls if step_of(c) == "work" and agent_of(c) == agent]
        assert ["one reply left" in text for text in said] == [False, False, True]


async def test_one_agent_alone_is_told_of_no_team(tmp_path: Path) -> None:
    calls = await heard_in(tmp_path, nothing, solo=True)
    system = text_of(calls[0].messages[0].content)
    assert "You are the researcher of this project (researcher)." in system
    assert not any("team" in text_of(m.content) for c in calls for m in c.messages)
    assert "at most 64 replies" in order(calls[0])
    for visibility, says in [("team", "Budget: you have spent $0."), ("full", "spent, $")]:
        [plan, *others] = await heard_in(tmp_path, nothing, solo=True, visibility=visibility)
        assert says in order(plan)
        assert not any("team" in text_of(m.content) or "solo" in text_of(m.content) for c in others for m in c.messages)


async def test_tool_calls_are_said_to_have_a_price_only_where_they_have_one(tmp_path: Path) -> None:
    free = await heard_in(tmp_path, nothing)
    paid = await heard_in(tmp_path, nothing, prices={"tool_call": "0.001"})
    hidden = await heard_in(tmp_path, nothing, prices={"tool_call": "0.001"}, visibility="hidden")
    systems = [text_of(calls[0].messages[0].content) for calls in (free, paid, hidden)]
    assert ["Each tool call has a price" in system for system in systems] == [False, True, False]
    assert "## The budget" not in systems[2]


def prefix(calls: list[Heard]) -> str:
    """Return what the calls' first messages say alike, as it is marked."""
    [shared] = {text_of(call.messages[0].content)[: shared_chars(call.messages[0])] for call in calls}
    return shared


@pytest.mark.parametrize("solo", [False, True])
async def test_what_all_agents_share_comes_first_and_is_marked(tmp_path: Path, solo: bool) -> None:
    calls = await heard_in(tmp_path, write_artifacts, solo=solo)
    shared = prefix(calls)
    for part in ("## The project", "## The data set", "## What the final paper has to state", "## The budget"):
        assert part in shared
    assert not any(agent_of(call) in shared for call in calls)
    assert "## Your role" in text_of(calls[0].messages[0].content).removeprefix(shared)
    [tools] = {json.dumps(call.tools) for call in calls}
    assert (estimate_tokens(shared) + estimate_tokens(tools)) > 1_000


@pytest.mark.parametrize("solo", [False, True])
async def test_conversations_of_several_calls_are_marked_as_such(tmp_path: Path, solo: bool) -> None:
    calls = await heard_in(tmp_path, nothing, solo=solo)
    marked = {step_of(call).split()[0].strip(",") for call in calls if any(map(is_continued, call.messages))}
    assert marked == ({"work", "write"} if solo else {"work", "deliberation"})


async def test_conversations_are_continued_and_never_rewritten(tmp_path: Path) -> None:
    calls = await heard_in(tmp_path, lambda heard: Draft("Let me think.") if turn_of(heard) == 0 else None)
    longer = 0
    for earlier, later in itertools.combinations(calls, 2):
        if agent_of(earlier) == agent_of(later) and order(earlier) == order(later):
            common = len(earlier.messages)
            assert later.messages[:common] == earlier.messages
            longer += len(later.messages) > common
    assert longer >= len(TEAMS)
