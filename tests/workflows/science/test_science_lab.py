from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from labmates.agents.prompts import render
from labmates.agents.workspace import Workspace
from labmates.api import arun
from labmates.budgets.budget import Budget, Hold
from labmates.budgets.purse import Purse
from labmates.budgets.shared_budget import SharedBudget
from labmates.budgets.tokens import text_of
from labmates.models.normalise import normalise
from labmates.models.objects import UnusableAnswerError
from labmates.models.scripted.base import Draft, DraftCall, Heard, call
from labmates.records.bodies import Bodies
from labmates.records.events import (
    ArtifactEvent,
    ChargeEvent,
    Event,
    FailedReplyEvent,
    LLMCallEvent,
    MessageEvent,
    PhaseEvent,
    RequestEvent,
    ToolCallEvent,
)
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.workflows.science.lab.writing import take
from tests.support.puppet import agent_of, dutiful, puppet, step_of, turn_of
from tests.support.scripted_chat import ScriptedChat, said
from tests.support.teams import PIPELINE, TEAMS

Play = Callable[[Heard], Draft]


class Lab:
    """Plays runs of a scripted model and gives access to what they recorded."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/runs.db"
        self.store = Store(self.url)

    async def play(self, play: Play, **condition: Any) -> RunRecord:
        with puppet(play) as model:
            values = {"task": "anomaly", "difficulty": "easy", "model": model, **condition}
            [run] = await arun("science", store=self.url, settings={"sandbox": "unsafe-local"}, **values)
        return run

    def events(self, run: RunRecord) -> list[Event]:
        return self.store.events(run.id)

    def bodies(self, run: RunRecord) -> Bodies:
        return Bodies(self.store.bodies(run.id))


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.store.close()


def work(reply: Callable[[Heard], Draft | None]) -> Play:
    """Be dutiful, except where `reply` has another idea in a step of work."""

    def play(heard: Heard) -> Draft:
        draft = reply(heard) if step_of(heard) == "work" else None
        return draft or dutiful(heard)

    return play


def done() -> Draft:
    return Draft("", (call("mark_complete", summary="done"),))


def tool_results(lab: Lab, run: RunRecord, tool: str) -> list[tuple[ToolCallEvent, str]]:
    bodies = lab.bodies(run)
    return [
        (event, bodies.text(event.result))
        for event in lab.events(run)
        if isinstance(event, ToolCallEvent) and event.tool == tool
    ]


async def test_four_teams_work_in_order_and_hand_over_their_artifacts(lab: Lab) -> None:
    run = await lab.play(dutiful)
    events = lab.events(run)
    assert run.status == "completed"
    started = [e.team for e in events if isinstance(e, PhaseEvent) and e.status == "started"]
    assert started == list(TEAMS)
    written = [(e.name, e.version) for e in events if isinstance(e, ArtifactEvent)]
    assert written == [(team.artifact, 1) for team in TEAMS.values()]
    assert run.metrics["artifacts_missing"] == 0
    assert run.usage.failed_replies == 0
    # The lead plans and writes; each member works for one reply and speaks once. In the writing team one member checks.
    assert run.usage.llm_calls == 3 * (1 + 2 + 2 + 1) + (1 + 1 + 1)


async def test_members_pay_through_the_class_that_langchain_agents_pay_through(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited, held, shown = list[tuple[type, str]](), list[tuple[type, str]](), set[type]()
    affordable, reserve, status = Budget.affordable, Budget.reserve, Budget.status

    def watch_affordable(budget: Budget, call: str, *args: Any, **options: Any) -> int:
        limited.append((type(budget), call))
        return affordable(budget, call, *args, **options)

    def watch_reserve(budget: Budget, amount: int, call: str) -> Hold:
        held.append((type(budget), call))
        return reserve(budget, amount, call)

    def watch_status(budget: Budget, *args: Any) -> str:
        shown.add(type(budget))
        return status(budget, *args)

    monkeypatch.setattr(Budget, "affordable", watch_affordable)
    monkeypatch.setattr(Budget, "reserve", watch_reserve)
    monkeypatch.setattr(Budget, "status", watch_status)
    run = await lab.play(dutiful, prices={"tool_call": "0.001"})
    events = lab.events(run)
    assert {kind for kind, _ in limited + held} == {Purse}
    assert sorted(call for _, call in limited) == sorted(e.step for e in events if isinstance(e, LLMCallEvent))
    assert sorted(call for _, call in held) == sorted(e.step for e in events if isinstance(e, ToolCallEvent))
    assert shown == {Purse}

    @tool
    def look() -> str:
        """Look."""
        return "here"

    for seen in (limited, held, shown):
        seen.clear()
    budget = SharedBudget("1", prices="input=0.5,output=3,tool_call=0.001")
    replies = iter([said("", (100, 10), [("look", {})]), said("2", (100, 10))])
    chat = ScriptedChat(script=lambda messages, limit: next(replies))
    create_agent(chat, [look], middleware=[budget]).invoke({"messages": [HumanMessage("1 + 1?")]})
    assert limited == [(SharedBudget, "model scripted:scripted-chat")] * 2
    assert held == [(SharedBudget, "tool look")]
    assert shown == {SharedBudget}


async def test_team_size_and_deliberation_rounds_say_how_many_speak(lab: Lab) -> None:
    run = await lab.play(dutiful, team_size=3, deliberation_rounds=1)
    assert run.usage.llm_calls == 3 * (1 + 3 + 3 + 1) + (1 + 2 + 1)
    said = [e for e in lab.events(run) if isinstance(e, MessageEvent)]
    assert len(said) == 9
    assert {e.agent for e in said if e.team == "model"} == {"ml_engineer", "statistician", "experimentalist"}


async def test_the_charges_add_up_to_what_was_spent_at_the_given_prices(lab: Lab) -> None:
    prices = {"default": {"input": "2", "output": "5"}, "tool_call": "0.001"}
    run = await lab.play(dutiful, prices=prices)
    events = lab.events(run)
    charges = [e for e in events if isinstance(e, ChargeEvent)]
    calls = [e for e in events if isinstance(e, LLMCallEvent)]
    tools = [e for e in events if isinstance(e, ToolCallEvent)]
    expected = sum(-(-(c.input_tokens * 2_000_000 + c.output_tokens * 5_000_000) // 1_000_000) for c in calls)
    assert sum(charge.amount for charge in charges) == expected + 1000 * len(tools)
    assert run.budget is not None
    assert float(run.budget["spent"]) == pytest.approx((expected + 1000 * len(tools)) / 1e6)
    assert float(run.budget["spent"]) + float(run.budget["remaining"]) == pytest.approx(1.0)


async def test_code_runs_with_the_data_set_and_keeps_its_variables(lab: Lab) -> None:
    def reply(heard: Heard) -> Draft | None:
        if agent_of(heard) != "data_lead":
            return None
        cells = [
            "n = len(df)\nprint(df.shape[1] > 3)",
            "```python\nprint('rows', n == len(df))\n```",
            "pd.read_csv('path_to_data.csv')",
        ]
        turn = turn_of(heard)
        return Draft("", (call("run_code", code=cells[turn]),)) if turn < 3 else None

    run = await lab.play(work(reply))
    results = tool_results(lab, run, "run_code")
    *printed, lost = [text.strip() for _, text in results]
    assert printed == ["True", "rows True"]
    bodies = lab.bodies(run)
    assert bodies[results[1][0].arguments]["code"] == "print('rows', n == len(df))\n", "the record has what was run"
    assert lost.endswith(render("no_such_file")), "models look for a file with the data"
    assert run.sandbox == "unsafe-local"


async def test_figures_and_files_that_code_makes_are_kept_with_the_run(lab: Lab) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()\nopen('out/table.csv', 'w').write('a,b')"

    def reply(heard: Heard) -> Draft | None:
        first = agent_of(heard) == "data_lead" and turn_of(heard) == 0
        return Draft("", (call("run_code", code=code),)) if first else None

    run = await lab.play(work(reply))
    [(event, text)] = tool_results(lab, run, "run_code")
    bodies = lab.bodies(run)
    assert "Files kept: out/table.csv (3 bytes)" in text
    assert {name: bodies[number] for name, number in event.files.items()} == {"table.csv": b"a,b"}
    assert [bodies[number][:4] for number in event.images] == [b"\x89PNG"]


async def test_a_team_reads_the_whole_table_that_an_earlier_team_cleaned(lab: Lab) -> None:
    codes = {
        "data_lead": "df.to_csv('out/clean.csv', index=False)",
        "ml_engineer": "print(pd.read_csv('in/clean.csv').shape == df.shape)",
    }

    def reply(heard: Heard) -> Draft | None:
        code = codes.get(agent_of(heard)) if turn_of(heard) == 0 else None
        return Draft("", (call("run_code", code=code),)) if code else None

    run = await lab.play(work(reply))
    [(_, kept), (_, read)] = tool_results(lab, run, "run_code")
    assert "Files kept: out/clean.csv" in kept
    assert read.strip() == "True"


async def test_the_writing_team_has_no_code_tools(lab: Lab) -> None:
    def reply(heard: Heard) -> Draft | None:
        if agent_of(heard) == "methods_writer" and turn_of(heard) == 0:
            assert "run_code" not in heard.tool_names()
            return Draft("", (call("run_code", code="1"),))
        return None

    run = await lab.play(work(reply))
    [(event, text)] = tool_results(lab, run, "run_code")
    assert not event.ok
    assert "no tool 'run_code'" in text
    assert run.sandbox is None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (call("fly", to="moon"), "no tool 'fly'"),
        (call("run_code", program="1"), "It takes: code, description"),
        (call("run_code", code=7), "wrong arguments"),
        (call("mark_complete"), "summary"),
        (call("write_artifact", name="../x", content="c"), "no artifact name"),
        (call("write_artifact", name="final_paper", content="c"), "belongs to the writing team"),
        (call("write_artifact", name="notes", content="  "), "empty"),
        (call("read_artifact", name="nothing"), "There are: none yet"),
        (call("send_message", to_team="data", content="c"), "not another team"),
        (call("request_additional_work", target_team="model", request="r"), "Only teams that worked before"),
        (call("request_additional_work", target_team="data", request="r"), "yours is the first team"),
        (call("request_team_redo", target_team="moon", request="r", justification="j"), "can't ask 'moon'"),
    ],
)
async def test_a_wrong_tool_call_goes_back_as_an_error_and_ends_nothing(lab: Lab, wrong: DraftCall, says: str) -> None:
    seen: list[str] = []

    def reply(heard: Heard) -> Draft | None:
        if agent_of(heard) == "data_lead" and turn_of(heard) == 0:
            return Draft("", (wrong,))
        if agent_of(heard) == "data_lead" and turn_of(heard) == 1:
            seen.append(text_of(heard.messages[-1].content))
        return None

    run = await lab.play(work(reply))
    assert run.status == "completed"
    assert run.metrics["tool_errors"] == 1
    assert says in seen[0]


async def test_a_task_stays_open_if_another_call_of_the_same_reply_failed(lab: Lab) -> None:
    def play(heard: Heard) -> Draft:
        if step_of(heard) != "work":
            return dutiful(heard)
        reads = (call("read_artifact", name="no_such_artifact"),) if turn_of(heard) == 0 else ()
        return Draft("", (*reads, call("mark_complete", summary=f"done in reply {turn_of(heard) + 1}")))

    run = await lab.play(play, organisation="solo")
    closes = [event for event in lab.events(run) if isinstance(event, ToolCallEvent) and event.tool == "mark_complete"]
    bodies = lab.bodies(run)
    assert [(event.ok, bodies[event.arguments]["summary"]) for event in closes] == [
        (False, "done in reply 1"),
        (True, "done in reply 2"),
    ]
    assert "another call of this reply failed" in bodies.text(closes[0].result)


async def test_members_see_each_others_artifacts_only_when_the_step_is_over(lab: Lab) -> None:
    def reply(heard: Heard) -> Draft | None:
        if agent_of(heard) == "data_lead" and turn_of(heard) == 0:
            return Draft("", (call("write_artifact", name="notes", content="of the lead"), call("list_artifacts")))
        if agent_of(heard) == "data_engineer" and turn_of(heard) == 0:
            return Draft("", (call("list_artifacts"),))
        if agent_of(heard) == "ml_engineer" and turn_of(heard) == 0:
            return Draft("", (call("read_artifact", name="notes"),))
        return None

    run = await lab.play(work(reply))
    listed = {event.agent: text for event, text in tool_results(lab, run, "list_artifacts")}
    assert "notes" in listed["data_lead"]
    assert "notes" not in listed["data_engineer"]
    assert tool_results(lab, run, "read_artifact")[0][1] == "of the lead"


async def test_messages_reach_the_other_team_at_its_next_phase(lab: Lab) -> None:
    prompts: list[str] = []

    def play(heard: Heard) -> Draft:
        if step_of(heard) == "work" and agent_of(heard) == "data_lead" and turn_of(heard) == 0:
            return Draft("", (call("send_message", to_team="eval", content="mind the gap"),))
        if step_of(heard) == "plan" and agent_of(heard) in ("ml_engineer", "eval_lead"):
            prompts.append(text_of(heard.messages[-1].content))
        return dutiful(heard)

    await lab.play(play)
    assert ["mind the gap" in prompt for prompt in prompts] == [False, True]


async def test_additional_work_is_done_before_the_asking_team_goes_on(lab: Lab) -> None:
    answers: list[str] = []

    def reply(heard: Heard) -> Draft | None:
        if agent_of(heard) == "statistician":
            if turn_of(heard) == 0:
                calls = (
                    call("request_additional_work", target_team="data", request="count again"),
                    call("list_artifacts"),
                )
                return Draft("", calls)
            answers.extend(text_of(m.content) for m in heard.messages if m.type == "tool")
        return None

    run = await lab.play(work(reply))
    phases = [(e.team, e.number, e.status) for e in lab.events(run) if isinstance(e, PhaseEvent)]
    assert phases[2:6] == [
        ("model", 0, "started"),
        ("model", 0, "suspended"),
        ("data", 1, "started"),
        ("data", 1, "ended"),
    ]
    assert "data_lead reports: data_lead is done" in answers[0]
    assert run.metrics["requests"] == 1
    versions = [e.version for e in lab.events(run) if isinstance(e, ArtifactEvent) and e.name == "dataset_description"]
    assert versions == [1]
    calls = [e.step for e in lab.events(run) if isinstance(e, LLMCallEvent) and e.step.startswith("data/1/")]
    assert calls == ["data/1/data_lead/work/0"]  # an answer costs one member's work


@pytest.mark.parametrize("kind", ["additional", "redo"])
async def test_the_asked_team_is_told_what_is_wanted_and_whether_to_keep_its_work(lab: Lab, kind: str) -> None:
    prompts: list[str] = []
    to_write: list[str] = []

    def play(heard: Heard) -> Draft:
        agent, step = agent_of(heard), step_of(heard)
        if agent == "data_lead" and "asks your team" in text_of(heard.messages[-1].content):
            prompts.append(text_of(heard.messages[-1].content))
        if "dataset_description" in step:
            to_write.append(text_of(heard.messages[-1].content))
            content = "All is said. " + "word " * 2_000 + "The end."
            return Draft("", (call("write_artifact", name="dataset_description", content=content),))
        if step == "work" and agent == "eval_lead" and turn_of(heard) == 0:
            if kind == "redo":
                return Draft("", (call("request_team_redo", target_team="data", request="anew", justification="bad"),))
            return Draft("", (call("request_additional_work", target_team="data", request="more"),))
        return dutiful(heard)

    await lab.play(play)
    assert len(prompts) == 1 + (kind == "redo")  # to work, and to write anew
    assert "eval team asks" in prompts[0]
    assert ("All is said." in prompts[0].split("## Artifacts")[0]) == (kind == "additional")
    assert ("bad" in prompts[0]) == (kind == "redo")
    assert ("characters left out]" in prompts[0].split("## Artifacts")[0]) == (kind == "additional")
    assert ["The end." in prompt for prompt in to_write] == [False] * (1 + (kind == "redo"))


async def test_requests_are_capped_per_pair_of_teams(lab: Lab) -> None:
    def reply(heard: Heard) -> Draft | None:
        if agent_of(heard) == "ml_engineer":
            return Draft("", (call("request_additional_work", target_team="data", request="more"),))
        return None

    run = await lab.play(work(reply), max_requests=2, max_turns=4)
    requests = [e for e in lab.events(run) if isinstance(e, RequestEvent)]
    assert len(requests) == 2
    assert run.status == "completed"
    refused = [text for event, text in tool_results(lab, run, "request_additional_work") if not event.ok]
    assert refused
    assert all("no further request" in text for text in refused)


async def test_teammates_who_ask_at_the_same_time_share_the_cap(lab: Lab) -> None:
    answers: dict[str, str] = {}

    def reply(heard: Heard) -> Draft | None:
        agent = agent_of(heard)
        if agent in ("ml_engineer", "statistician"):
            if turn_of(heard) == 0:
                return Draft("", (call("request_additional_work", target_team="data", request=f"for {agent}"),))
            answers[agent] = next(text_of(m.content) for m in heard.messages if m.type == "tool")
        return None

    run = await lab.play(work(reply), max_requests=1)
    assert [e.request for e in lab.events(run) if isinstance(e, RequestEvent)] == ["for ml_engineer"]
    assert run.metrics["phases"] == 5
    assert "data_lead reports: data_lead is done" in answers["ml_engineer"]
    assert "no further request" in answers["statistician"]


@pytest.mark.parametrize("others", ["done", "waiting"])
async def test_who_asks_and_closes_its_task_in_one_reply_is_not_waited_for(lab: Lab, others: str) -> None:
    asking = call("request_additional_work", target_team="data", request="more")

    def reply(heard: Heard) -> Draft | None:
        if agent_of(heard) == "ml_engineer":
            return Draft("", (asking, call("mark_complete", summary="done")))
        if others == "waiting" and agent_of(heard) == "statistician" and turn_of(heard) == 0:
            return Draft("", (asking,))
        return None

    run = await asyncio.wait_for(lab.play(work(reply)), 60)
    assert run.status == "completed"
    assert run.metrics["requests"] == (2 if others == "waiting" else 1)
    assert run.metrics["artifacts_missing"] == 0


async def test_an_agent_that_comes_back_finds_its_variables(lab: Lab) -> None:
    def reply(heard: Heard) -> Draft | None:
        script = [
            Draft("", (call("run_code", code="kept = 41"),)),
            Draft("", (call("request_additional_work", target_team="data", request="more"),)),
            Draft("", (call("run_code", code="print(kept + 1)"),)),
        ]
        turn = turn_of(heard)
        return script[turn] if agent_of(heard) == "ml_engineer" and turn < 3 else None

    run = await lab.play(work(reply))
    assert tool_results(lab, run, "run_code")[-1][1].strip() == "42"


@pytest.mark.parametrize(
    ("draft", "told"),
    [
        (
            Draft("I would rather talk."),
            'in this form: {"name": "run_code", "arguments": {"code": "print(df.describe())"}}',
        ),
        (Draft(""), "was empty. Answer again.\nNothing was done, since your reply called no tool."),
        (Draft("", (DraftCall("run_code", '{"code": "pri'),)), "could not be read"),
        (Draft("", (DraftCall("run_code", "[1]"),)), "could not be read"),
    ],
)
async def test_an_unusable_reply_is_counted_and_the_agent_told_why(lab: Lab, draft: Draft, told: str) -> None:
    seen: list[str] = []

    def reply(heard: Heard) -> Draft | None:
        if agent_of(heard) != "data_lead":
            return None
        last = text_of(heard.messages[-1].content)
        if not seen and "called no tool" not in last and "Your reply" not in last and "could not be read" not in last:
            return draft
        seen.append(last)
        return None

    run = await lab.play(work(reply))
    assert told in seen[0]
    assert run.usage.failed_replies == 1
    assert run.status == "completed"


async def test_a_plan_without_a_task_for_a_member_is_asked_for_again_in_its_form(lab: Lab) -> None:
    seen: list[str] = []

    def reply(heard: Heard) -> Draft:
        if step_of(heard) != "plan" or agent_of(heard) != "data_lead":
            return dutiful(heard)
        seen.append(text_of(heard.messages[-1].content))
        return Draft("- look\ndata_lead: look") if len(seen) == 1 else dutiful(heard)

    await lab.play(reply)
    assert seen[1].startswith("Your answer can't be used: it has no line with a task for data_engineer.\n")
    assert "\ndata_lead: …\ndata_engineer: …\n\nBudget: " in seen[1]


async def test_an_agent_that_never_gives_a_usable_reply_is_given_up(lab: Lab) -> None:
    run = await lab.play(lambda _: Draft(""), repair_turns=1)
    events = lab.events(run)
    assert run.status == "completed"
    assert run.metrics["artifacts_missing"] == 4
    assert run.usage.failed_replies == run.usage.llm_calls
    work_calls = [e for e in events if isinstance(e, LLMCallEvent) and "/work/" in e.step and e.agent == "data_lead"]
    assert len(work_calls) == 2
    assert all(isinstance(e.reason, str) for e in events if isinstance(e, FailedReplyEvent))


async def test_no_empty_message_and_no_unanswered_tool_call_is_ever_sent_back(lab: Lab) -> None:
    broken = [Draft(""), Draft("", (DraftCall("run_code", '{"co'),)), Draft("text"), Draft("  \n")]

    def play(heard: Heard) -> Draft:
        asked: set[str] = set()
        for message in heard.messages[1:]:
            assert text_of(message.content).strip() or getattr(message, "tool_calls", None)
            if message.type == "tool":
                asked.discard(message.tool_call_id)  # type: ignore[attr-defined]
            else:
                assert not asked
                asked = {c["id"] for c in getattr(message, "tool_calls", [])}
        assert not asked
        kinds = [m.type for m in heard.messages]
        assert "human" not in {a for a, b in pairwise(kinds) if a == b}
        return broken[(heard.seed + turn_of(heard)) % 4] if heard.seed % 3 else dutiful(heard)

    run = await lab.play(play)
    assert run.usage.failed_replies > 5


async def test_when_the_pool_is_empty_the_run_ends_as_exhausted_with_open_artifacts(lab: Lab) -> None:
    run = await lab.play(dutiful, budget="0.01")
    assert run.status == "exhausted"
    assert run.budget is not None
    assert float(run.budget["spent"]) <= 0.01
    assert 0 < run.metrics["artifacts_missing"] < 4
    assert run.metrics["accuracy"] == 0


async def test_a_run_with_no_money_makes_no_call(lab: Lab) -> None:
    run = await lab.play(dutiful, budget="0.000001")
    assert (run.status, run.usage.llm_calls) == ("exhausted", 0)
    assert run.metrics["completeness"] == 0


@pytest.mark.parametrize("visibility", ["full", "team", "hidden"])
async def test_agents_see_of_the_budget_what_the_setting_says(lab: Lab, visibility: str) -> None:
    heard_texts: list[tuple[str, str]] = []

    def play(heard: Heard) -> Draft:
        said = [json.dumps(list(heard.tools)), *(text_of(m.content) for m in heard.messages)]
        heard_texts.append((agent_of(heard), "\n".join(said)))
        return dutiful(heard)

    await lab.play(play, visibility=visibility)
    everything = "\n".join(text for _, text in heard_texts)
    assert ("Budget:" in everything) == (visibility != "hidden")
    for word in ("budget", "cost", "credits"):
        assert visibility != "hidden" or word not in everything.lower()
    assert ("left." in everything and "of $1.0000 spent" in everything) == (visibility == "full")
    if visibility == "team":
        assert "$1.0000" not in everything
        assert "data $" not in everything


async def test_theory_of_mind_is_asked_for_only_where_the_condition_says(lab: Lab) -> None:
    asked: list[bool] = []

    def play(heard: Heard) -> Draft:
        asked.append(any("put yourself in the place" in text_of(m.content) for m in heard.messages))
        return dutiful(heard)

    await lab.play(play, theory_of_mind=True)
    with_it, asked[:] = list(asked), []
    await lab.play(play)
    assert any(with_it)
    assert not any(asked)


async def test_each_team_can_have_a_model_of_its_own(lab: Lab) -> None:
    with puppet(dutiful, "author") as author:
        run = await lab.play(dutiful, model_for={"writing": author})
    models = {e.team: e.model for e in lab.events(run) if isinstance(e, LLMCallEvent)}
    other = "scripted:puppet"
    assert models == {"data": other, "model": other, "eval": other, "writing": author}
    assert run.models == [other, author]


async def test_plain_text_is_taken_where_a_model_writes_no_tool_call(lab: Lab) -> None:
    def play(heard: Heard) -> Draft:
        if step_of(heard).startswith("write"):
            return Draft("# Plain\nIt is written as text.")
        return dutiful(heard)

    run = await lab.play(play)
    bodies = lab.bodies(run)
    texts = {e.name: bodies.text(e.content) for e in lab.events(run) if isinstance(e, ArtifactEvent)}
    assert set(texts.values()) == {"# Plain\nIt is written as text."}
    assert len(texts) == 4


@pytest.mark.parametrize(
    ("names", "first", "last"),
    [
        (("notes", "paper"), "this is paper", "this is paper"),
        (("The Paper.md",), None, "this is The Paper.md"),
        (("dataset_description",), None, None),  # which is another team's
    ],
)
def test_the_artifact_is_found_among_what_the_lead_writes(
    names: tuple[str, ...], first: str | None, last: str | None
) -> None:
    calls = [
        {"name": "write_artifact", "args": {"name": name, "content": f"this is {name}"}, "id": name} for name in names
    ]
    reply = normalise(AIMessage("", tool_calls=calls), sent=[])
    for expected, is_last in ((first, False), (last, True)):
        workspace = Workspace(PIPELINE, "writing", {}, {})
        if expected is None:
            with pytest.raises(UnusableAnswerError, match="must be called `paper`"):
                take(workspace, reply, "paper", last=is_last)
        else:
            take(workspace, reply, "paper", last=is_last)
            assert workspace.text("paper") == expected


async def test_nothing_of_the_truth_reaches_a_prompt(lab: Lab) -> None:
    from labmates.tasks.registry import get_task
    from labmates.util.seeds import derive

    task = get_task("anomaly")
    truth = task.generate(derive(0, "dataset"), "easy").truth
    secret = task.oracle(truth).model_dump_json()[:200]
    texts: list[str] = []

    def play(heard: Heard) -> Draft:
        texts.extend(text_of(m.content) for m in heard.messages)
        return dutiful(heard)

    await lab.play(play)
    assert not any(secret in text for text in texts)
