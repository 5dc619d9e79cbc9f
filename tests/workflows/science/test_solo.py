"""One agent alone in the place of all teams: equal terms, one conversation, the same engine."""

from __future__ import annotations

import asyncio
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import tests.support.garbage
import tests.support.wasteful  # noqa: F401 - registers two baselines
from labmates.agents.tools import TO_WRITE
from labmates.api import ajudge, arun
from labmates.budgets.tokens import text_of
from labmates.errors import UsageError
from labmates.models.scripted.base import Draft, Heard, call
from labmates.records.events import ArtifactEvent, ChargeEvent, LLMCallEvent, PhaseEvent, ScoreEvent, WarningEvent
from labmates.records.store import Store
from labmates.studies.runs import stopped_run
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.protocol.experiment import make_condition
from labmates.workflows.science.graph import graph, lab_graph
from labmates.workflows.science.lab.condition import ScienceCondition
from tests.support.children import run_child
from tests.support.puppet import agent_of, dutiful, puppet, step_of, turn_of
from tests.support.solo import alone
from tests.support.story import story
from tests.support.teams import ALONE, TEAMS
from tests.workflows.science.test_science_lab import Lab, tool_results, work

SETTINGS = RunSettings(sandbox="unsafe-local")
CONDITION: dict[str, Any] = {"task": "anomaly", "difficulty": "easy", "solo": True, "prices": {"tool_call": "0.0001"}}
KILLED = """
    import os
    from labmates.api import run
    from tests.support.puppet import puppet
    from tests.support.solo import alone

    calls = 0

    def play(heard):
        global calls
        calls += 1
        if calls == {dies_at}:
            os._exit(9)
        return alone(heard)

    with puppet(play) as model:
        run("science", store={store!r}, settings={{"sandbox": "unsafe-local"}}, model=model, **{condition!r})
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.store.close()


def heard_by(step: str, prompts: list[list[tuple[str, str]]]) -> Any:
    """Be dutiful, and keep all conversations in which a step is asked for."""

    def play(heard: Heard) -> Draft:
        if step_of(heard).startswith(step):
            prompts.append([(message.type, text_of(message.content)) for message in heard.messages])
        return dutiful(heard)

    return play


def section(prompt: str, title: str) -> str:
    return prompt.split(f"## {title}\n")[1].split("\n## ")[0]


async def test_one_agent_plans_works_and_writes_in_one_phase(lab: Lab) -> None:
    run = await lab.play(dutiful, solo=True)
    events = lab.events(run)
    assert run.status == "completed"
    assert [(e.team, e.status) for e in events if isinstance(e, PhaseEvent)] == [("solo", "started"), ("solo", "ended")]
    steps = [e.step for e in events if isinstance(e, LLMCallEvent)]
    assert steps == ["solo/0/researcher/plan/0", "solo/0/researcher/work/0", "solo/0/researcher/write/0"]
    assert [e.name for e in events if isinstance(e, ArtifactEvent)] == ["final_paper"]
    assert run.metrics["artifacts_missing"] == 3
    judged = {(e.judge, e.metric) for e in events if isinstance(e, ScoreEvent)}
    assert judged >= {("heuristic", "completeness"), ("heuristic", "heuristic_quality"), ("verified", "accuracy")}


async def test_it_gets_the_same_task_data_and_paper_as_teams(lab: Lab) -> None:
    systems: list[str] = []
    orders: list[str] = []
    tables: list[str] = []

    def play(heard: Heard) -> Draft:
        systems.append(text_of(heard.messages[0].content))
        if step_of(heard).startswith("write the artifact `final_paper`"):
            orders.append(text_of(heard.messages[-1].content))
        if step_of(heard) == "work" and agent_of(heard) in ("data_lead", "researcher") and turn_of(heard) == 0:
            return Draft("", (call("run_code", code="print(pd.util.hash_pandas_object(df).sum())"),))
        return dutiful(heard)

    for solo in (False, True):
        run = await lab.play(play, solo=solo)
        tables += [text for _, text in tool_results(lab, run, "run_code")]
    teams, one = systems[0], systems[-1]
    for title in ("The project", "The data set", "What the final paper has to state"):
        assert section(teams, title).strip() == section(one, title).strip()
    assert len(tables) == 2
    assert tables[0] == tables[1]
    listed = [order.split("Use Markdown with these sections:")[1].split("##")[0] for order in orders]
    assert re.findall(r"^- .*|.*`findings`.*", listed[0], re.MULTILINE) == re.findall(
        r"^- .*|.*`findings`.*", listed[1], re.MULTILINE
    )


async def test_it_holds_the_tools_that_make_sense_alone_and_no_other(lab: Lab) -> None:
    held: list[tuple[str, ...]] = []

    def reply(heard: Heard) -> Draft | None:
        held.append(heard.tool_names())
        return Draft("", (call("send_message", to_team="data", content="hi"),)) if turn_of(heard) == 0 else None

    run = await lab.play(work(reply), solo=True)
    assert held[0] == ("run_code", "read_artifact", *TO_WRITE, "state_findings", "list_artifacts", "mark_complete")
    assert run.metrics["tool_errors"] == 1
    assert "no tool 'send_message'" in tool_results(lab, run, "send_message")[0][1]


async def test_it_may_write_every_artifact_and_new_versions_of_them(lab: Lab) -> None:
    def reply(heard: Heard) -> Draft | None:
        if turn_of(heard):
            return None
        names = ["dataset_description", *(team.artifact for team in TEAMS.values())]
        return Draft("", tuple(call("write_artifact", name=name, content=f"# {name}") for name in names))

    run = await lab.play(work(reply), solo=True)
    assert run.metrics["artifacts_missing"] == run.metrics["tool_errors"] == 0
    written = [(e.name, e.version) for e in lab.events(run) if isinstance(e, ArtifactEvent)]
    assert written.count(("dataset_description", 2)) == written.count(("final_paper", 2)) == 1


async def test_it_has_the_turns_of_the_eight_members_of_teams_of_two(lab: Lab) -> None:
    run = await lab.play(work(lambda _: Draft("", (call("list_artifacts"),))), solo=True, max_turns=2)
    steps = [e.step for e in lab.events(run) if isinstance(e, LLMCallEvent)]
    assert len([step for step in steps if "/work/" in step]) == 2 * 2 * len(TEAMS)
    assert steps[-1] == "solo/0/researcher/write/0"
    [warning] = [event.text for event in lab.events(run) if isinstance(event, WarningEvent)]
    assert warning == "solo/0/researcher/work: no reply was bought: its 16 replies ended without a report"


@pytest.mark.parametrize("last", [Draft("Done, I think."), Draft("")])
async def test_the_paper_is_written_in_the_conversation_of_the_work(lab: Lab, last: Draft) -> None:
    prompts: list[list[tuple[str, str]]] = []
    record = heard_by("write", prompts)

    def play(heard: Heard) -> Draft:
        if step_of(heard) == "work":
            return last if turn_of(heard) else Draft("", (call("run_code", code="print('found it')"),))
        return record(heard)  # type: ignore[no-any-return]

    run = await lab.play(play, solo=True, repair_turns=1)
    [conversation] = prompts
    kinds = [kind for kind, _ in conversation]
    assert any("found it" in text for kind, text in conversation if kind == "tool")
    assert conversation[-1][1].startswith("# Step: write the artifact `final_paper`")
    assert ("human", "human") not in set(pairwise(kinds))
    assert run.status == "completed"
    assert run.usage.failed_replies == 2


@pytest.mark.parametrize("visibility", ["full", "team", "hidden"])
async def test_it_sees_of_the_budget_what_the_setting_says(lab: Lab, visibility: str) -> None:
    texts: list[str] = []

    def play(heard: Heard) -> Draft:
        texts.extend(text_of(message.content) for message in heard.messages)
        return dutiful(heard)

    await lab.play(play, solo=True, visibility=visibility)
    everything = "\n".join(texts)
    assert ("budget" in everything.lower()) == (visibility != "hidden")
    assert ("$1.0000" in everything) == (visibility == "full")
    assert ("you have spent" in everything) == (visibility == "team")


async def test_a_pool_that_runs_dry_ends_the_run_as_exhausted_and_is_never_overdrawn(lab: Lab) -> None:
    play = work(lambda _: Draft("", (call("run_code", code="print('x ' * 4000)"),)))
    for budget, status in (("0.0012", "exhausted"), ("0.03", "completed")):
        run = await lab.play(play, solo=True, budget=budget)
        assert sum(e.amount for e in lab.events(run) if isinstance(e, ChargeEvent)) <= round(float(budget) * 1e6)
        assert run.status == status
        assert run.metrics["artifacts_missing"] == (4 if status == "exhausted" else 3)
        assert run.metrics["completeness"] == 0


async def test_a_pool_that_can_not_pay_the_conversation_pays_a_shortened_one(
    lab: Lab,
) -> None:
    prompts: list[list[tuple[str, str]]] = []
    record = heard_by("write", prompts)

    def play(heard: Heard) -> Draft:
        if step_of(heard) == "work":
            return Draft("", (call("run_code", code="print(' '.join(map(str, range(3000))))"),))
        return record(heard)  # type: ignore[no-any-return]

    run = await lab.play(play, solo=True, budget="0.045")
    assert run.status == "completed"
    assert any("[shortened]" in text for _, text in prompts[-1])
    assert prompts[-1][-1][1].startswith("# Step: write")


@pytest.mark.parametrize(
    "dies_at",
    [5, *(pytest.param(other, marks=pytest.mark.slow("tests/workflows/science/test_solo.py")) for other in (2, 8))],
)
async def test_a_killed_run_goes_on_to_the_same_end_and_pays_no_step_twice(tmp_path: Path, dies_at: int) -> None:
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    with puppet(alone) as model:
        [expected] = await arun("science", store=store.url, settings=SETTINGS, model=model, **CONDITION)
    code = textwrap.dedent(KILLED).format(dies_at=dies_at, store=store.url, condition=CONDITION)
    assert await asyncio.to_thread(run_child, code) == 9
    [stopped] = [run for run in store.runs() if run.status == "running"]

    with puppet(alone):
        [run] = await Session(store, SETTINGS).execute([stopped_run(store, stopped.id)])

    assert run.status == "completed"
    assert story(store, run.id) == story(store, expected.id)
    assert (run.budget, run.metrics, run.usage) == (expected.budget, expected.metrics, expected.usage)
    store.close()


async def test_the_diligent_baseline_hands_over_everything_alone_and_repeats_exactly(lab: Lab) -> None:
    values: dict[str, Any] = {"task": "anomaly", "difficulty": "easy", "model": "scripted:diligent", "solo": True}
    [run], [other] = [await arun("science", store=lab.url, settings=SETTINGS, seed=2, **values) for _ in range(2)]
    assert run.metrics["artifacts_missing"] == run.metrics["tool_errors"] == run.usage.failed_replies == 0
    assert run.metrics["completeness"] == 1
    assert run.metrics["accuracy"] > 0.5
    assert story(lab.store, run.id) == story(lab.store, other.id)
    paper = next(e for e in reversed(lab.events(run)) if isinstance(e, ArtifactEvent))
    text = lab.bodies(run).text(paper.content)
    assert not re.search(r"(data|model|eval) team", text)
    assert "`dataset_description`" in text


@pytest.mark.parametrize("baseline", ["hasty", "silent", "wasteful", "talkative", "garbage"])
async def test_every_baseline_gets_through_alone(lab: Lab, baseline: str) -> None:
    [run] = await arun(
        "science", store=lab.url, settings={"sandbox": "unsafe-local"}, task="anomaly", difficulty="easy",
        model=f"scripted:{baseline}", solo=True, budget="0.05", max_turns=1,
    )  # fmt: skip
    assert run.status in ("completed", "exhausted")
    assert run.budget is not None
    assert float(run.budget["spent"]) <= 0.05


async def test_judges_that_come_later_say_the_same(lab: Lab) -> None:
    with puppet(alone) as model:
        [run] = await arun("science", store=lab.url, settings=SETTINGS, model=model, **CONDITION)
    before = [(s.judge, s.metric, s.value, s.details) for s in lab.store.scores(run.id)]
    [judged] = await ajudge([run.id], again=True, store=lab.url)
    assert [(s.judge, s.metric, s.value, s.details) for s in judged.added] == before
    [truth] = [details["truth"] for judge, metric, _, details in before if (judge, metric) == ("verified", "accuracy")]
    assert truth.keys() >= {"n_sensors", "events"}


def test_the_graph_of_a_run_is_that_of_its_organisation() -> None:
    drawing = lab_graph(ALONE).get_graph(xray=True).draw_mermaid()
    assert "researcher" in drawing
    assert "data_lead" not in drawing
    assert "domain_expert" not in graph(condition()).get_graph(xray=True).draw_mermaid()


def condition(**values: Any) -> ScienceCondition:
    return ScienceCondition(**{"task": "ecology", "model": "scripted:diligent", **values})


def test_solo_is_short_for_the_organisation_and_recorded_as_that() -> None:
    assert condition().key == condition(solo=False).key
    assert condition(solo=True).key == condition(organisation="solo").key
    assert [condition(**team).model_dump()["organisation"] for team in ({}, {"solo": True})] == ["pipeline", "solo"]
    assert "solo" not in condition(solo=True).model_dump()


def test_a_condition_of_one_agent_alone_has_a_key_of_its_own_and_no_colleagues() -> None:
    one = condition(solo=True)
    assert one.key != condition().key
    assert (one.team_size, one.deliberation_rounds, one.max_requests) == (1, 0, 0)
    assert ScienceCondition.model_validate(one.model_dump(mode="json")).key == one.key
    assert condition(solo=True, max_requests=0, deliberation_rounds=0, theory_of_mind=False).key == one.key


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("team_size", 2),
        ("team_size", 3),
        ("theory_of_mind", True),
        ("model_for", {"writing": "scripted:silent"}),
        ("deliberation_rounds", 1),
        ("max_requests", 2),
    ],
)
async def test_what_only_teams_have_is_refused_with_the_reason(tmp_path: Path, name: str, value: object) -> None:
    values: dict[str, Any] = {"task": "ecology", "model": "scripted:silent", "solo": True, name: value}
    with pytest.raises(UsageError, match=f"{name}: one agent alone .* has no teammates"):
        await arun("science", store=f"sqlite:///{tmp_path}/runs.db", **values)


@pytest.mark.parametrize(("name", "value"), [("team_size", 3), ("organisation", "hybrid")])
def test_what_an_arm_of_one_agent_would_leave_out_is_refused(name: str, value: object) -> None:
    values = {"task": "ecology", "model": "scripted:silent", "evidence": "split:1", "arm": "oracle"}
    with pytest.raises(UsageError, match=f"{name}: has no effect in the arm oracle, which is one agent alone; leave"):
        make_condition("science", {**values, name: value})
    assert make_condition("science", {**values, "organisation": "solo"}).model_dump()["arm"] == "oracle"
    assert make_condition("science", values).model_dump()["arm"] == "oracle"
