"""Findings through a whole run of the lab: stated with the tool or in the paper, sent back, handed on, and scored."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from labmates.models.scripted.base import Draft, DraftCall, Heard, call
from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent, Event, FailedReplyEvent, FindingsEvent, LLMCallEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates.workflows.science.run import report_of
from tests.support.plays import played
from tests.support.puppet import Play, agent_of, dutiful, step_of, turn_of

PAPER = "# Paper\n\n## Results\nThere are 6 sensors."


class Told:
    """A run and what it recorded."""

    def __init__(self, store: Store, run: RunRecord) -> None:
        self.run = run
        self.events: list[Event] = store.events(run.id)
        self.bodies = Bodies(store.bodies(run.id))
        self.stated = [
            (e.team, e.version, self.bodies[e.findings], e.repaired)
            for e in self.events
            if isinstance(e, FindingsEvent)
        ]
        self.papers = [
            self.bodies.text(e.content) for e in self.events if isinstance(e, ArtifactEvent) and e.name == "final_paper"
        ]
        self.failed = [e.reason for e in self.events if isinstance(e, FailedReplyEvent)]
        self.orders = [
            self.bodies[e.messages[-1]]["content"]
            for e in self.events
            if isinstance(e, LLMCallEvent) and e.step.startswith("writing/0/lead_author/write")
        ]
        scores = {(score.judge, score.metric): score for score in store.scores(run.id)}
        self.score = scores["verified", "accuracy"]


def paper(content: str = PAPER) -> DraftCall:
    return call("write_artifact", name="final_paper", content=content)


def writing(*drafts: Draft) -> Play:
    """Be dutiful, and answer the order to write the paper with these, one after the other."""
    left = list(drafts)

    def play(heard: Heard) -> Draft:
        return left.pop(0) if "final_paper" in step_of(heard) else dutiful(heard)

    return play


@pytest.fixture
def lab(tmp_path: Path) -> Any:
    store = Store(f"sqlite:///{tmp_path}/runs.db")

    async def play(how: Play, **condition: Any) -> Told:
        return Told(store, await played(store, how, **condition))

    yield play
    store.close()


Lab = Callable[..., Any]


async def test_a_wrong_statement_goes_back_with_what_is_allowed_and_the_right_one_counts(lab: Lab) -> None:
    wrong = Draft("", (call("state_findings", n_sensors="many", mood=1), paper()))
    right = Draft("", (call("state_findings", n_sensors="6"),))
    told = await lab(writing(wrong, right))
    assert told.stated == [
        ("writing", 1, {"n_sensors": 6}, [{"what": "number written as '6'", "where": "field 'n_sensors'"}])
    ]
    assert told.papers == [PAPER]
    assert len(told.orders) == 2
    assert "field 'n_sensors': 'many' is not a plain number" in told.orders[1]
    assert "- n_sensors (whole number): number of sensors" in told.orders[1]
    assert "unknown field 'mood'" in told.orders[1]
    assert "`final_paper` is kept (40 characters): do not write it again." in told.orders[1]
    assert any("nothing was recorded" in reason for reason in told.failed)
    assert (told.score.details["source"], told.score.details["readable"]) == ("tool", True)
    assert told.score.details["repaired"] == told.stated[0][3]
    assert told.score.details["findings"] == {"n_sensors": 6}
    assert told.run.status == "completed"


async def test_findings_stated_in_a_reply_of_their_own_are_shown_with_the_papers_order(
    lab: Lab,
) -> None:
    told = await lab(
        writing(Draft("First the findings.", (call("state_findings", n_sensors=6),)), Draft("", (paper(),)))
    )
    assert told.papers == [PAPER]
    assert 'What stands:\n{"n_sensors": 6}' in told.orders[1]
    assert "`final_paper` is still to be written." in told.orders[1]
    assert told.failed == []


async def test_the_last_statement_counts(lab: Lab) -> None:
    calls = (call("state_findings", n_sensors=5), paper(), call("state_findings", n_sensors=6))
    told = await lab(writing(Draft("", calls)))
    assert [(version, values) for _, version, values, _ in told.stated] == [
        (1, {"n_sensors": 5}),
        (2, {"n_sensors": 6}),
    ]
    assert told.score.details["findings"] == {"n_sensors": 6}
    assert len(told.orders) == 1


@pytest.mark.parametrize("block", ['```json\n{"n_sensors": "6",}\n```', "```findings\n{}\n```"])
async def test_a_paper_whose_findings_can_be_read_is_not_sent_back(lab: Lab, block: str) -> None:
    told = await lab(writing(Draft("", (paper(f"{PAPER}\n\n{block}"),))))
    assert (len(told.orders), told.failed, told.stated) == (1, [], [])
    assert (told.score.details["source"], told.score.details["readable"]) == ("report", True)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (PAPER, "states no findings that can be read"),
        (f'{PAPER}\n\n```findings\n{{"n_sensors": "six", "n_point": 1}}\n```', "'six' is not a plain number"),
        (f"{PAPER}\n\n```findings\n[6]\n```", "not a JSON object"),
    ],
)
async def test_a_paper_whose_findings_can_not_be_read_is_sent_back_once_with_the_fault(
    lab: Lab, text: str, fault: str
) -> None:
    told = await lab(writing(Draft("", (paper(text),)), Draft("", (call("state_findings", n_sensors=6),))))
    assert fault in told.orders[1]
    assert "The findings of the paper can't be read" in told.failed[0]
    assert told.papers == [text]
    assert told.score.details["source"] == "tool"


async def test_who_can_call_no_tool_answers_with_a_block_that_is_added_to_the_paper(lab: Lab) -> None:
    told = await lab(writing(Draft(PAPER), Draft('```findings\n{"n_sensors": 6}\n```')))
    assert len(told.papers) == 2
    assert told.papers[1].startswith(PAPER)
    assert told.score.details["findings"] == {"n_sensors": 6}
    assert told.score.details["source"] == "report"


@pytest.mark.parametrize(
    "answer", [Draft("I have no findings."), Draft(""), Draft("", (call("state_findings", mood=1),))]
)
async def test_who_still_states_nothing_keeps_the_paper_and_earns_nothing(lab: Lab, answer: Draft) -> None:
    told = await lab(writing(Draft("", (paper(),)), *[answer] * 3))
    assert told.papers == [PAPER]
    assert (told.score.value, told.score.details["source"]) == (0.0, "none")
    assert len(told.orders) <= 4
    assert told.run.status == "completed"


async def test_without_repair_turns_nothing_is_sent_back(lab: Lab) -> None:
    told = await lab(writing(Draft("", (paper(),))), repair_turns=0)
    assert (len(told.orders), told.papers) == (1, [PAPER])


async def test_who_states_findings_for_ever_is_not_asked_for_ever(lab: Lab) -> None:
    told = await lab(writing(*[Draft("", (call("state_findings", n_sensors=6),))] * 20))
    assert len(told.orders) == 5
    assert told.papers == []
    assert told.score.details["findings"] == {"n_sensors": 6}


def handing_on(heard: Heard) -> Draft:
    """Let the leads of the data and eval teams state findings, one at work and one at its hand-over."""
    step, agent = step_of(heard), agent_of(heard)
    if step == "work" and agent in ("data_lead", "data_engineer") and turn_of(heard) == 0:
        return Draft("", (call("state_findings", n_sensors=6, n_point=1),))
    if step.startswith("write") and agent == "eval_lead":
        return Draft("", (call("state_findings", n_sensors="7"), *dutiful(heard).calls))
    return dutiful(heard)


async def test_leads_of_all_teams_state_findings_and_later_teams_read_them_as_data(lab: Lab) -> None:
    told = await lab(handing_on)
    assert [(team, version, values) for team, version, values, _ in told.stated] == [
        ("data", 1, {"n_sensors": 6, "n_point": 1}),
        ("eval", 1, {"n_sensors": 7}),
        ("writing", 1, {}),
    ]
    data = '=== data team ===\n{"n_sensors": 6,\n "n_point": 1}'
    evaluated = '=== eval team ===\n{"n_sensors": 7}'
    seen = {
        e.step: text_of_order(told.bodies, e)
        for e in told.events
        if isinstance(e, LLMCallEvent) and e.step.split("/")[-2] in ("plan", "write")
    }
    assert [step.split("/")[0] for step, text in seen.items() if data in text] == ["data"] + ["model"] * 2 + [
        "eval"
    ] * 2 + ["writing"] * 2
    assert [step.split("/")[0] for step, text in seen.items() if evaluated in text] == ["writing"] * 2
    refused = [
        told.bodies.text(e.result)
        for e in told.events
        if e.type == "tool_call" and e.agent == "data_engineer" and not e.ok
    ]
    assert len(refused) == 1
    assert "you have no tool 'state_findings'" in refused[0]
    assert {team: stated["findings"] for team, stated in told.score.details["teams"].items()} == {
        "data": {"n_sensors": 6, "n_point": 1}, "eval": {"n_sensors": 7}, "writing": {},
    }  # fmt: skip


def text_of_order(bodies: Bodies, event: LLMCallEvent) -> str:
    return str(bodies[event.messages[-1]]["content"])


async def test_the_tool_has_the_fields_of_the_task_for_the_lead_at_work_and_in_writing(lab: Lab) -> None:
    held: dict[tuple[str, str], Sequence[Any]] = {}
    may: list[tuple[str, str]] = []

    def play(heard: Heard) -> Draft:
        key = agent_of(heard), step_of(heard).partition(" ")[0]
        held[key] = heard.tools
        if key[1] in ("work", "write") and "state_findings" in heard.tool_names():
            may.append(key)
        return dutiful(heard)

    await lab(play)
    told = {
        key: tool["function"]
        for key, tools in held.items()
        for tool in tools
        if tool["function"]["name"] == "state_findings"
    }
    leads = ["data_lead", "ml_engineer", "eval_lead", "lead_author"]
    expected = [(lead, step) for lead in leads for step in ("work", "write")]
    assert sorted([*may, ("lead_author", "work")]) == sorted(expected)  # who writes the paper does not draft it before
    assert sorted(told) == sorted(held)
    for function in told.values():
        assert "n_sensors" in function["parameters"]["properties"]
        assert json.loads(json.dumps(function)) == function


async def test_one_agent_alone_states_findings_too(lab: Lab) -> None:
    def play(heard: Heard) -> Draft:
        if step_of(heard) == "work" and turn_of(heard) == 0:
            return Draft("", (call("state_findings", n_sensors=5),))
        if step_of(heard).startswith("write"):
            return Draft("", (call("state_findings", n_sensors=6), paper()))
        return dutiful(heard)

    told = await lab(play, solo=True)
    assert [(team, version) for team, version, _, _ in told.stated] == [("solo", 1), ("solo", 2)]
    assert told.score.details["findings"] == {"n_sensors": 6}
    condition = ScienceCondition.model_validate(told.run.condition)
    report = report_of(condition, told.run.seed, told.events, told.bodies)
    assert report.stated == {"n_sensors": 6}
    assert [trace.team for trace in report.trail if trace.kind == "findings"] == ["solo", "paper"]
