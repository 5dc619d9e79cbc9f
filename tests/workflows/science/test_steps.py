"""Kinds of steps: declarations, those that members take at the same time, and a step of another package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_files import find_organisation
from labmates.agents.steps import STEPS, StepKind, fault_of, find_step
from labmates.budgets.tokens import text_of
from labmates.cli.main import run_command
from labmates.errors import UsageError
from labmates.models.scripted.base import Draft, Heard, call
from labmates.records.events import ArtifactEvent, ChargeEvent, LLMCallEvent, MessageEvent
from labmates.records.run import RunRecord
from labmates.studies.replay import replay
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates.workflows.science.lab.coordination import stages
from labmates.workflows.science.steps.base import LabStep
from labmates.workflows.science.steps.running import StepRun
from labmates_author.organisations import check_organisation
from tests.support.plugins import ROOT, install
from tests.support.puppet import agent_of, dutiful, step_of
from tests.workflows.science.test_science_lab import Lab

SECTIONS = ["Results"]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.store.close()


def organisation(*phases: list[Any], **more: Any) -> Organisation:
    seats = {name: {"title": name, "part": f"Be {name}."} for name in ("ana", "ben", "cho")}
    team = {"artifact": "final_paper", "sections": SECTIONS, "seats": seats}
    flow = [{"t": steps} for steps in phases]
    return Organisation.model_validate({"name": "trio", "size": 3, "flow": flow, "teams": {"t": team}, **more})


def play(heard: Heard) -> Draft:
    """Work, talk, review, vote and write, each in words that can be told apart."""
    step, agent = step_of(heard), agent_of(heard)
    if step == "review":
        return Draft(f"- Results: {agent} misses the number {len(agent)}01.")
    if step == "vote":
        return Draft(f"{'ana' if agent != 'ana' else 'cho'}: most of it is checked")
    if step.startswith("debate"):
        return Draft(f"{agent} stands for {step.split()[2][0]}07 in {step.partition(',')[0]}.")
    if step.startswith("write"):
        seen = sum("# Step: write" in text_of(m.content) for m in heard.messages)
        text = f"# Paper\n{'First version, ' if seen else ''}" + "all of it is said here. " * 5
        return Draft("", (call("state_findings"), call("write_artifact", name="final_paper", content=text)))
    return dutiful(heard)


def prompts(lab: Lab, run: RunRecord, step: str) -> str:
    """The last prompt of the first call of a step."""
    bodies = lab.bodies(run)
    call_ = next(e for e in lab.events(run) if isinstance(e, LLMCallEvent) and e.step == f"{step}/0")
    return str(bodies[call_.messages[-1]]["content"])


async def test_a_reviewed_author_sees_the_first_version_the_reviews_and_the_material(lab: Lab) -> None:
    run = await lab.play(play, organisation=organisation(["work", "write"], ["review", "write"]))
    assert (run.status, run.metrics["messages"]) == ("completed", 2)
    asked = [e.step for e in lab.events(run) if isinstance(e, LLMCallEvent) and "/review/" in e.step]
    assert sorted(asked) == ["t/1/ben/review/0", "t/1/cho/review/0"]
    order = prompts(lab, run, "t/1/ana/write")
    for part in ("[ben]: - Results: ben misses", "[cho]: - Results", "=== final_paper ===", "settle each point"):
        assert part in order, part
    assert "Reported: ben is done" in order
    assert "all of it is said here" in prompts(lab, run, "t/1/ben/review")
    assert "cho misses" not in prompts(lab, run, "t/1/ben/review")
    versions = [e.version for e in lab.events(run) if isinstance(e, ArtifactEvent) and e.name == "final_paper"]
    assert versions == [1, 2]
    assert not (await replay(lab.store, run)).differences


async def test_reviews_reach_those_alone_whom_their_seats_may_tell(lab: Lab) -> None:
    channels = {"read": "all", "tell": {"ben": ["ana"]}, "ask": "none"}
    run = await lab.play(play, organisation=organisation(["work", "write"], ["review", "write"], channels=channels))
    order = prompts(lab, run, "t/1/ana/write")
    assert "ben misses" in order
    assert "cho misses" not in order


async def test_a_vote_is_secret_and_its_result_goes_to_the_author(lab: Lab) -> None:
    run = await lab.play(play, organisation=organisation(["work", "vote", "write"]))
    assert "Votes: ana 2, cho 1. Where results differ, state those of ana." in prompts(lab, run, "t/0/ana/write")
    assert "most of it is checked" not in prompts(lab, run, "t/0/cho/vote")
    assert "Choose one of ana, cho (not yourself)" in prompts(lab, run, "t/0/ben/vote")


async def test_a_vote_for_oneself_is_asked_for_again(lab: Lab) -> None:
    def selfish(heard: Heard) -> Draft:
        first = heard.messages[-1].type == "human" and "# Step: vote" in text_of(heard.messages[-1].content)
        if step_of(heard) == "vote" and agent_of(heard) == "ben" and first:
            return Draft("ben: who else?")
        return play(heard)

    run = await lab.play(selfish, organisation=organisation(["work", "vote", "write"]))
    assert run.metrics["failed_reply_rate"] > 0
    assert "Votes: ana 2, cho 1." in prompts(lab, run, "t/0/ana/write")


async def test_in_a_debate_all_speak_at_the_same_time_and_hear_the_others_afterwards(lab: Lab) -> None:
    run = await lab.play(play, organisation=organisation(["work", {"debate": 2}, "write"]))
    assert run.metrics["messages"] == 6
    assert "in debate" not in prompts(lab, run, "t/0/cho/debate/1")
    second = prompts(lab, run, "t/0/cho/debate/2")
    assert "[ana]: ana stands for 107" in second
    assert "[cho]:" not in second
    events = lab.events(run)
    numbers = dict.fromkeys(
        (event.step.split("/")[4], stage)
        for event, stage in zip(events, stages(events), strict=True)
        if isinstance(event, LLMCallEvent) and "/debate/" in event.step
    )
    assert len(numbers) == 2  # a stage for each round


async def test_members_who_speak_at_the_same_time_spend_their_own_shares_alone(lab: Lab) -> None:
    shares = {"ana": 0.5, "ben": 0.3, "cho": 0.0001}
    run = await lab.play(play, organisation=organisation(["work", {"debate": 2}, "vote", "write"], shares=shares))
    spoke = [e.agent for e in lab.events(run) if isinstance(e, MessageEvent)]
    assert [spoke.count(name) for name in shares] == [3, 3, 0]
    spent = dict.fromkeys(shares, 0)
    for event in lab.events(run):
        if isinstance(event, ChargeEvent) and "/write/" not in event.step:
            spent[event.agent] += event.amount
    assert all(spent[name] <= share * 1_000_000 for name, share in shares.items())
    assert not (await replay(lab.store, run)).differences


async def test_talk_of_every_kind_counts_as_coordination(lab: Lab) -> None:
    for steps in (["work", "vote", "write"], ["work", {"debate": 1}, "write"]):
        run = await lab.play(play, organisation=organisation(steps))
        tokens = [
            e.input_tokens + e.output_tokens
            for e in lab.events(run)
            if isinstance(e, LLMCallEvent) and {"vote", "debate"} & {*e.step.split("/")}
        ]
        total = sum(e.input_tokens + e.output_tokens for e in lab.events(run) if isinstance(e, LLMCallEvent))
        assert run.metrics["coordination_tokens"] == pytest.approx(sum(tokens) / total, abs=1e-6)


@pytest.mark.parametrize("name", ["reviewed", "voting", "debating"])
async def test_the_example_organisations_keep_all_rules(name: str) -> None:
    file = str(ROOT / "examples" / "organisations" / f"{name}.yaml")
    values = {"task": "anomaly", "difficulty": "easy", "model": "scripted:hasty", "organisation": file}
    trial = await check_organisation(ScienceCondition.model_validate(values))
    assert trial.passed
    # Their seats work once and at the same time, so that nobody can use the keys of another's part.
    assert [problem.rule for problem in trial.problems] == ["evidence"]


class Undeclared(LabStep):
    """Does not say what it does."""

    name = "undeclared"
    take = answer = None  # type: ignore[assignment]


class Clash(Undeclared):
    """Records its calls as work."""

    name = "clash"
    label = "work"
    does = "talk"


def test_a_declaration_that_the_measures_could_not_use_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fault_of("work", find_step("work")) == ""
    assert "set does to one of talk, work, write" in fault_of("undeclared", Undeclared())
    assert "records its calls as 'work', like the step 'work'" in fault_of("clash", Clash())
    assert "set name = 'other'" in fault_of("other", Clash())
    assert "derived from StepKind" in fault_of("thing", object())
    monkeypatch.setitem(STEPS._loaded, "undeclared", Undeclared())
    with pytest.raises(UsageError, match="the step 'undeclared' does not declare what it does"):
        find_step("undeclared")


class Stray(LabStep):
    """Declares a label under which it records nothing, and tells nobody."""

    name = "stray"
    does = "talk"
    tells = True
    prompts: ClassVar = {"stray": "# Step: stray\nSay something."}

    async def take(self, run: StepRun) -> dict[str, Any]:
        seat, purse = run.team.lead, run.purse()
        messages = run.opening(seat, run.order(seat, run.purse(), {}))
        speaker = run.ctx.speaker(run.team, seat)
        await run.ctx.caller.call(
            f"t/0/{seat.id}/elsewhere/0", speaker, messages, purse.spend_as(seat.id), name="stray"
        )
        return run.next()

    def answer(self, order: Any, heard: Heard) -> Draft:
        return Draft("Something.")


async def test_the_check_of_an_organisation_finds_calls_that_no_step_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STEPS._loaded, "stray", Stray())
    values = {"task": "anomaly", "difficulty": "easy", "model": "scripted:hasty"}
    condition = ScienceCondition.model_validate({**values, "organisation": organisation(["work", "stray", "write"])})
    trial = await check_organisation(condition)
    faults = {problem.rule: problem.text for problem in trial.problems}
    assert faults["measured"] == "t/0/ana/elsewhere/0: no step of the flow records its calls as 'elsewhere'"


def test_a_step_of_another_package_works_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (ROOT / "examples" / "new_step.py").read_text()
    points = {"labmates.steps": {"warn": "lab_warn:WARN"}}
    monkeypatch.syspath_prepend(install(tmp_path / "site", "lab-warn", points, {"lab_warn": code}))
    monkeypatch.delitem(sys.modules, "lab_warn", raising=False)
    monkeypatch.setattr(STEPS, "_plugins", None)
    monkeypatch.setattr(STEPS, "_loaded", {**STEPS._loaded})
    file = tmp_path / "wary.yaml"
    seats = "{peer: {count: 2, title: researcher, part: Answer all questions.}}"
    file.write_text(
        "name: wary\nflow: [{pair: [work, warn, write]}]\n"
        f"teams:\n  pair: {{artifact: final_paper, sections: [Abstract, Results], seats: {seats}}}\n"
    )
    assert isinstance(find_step("warn"), StepKind)
    assert find_organisation(str(file)).flow[0].names == ["work", "warn", "write"]
    assert run_command(["organisations", "check", str(file), "--baseline", "scripted:hasty"]) == 0
    assert capsys.readouterr().out.count("ok ") == 11


def test_an_unknown_step_is_told_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"unknown step 'wrok'\. Did you mean 'work'\?"):
        organisation(["wrok", "write"])
