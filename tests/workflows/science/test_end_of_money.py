"""The end of a pool: which output limit a call has and what the agent reads of it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from labmates.budgets.tokens import text_of
from labmates.models.scripted.base import Draft, Heard, call
from labmates.records.events import ArtifactEvent, LLMCallEvent
from labmates.records.run import RunRecord
from labmates.studies.replay import replay
from labmates.studies.runs import new_runs
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.calls.stop_signal import StopSignal
from labmates.workflows.protocol.experiment import make_condition
from tests.support.command_line import Labmates
from tests.support.puppet import agent_of, dutiful, puppet, step_of, turn_of
from tests.support.story import story
from tests.support.teams import TEAMS
from tests.workflows.science.test_science_lab import Lab, tool_results

LIMIT = re.compile(r"^Length limit: at most (\d+) tokens in this reply", re.MULTILINE)
LONG = "All of this has to be said once more, in other words. " * 2_000


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.store.close()


def endless(heard: Heard) -> Draft:
    """Be dutiful, but find no end in an artifact."""
    if not step_of(heard).startswith("write"):
        return dutiful(heard)
    name = step_of(heard).split("`")[1]
    return Draft("", (call("write_artifact", name=name, content=LONG),))


def calls_of(lab: Lab, run: RunRecord) -> list[LLMCallEvent]:
    return [event for event in lab.events(run) if isinstance(event, LLMCallEvent)]


@pytest.mark.parametrize("visibility", ["full", "hidden"])
async def test_a_limit_that_is_lowered_or_that_a_text_must_fit_is_told_as_it_is_sent(lab: Lab, visibility: str) -> None:
    sent: list[tuple[str, int | None, list[str], str]] = []

    def play(heard: Heard) -> Draft:
        last = text_of(heard.messages[-1].content)
        sent.append((step_of(heard), heard.max_tokens, LIMIT.findall(last), last))
        return endless(heard)

    run = await lab.play(play, budget="0.03", reserve="0", visibility=visibility)
    assert {limit for _, limit, _, _ in sent} > {4096}, "the pool has to run low in this test"
    for step, limit, told, last in sent:
        is_told = limit != 4096 if visibility == "full" else False
        assert told == ([str(limit)] if is_told or (limit == 4096 and step.startswith("write")) else [])
        assert visibility != "hidden" or "budget" not in last.lower()
    calls = calls_of(lab, run)
    assert [event.output_limit for event in calls] == [limit for _, limit, _, _ in sent]
    assert all(event.output_tokens <= (event.output_limit or 0) for event in calls)
    remarks = [
        (before, found[1])
        for (_, before, _, _), (_, _, _, text) in pairwise(sent)
        if (found := re.search(r"cut off at its length limit of (\d+) tokens", text))
    ]
    assert bool(remarks) == (visibility == "full")
    assert all(str(before) == told for before, told in remarks)


async def test_a_run_at_the_end_of_its_pool_is_replayed_exactly(lab: Lab) -> None:
    run = await lab.play(endless, budget="0.03")
    replayed = await replay(lab.store, run)
    assert replayed.differences == ()
    assert replayed.is_same


def versions_of(lab: Lab, run: RunRecord, name: str) -> list[tuple[int, bool, str]]:
    bodies = lab.bodies(run)
    found = [e for e in lab.events(run) if isinstance(e, ArtifactEvent) and e.name == name]
    return [(event.version, event.partial, bodies.text(event.content)) for event in found]


WORDS = "## Abstract\n" + " ".join(f"word{number}" for number in range(1_200)) + "\n\n## Results\nThe end."


def persevering(heard: Heard) -> Draft:
    """Be dutiful, and write long artifacts; where one was cut, go on from what the remark shows of its end."""
    if not step_of(heard).startswith("write"):
        return dutiful(heard)
    name = step_of(heard).split("`")[1]
    order = text_of(heard.messages[-1].content)
    if "It ends with:\n" not in order:
        return Draft("", (call("state_findings"), call("write_artifact", name=name, content=WORDS)))
    tail = order.partition("It ends with:\n")[2].partition("\n\nContinue exactly there")[0]
    return Draft("", (call("append_artifact", name=name, content=WORDS.partition(tail)[2]),))


async def test_what_was_cut_off_is_continued_until_the_artifact_stands_whole(lab: Lab) -> None:
    run = await lab.play(persevering, max_output_tokens=1000)
    for team in TEAMS.values():
        versions = versions_of(lab, run, team.artifact)
        assert [number for number, _, _ in versions] == list(range(1, len(versions) + 1))
        assert [partial for _, partial, _ in versions] == [True] * (len(versions) - 1) + [False]
        assert len(versions) > 2
        texts = [text for _, _, text in versions]
        assert all(later.startswith(earlier) for earlier, later in pairwise(texts))
        assert texts[-1] == WORDS
    assert run.status == "completed"
    assert run.usage.failed_replies > 0


async def test_the_order_stays_short_while_an_artifact_is_continued(lab: Lab) -> None:
    orders: list[str] = []

    def play(heard: Heard) -> Draft:
        if "final_paper" in step_of(heard):
            assert len(heard.messages) == 2
            orders.append(text_of(heard.messages[-1].content))
        return persevering(heard)

    await lab.play(play, max_output_tokens=1000)
    assert len(orders) > 2
    assert all(order.count("It ends with:") == 1 for order in orders[1:])
    assert "Abstract" in orders[-1].partition("with the sections:")[2]
    assert max(map(len, orders)) < len(orders[0]) + 1_200


@pytest.mark.parametrize("model", [endless, persevering])
async def test_a_pool_in_which_every_reply_is_cut_still_yields_an_artifact(lab: Lab, model: Any) -> None:
    run = await lab.play(model, budget="0.016", deliberation_rounds=0, solo=True)
    [*_, (_, _, text)] = versions_of(lab, run, "final_paper")
    assert len(text) > 3_000
    assert float((run.budget or {})["spent"]) <= 0.016


async def test_who_starts_over_each_time_keeps_the_longest_text(lab: Lab) -> None:
    run = await lab.play(endless, budget="0.03")
    for team in TEAMS.values():
        lengths = [len(text) for _, _, text in versions_of(lab, run, team.artifact)]
        assert lengths == sorted(lengths)


async def test_a_plain_text_that_is_cut_is_kept_and_continued(lab: Lab) -> None:
    def play(heard: Heard) -> Draft:
        draft = persevering(heard)
        return Draft(json.loads(draft.calls[-1].arguments)["content"]) if step_of(heard).startswith("write") else draft

    run = await lab.play(play, max_output_tokens=1000)
    [(_, begun, _), *_, (_, partial, text)] = versions_of(lab, run, "final_paper")
    assert (begun, partial) == (True, False)
    # White space at the ends of a text reply is not kept.
    assert "".join(text.split()) == "".join(WORDS.split())


async def test_idle_talk_before_a_call_that_was_cut_is_no_artifact(lab: Lab) -> None:
    def play(heard: Heard) -> Draft:
        draft = dutiful(heard)
        if step_of(heard).startswith("write") and "cut off" not in text_of(heard.messages[-1].content):
            return Draft("Here it comes. " * 120, (call("write_artifact", name="x" * 3_000, content=LONG),))
        return draft

    run = await lab.play(play, max_output_tokens=600)
    assert [text for _, _, text in versions_of(lab, run, "final_paper")] == ["# final_paper\nAll is said."]


async def test_a_member_at_work_continues_what_was_cut_and_changes_parts(lab: Lab) -> None:
    remarks: list[str] = []
    script = [
        Draft("", (call("write_artifact", name="notes", content=WORDS),)),
        Draft("", (call("list_artifacts"), call("append_artifact", name="notes", content=" (here I stop)"))),
        Draft("", (call("replace_section", name="notes", heading="abstract", content="Shorter."),)),
        Draft("", (call("replace_section", name="notes", heading="Fit", content="None."),)),
    ]

    def play(heard: Heard) -> Draft:
        turn = turn_of(heard)
        if step_of(heard) != "work" or agent_of(heard) != "data_lead":
            return dutiful(heard)
        # What was cut has no call that could be sent back: its turn is told in the order.
        turn = sum(m.type == "ai" for m in heard.messages) + ("It ends with:" in text_of(heard.messages[1].content))
        remarks.append(text_of(heard.messages[-1].content))
        return script[turn] if turn < len(script) else dutiful(heard)

    run = await lab.play(play, max_output_tokens=800)
    versions = versions_of(lab, run, "notes")
    assert [partial for _, partial, _ in versions] == [True, False, False]
    assert versions[1][2] == versions[0][2] + " (here I stop)"
    assert versions[2][2] == "## Abstract\nShorter.\n"
    assert "a partial version" in remarks[1]
    listed = tool_results(lab, run, "list_artifacts")[0][1]
    assert "partial: it breaks off" in listed
    assert "no section 'Fit'. Its sections: 'Abstract'" in tool_results(lab, run, "replace_section")[1][1]


async def test_what_teammates_add_at_the_same_time_stands_one_after_the_other(lab: Lab) -> None:
    def play(heard: Heard) -> Draft:
        agent, first = agent_of(heard), turn_of(heard) == 0
        if step_of(heard) == "work" and first and agent == "data_lead":
            return Draft("", (call("write_artifact", name="log", content="Begun."),))
        if step_of(heard) == "work" and first and agent in ("ml_engineer", "statistician"):
            return Draft("", (call("append_artifact", name="log", content=f"By {agent}."),))
        return dutiful(heard)

    run = await lab.play(play)
    assert versions_of(lab, run, "log")[-1] == (3, False, "Begun.\n\nBy ml_engineer.\n\nBy statistician.")


async def test_a_run_with_partial_artifacts_is_replayed_and_shown(lab: Lab, labmates: Labmates) -> None:
    for play in (persevering, endless):
        run = await lab.play(play, budget="0.03", max_output_tokens=1000)
        assert (await replay(lab.store, run)).differences == ()
        shown = await asyncio.to_thread(labmates, "show", run.id, "--store", lab.url)
        assert re.search(r"wrote \w+, version 1 \(partial\)", shown.out)


@pytest.mark.parametrize("dies_at", [3, 10, 12])
async def test_a_killed_run_continues_its_artifacts_to_the_same_end(lab: Lab, dies_at: int) -> None:
    condition = {"budget": "0.05", "max_output_tokens": 1000}
    expected = await lab.play(persevering, **condition)
    calls = 0
    stop_signal = StopSignal()

    def stopping(heard: Heard) -> Draft:
        nonlocal calls
        calls += 1
        if calls == dies_at:
            stop_signal.pull()
        return persevering(heard)

    with puppet(stopping) as model:
        words = {"task": "anomaly", "difficulty": "easy", "model": model, **condition}
        settings = RunSettings(sandbox="unsafe-local")
        runs = new_runs(make_condition("science", words), seed=0, replicates=1, settings=settings)
        [stopped] = await Session(lab.store, settings, stop_signal=stop_signal).execute(runs)
        assert stopped.status == "interrupted"
        [ended] = await Session(lab.store, settings).execute([lab.store.run(stopped.id)])
    assert story(lab.store, ended.id) == story(lab.store, expected.id)
    assert ended.budget == expected.budget
