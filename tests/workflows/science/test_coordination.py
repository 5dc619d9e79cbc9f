"""The measures of coordination, on events written by hand whose true values are known."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import pytest

from labmates.records.bodies import Bodies
from labmates.records.events import (
    ArtifactEvent,
    ChargeEvent,
    Event,
    FindingsEvent,
    LLMCallEvent,
    MessageEvent,
    PhaseEvent,
    ToolCallEvent,
)
from labmates.records.store import Store
from labmates.workflows.protocol.analysis import Params, Runs
from labmates.workflows.science.analyses.declared import COORDINATION
from labmates.workflows.science.lab.coordination import (
    Coordination,
    HandOver,
    coordination,
    coordination_shares,
    marks,
    stages,
)
from tests.support.recorded import add


class Story:
    """Writes the events of a run of one team; each call takes 100 tokens and 1,000 micro-dollars."""

    def __init__(self) -> None:
        self.bodies = Bodies()
        self.events: list[Event] = []
        self._prompts: dict[str, list[int]] = {}

    def call(
        self, agent: str, step: str, heard: str = "", said: str = "", uses: list[dict[str, Any]] | None = None
    ) -> None:
        reply = self.bodies.keep({"role": "assistant", "content": said, "tool_calls": uses or []})
        prompt = self._prompts.setdefault(agent, [])
        prompt.append(self.bodies.keep({"role": "user", "content": f"To {agent} at {step}. {heard}"}))
        where = self._where(agent, step)
        self.events += [
            LLMCallEvent(
                **where,
                model="m",
                messages=[*prompt],
                reply=reply,
                finish="stop",
                input_tokens=80,
                output_tokens=20,
                seed=0,
            ),
            ChargeEvent(**where, amount=1_000),
        ]
        prompt.append(reply)

    def code(self, agent: str, step: str, code: str, printed: str = "") -> None:
        self.tool(agent, step, "run_code", {"code": code}, printed, status="ok")

    def tool(
        self, agent: str, step: str, name: str, arguments: dict[str, Any], result: str = "", status: str = ""
    ) -> None:
        keep = self.bodies.keep
        call = {"tool": name, "arguments": keep(arguments), "result": keep(result), "ok": True, "status": status}
        self.events.append(ToolCallEvent(**self._where(agent, step), **call))

    def say(self, agent: str, text: str, to: str = "group") -> None:
        self.events.append(MessageEvent(**self._where(agent, "said"), to=to, text=self.bodies.keep(text)))

    def write(self, agent: str, name: str, text: str) -> None:
        written = {"name": name, "version": 1, "content": self.bodies.keep(text)}
        self.events.append(ArtifactEvent(**self._where(agent, "wrote"), **written))

    def state(self, agent: str, findings: dict[str, Any]) -> None:
        self.events.append(
            FindingsEvent(**self._where(agent, "stated"), findings=self.bodies.keep(findings), version=1)
        )

    def measured(self, *seats: str) -> Coordination:
        return coordination(self.events, self.bodies, seats)

    @staticmethod
    def _where(agent: str, step: str) -> dict[str, str]:
        """A step whose first number is the phase: seats of one phase work side by side."""
        phase = (*step.split("/"), "0")[1]
        return {"step": f"group/{phase}/{agent}/{step}", "team": "group", "agent": agent}


def use(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"id": "c", "name": name, "args": arguments}


@pytest.fixture
def story() -> Story:
    return Story()


def test_the_author_of_an_artifact_is_the_same_for_any_order_of_a_stage(story: Story) -> None:
    def shares(first: str, second: str) -> dict[str, float]:
        story = Story()
        for seat in (first, second):
            story.call(seat, "work/0/0", uses=[use("write_artifact", name="notes", content="x")])
            story.write(seat, "notes", f"notes of {seat}")
            story.call(seat, "work/0/1", uses=[use("read_artifact", name="notes")])
            story.tool(seat, "work/0/1/read", "read_artifact", {"name": "notes"})
        for seat in (first, second, "cho"):
            story.call(seat, "work/1/0", uses=[use("read_artifact", name="notes")])
        return coordination_shares(story.events, story.bodies)

    measured = shares("ana", "ben")
    assert measured == shares("ben", "ana")
    assert {step: share for step, share in measured.items() if share} == {"group/1/cho/work/1/0": 1.0}


def test_plans_bids_and_talk_are_coordination_and_work_is_not(story: Story) -> None:
    story.call("ana", "plan/0")
    story.call("ana", "bid/0")
    story.call("ana", "deliberation/1/0")
    story.call("ana", "work/0", uses=[use("run_code", code="1")])
    story.call("ana", "write/0", uses=[use("write_artifact", name="final_paper", content="x")])
    measured = story.measured()
    assert [measured.metrics[f"coordination_{what}"] for what in ("tokens", "credits")] == [0.6, 0.6]


def test_a_call_is_divided_among_the_tools_that_its_reply_calls(story: Story) -> None:
    story.call("ana", "work/0", uses=[use("send_message", to_team="b", content="x"), use("run_code", code="1")])
    story.call("ana", "work/1", uses=[use("transfer_to_ben")])
    assert story.measured().metrics["coordination_tokens"] == 0.75


def test_the_model_calls_of_an_agent_are_those_of_the_reply_for_which_it_made_them(story: Story) -> None:
    heard = ""
    for seat in ("ana", "ben"):
        said = f"The words of {seat}, at some length."
        for step in ("deliberation/1/0/model/0", "deliberation/1/0/model/1", "deliberation/1/0"):
            story.call(seat, step, heard, said)
        story.say(seat, said)
        heard = said
    story.call("ana", "work/0/model/0", uses=[use("web_search"), use("web_search")])
    story.call("ana", "work/0", uses=[use("send_message", to_team="b", content="x")])
    steps = [event.step for event in story.events if isinstance(event, LLMCallEvent)]
    numbers = dict(zip([event.step for event in story.events], stages(story.events), strict=True))
    assert [numbers[step] for step in steps] == [1, 1, 1, 2, 2, 2, 3, 3]
    assert coordination_shares(story.events, story.bodies)["group/0/ana/work/0/model/0"] == 1.0
    assert [each.credits for each in story.measured().hand_overs] == [3_000]


def test_reading_others_is_coordination_and_reading_oneself_is_not(story: Story) -> None:
    story.write("ana", "notes", "text")
    story.call("ana", "work/0", uses=[use("read_artifact", name="notes")])
    story.call("ben", "work/0", uses=[use("read_artifact", name="notes")])
    assert story.measured().metrics["coordination_tokens"] == 0.5


def received(story: Story) -> dict[tuple[str, str], HandOver]:
    return {(each.kind, each.receiver): each for each in story.measured().hand_overs}


def test_a_message_is_used_by_whom_it_told_something_new_that_its_code_holds(story: Story) -> None:
    said = "The sensor VT353 drifts by 0.4172 a day."
    story.call("ana", "deliberation/1/0", said=said)
    story.say("ana", said)
    for agent in ("ben", "cho"):
        story.call(agent, "deliberation/1/0", heard=f"[ana]: {said}")
    story.code("ben", "work/1/0", "drift = 0.4172 * days")
    story.code("cho", "work/1/0", "print(df.mean())")
    found = received(story)
    assert [found["message", agent].used for agent in ("ben", "cho")] == [True, False]
    assert found["message", "ben"].fresh == {"VT353", "0.4172"}
    assert found["message", "ben"].credits == found["message", "cho"].credits == 500
    measured = story.measured().metrics
    assert [measured[name] for name in ("messages", "messages_used", "hand_overs")] == [1, 1, 2]


@pytest.mark.parametrize("own_first", [False, True])
def test_a_number_that_the_receiver_computed_itself_is_not_used(story: Story, own_first: bool) -> None:
    def compute() -> None:
        story.code("ben", "work/0/0", "print(df.x.mean())", "0.4172")
        story.call("ben", "work/1", heard="0.4172")

    if own_first:
        compute()
    story.say("ana", "The mean is 0.4172.")
    story.call("ben", "work/2", heard="The mean is 0.4172.")
    if not own_first:
        compute()
    story.state("ben", {"mean": 0.4172})
    assert not received(story)["message", "ben"].used


def test_an_artifact_a_report_and_a_plan_are_handed_over_too(story: Story) -> None:
    story.call("ana", "plan/0", said="The work:\nben: fit the growth model with a lag of 125 days")
    story.call("ben", "work/0", heard="Your task: fit the growth model with a lag of 125 days")
    story.write("ben", "keys", '{"C01": 0.9871}')
    story.tool("ben", "work/1/0", "mark_complete", {"summary": "The rate is 0.3391 for C01."})
    story.call("ana", "work/2", heard='{"C01": 0.9871} and ben reports: The rate is 0.3391 for C01.')
    story.state("ana", {"rate": 0.3391})
    story.code("ben", "work/2/0", "shift(125)")
    found = received(story)
    assert {place: each.used for place, each in found.items()} == {
        ("plan", "ben"): True,
        ("artifact", "ana"): False,
        ("report", "ana"): True,
    }


def test_seats_that_work_side_by_side_have_the_same_measures_in_any_order_of_events() -> None:
    def story(*, ana_first: bool) -> Coordination:
        told = Story()
        told.call("boss", "plan/0", said="Start.")
        told.call("ana", "work/0")
        if ana_first:
            told.tool("ana", "work/0/0", "mark_complete", {"summary": "The rate is 0.3391 for C01."})
        told.call("ben", "work/0", heard="Your code printed: The rate is 0.3391 for C01.")
        if not ana_first:
            told.tool("ana", "work/0/0", "mark_complete", {"summary": "The rate is 0.3391 for C01."})
        told.state("ben", {"rate": 0.3391})
        return told.measured()

    assert story(ana_first=True).metrics == story(ana_first=False).metrics


def test_what_no_prompt_holds_has_reached_nobody(story: Story) -> None:
    story.say("ana", "The mean is 0.4172.")
    story.call("ben", "work/0", heard="Do your task.")
    story.state("ben", {"mean": 0.4172})
    measured = story.measured()
    assert (measured.metrics["messages"], measured.hand_overs) == (1, ())


def test_replies_in_a_graph_of_ones_own_are_messages_to_who_gets_them(story: Story) -> None:
    story.call("ana", "work/0", said="The half-life is 17.25 hours.")
    story.call("boss", "work/0", heard="ana: The half-life is 17.25 hours.")
    story.write("boss", "final_paper", "We find a half-life of 17.25 hours.")
    assert received(story)["message", "boss"].used


def test_redundancy_is_the_share_of_quantities_that_several_seats_computed(story: Story) -> None:
    story.code("ana", "work/0/0", "a", "0.4172 and 5,555 rows, 12 columns")
    story.code("ben", "work/0/0", "b", "5555 rows; slope 0.30870")
    assert story.measured().metrics["redundancy"] == 0.25


def test_seats_without_code_artifact_or_findings_are_idle(story: Story) -> None:
    story.code("ana", "work/0/0", "1")
    story.state("ben", {})
    story.call("cho", "deliberation/1/0", said="I agree.")
    assert story.measured("ana", "ben", "dan").metrics["idle_seats"] == 2


def test_requests_are_counted_as_asked_and_answered(story: Story) -> None:
    for place in range(3):
        story.tool("ana", f"work/{place}/0", "request_additional_work", {"target_team": "data", "request": "more"})
    story.events += [
        PhaseEvent(team="data", status="started", number=1, reason="additional"),
        PhaseEvent(team="data", status="ended", number=1, reason="additional"),
        PhaseEvent(team="data", status="skipped", number=2, reason="additional"),
    ]
    measured = story.measured().metrics
    assert (measured["requests_asked"], measured["requests_answered"]) == (3, 1)


def test_a_run_without_events_measures_nothing() -> None:
    assert set(coordination([], Bodies()).metrics.values()) == {0}


def test_short_numbers_and_plain_words_mark_no_message() -> None:
    text = "We found 12 events, at 40 % of Calvora hirta and mass_loss 1,250.50; see T01 or the table."
    assert marks(text) == {"Calvora", "mass_loss", "1250.5", "T01"}


def compute(store: Store) -> dict[str, list[dict[str, Any]]]:
    records = list(store.runs())
    result = COORDINATION.compute(Runs.given(store, records), Params())
    return {table.name: list(table.rows) for table in result.tables}


def test_an_analysis_averages_by_condition_and_measures_runs_of_earlier_versions(store: Store, story: Story) -> None:
    story.call("ana", "plan/0")
    story.call("ana", "work/0", uses=[use("run_code", code="1")])
    add(store, "science", story.events, story.bodies, metrics={"skill": 0.5})
    kept = {**story.measured().metrics, "coordination_tokens": 1.0}
    add(store, "science", [], Bodies(), metrics=kept, replicate=1)
    solo = {"task": "anomaly", "budget": "1", "solo": True}
    add(store, "science", [], Bodies(), metrics=kept, key="other", condition=solo)
    both, alone = sorted(compute(store)["coordination"], key=itemgetter("organisation"))
    assert (both["organisation"], both["runs"], both["coordination_tokens"]) == ("pipeline", 2, 0.75)
    assert (alone["organisation"], alone["runs"], alone["coordination_tokens"]) == ("solo", 1, 1.0)


def test_the_answer_compares_organisations_where_all_else_is_equal(store: Store, story: Story) -> None:
    kept = {**story.measured().metrics, "coordination_tokens": 0.5}
    for task in ("anomaly", "ecology"):
        for name, share in (("solo", 0.1), ("pipeline", 0.5)):
            for number in range(2):
                values = {**kept, "coordination_tokens": share}
                where = {"task": task, "budget": "1", "organisation": name}
                add(store, "science", [], Bodies(), metrics=values, key=task + name, replicate=number, condition=where)
    verdict = COORDINATION.compute(Runs.given(store, list(store.runs())), Params()).verdict
    assert sorted(sentence.partition(":")[0] for sentence in verdict) == ["In anomaly", "In ecology"]
    assert all("Highest coordination tokens: pipeline" in sentence for sentence in verdict)
