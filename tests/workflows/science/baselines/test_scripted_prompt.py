"""The baselines find in the real templates what a model would find there."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from labmates.agents.tools import TO_CLOSE
from labmates.budgets.visibility import budget_status
from labmates.workflows.science.baselines.prompt import Step, read_step
from tests.support.lab_orders import split_parts, with_facts
from tests.support.lab_prompts import render
from tests.support.teams import PIPELINE, TEAMS

EVAL = TEAMS["eval"]
HANDED = "\n".join(f"- {team} team: `{name}`" for name, team in PIPELINE.handed.items())
DATA = "One row a day.\n\n- day: number of the day\n- wind speed: in m/s\n\nKnown habits: none."
MEMBERS = "\n".join(f"- {role.id}: {role.title}" for role in EVAL.members)


def system(agent: int = 0) -> SystemMessage:
    role = EVAL.members[agent]
    return SystemMessage(
        render(
            "system",
            teams="four",
            brief="Look at this. What is it?",
            findings="- n_days (whole number): number of days",
            handed=HANDED,
            budget_rules="",
        )
        + "\n\n"
        + render("data_set", data_description=DATA)
        + "\n\n"
        + render(
            "role",
            role=role.title,
            team=EVAL.name,
            agent=role.id,
            members="\n".join(f"- {member.id}: {member.title}. {member.part}" for member in EVAL.members),
        )
    )


def work(turns: int = 6, budget: str = "", request: str = "") -> str:
    return render(
        "work",
        task="Check the claims.",
        plan="- look\n- check",
        request=request,
        artifact_names="`dataset_description`, `model_architecture`",
        readers="writing",
        mail="",
        turns=turns,
        tools=", ".join(EVAL.tools(states=True)),
        code_hint=render("code_hint", data="the data set", timeout=30, libraries="numpy 2.4.6, pandas 3.1.1"),
        writes="The evaluation lead writes",
        artifact="evaluation_report",
        material="the members' summaries",
        theory_of_mind=render("theory_of_mind", others="each teammate"),
        budget=budget,
        begin=render("begin"),
    )


def step_of(*messages: BaseMessage | str) -> Step:
    return read_step(with_facts([system(), *(HumanMessage(m) if isinstance(m, str) else m for m in messages)]))


def test_who_the_agent_is_and_what_it_is_told_once() -> None:
    step = step_of(work())
    assert (step.kind, step.agent, step.team, step.turns) == ("work", "eval_lead", "eval", 6)
    assert step.task == "Check the claims."
    assert step.fields == {"n_days": "number of days"}
    assert step.analysis is None
    assert step.brief == ("Look at this.", "What is it?")
    assert list(step.owners.items())[1] == ("model_architecture", "model")


def test_the_first_of_the_team_leads_it() -> None:
    assert step_of(work()).leads
    assert not read_step(with_facts([system(1), HumanMessage(work())])).leads


def test_a_plan_asks_for_a_task_for_each_member_and_for_nobody_else() -> None:
    order = render(
        "plan",
        team="eval",
        request="",
        artifacts="=== model_architecture ===\n- intruder: is no member",
        stated="",
        mail="- from the data team: hello",
        turns=8,
        tools="Each has Python.",
        then="Then",
        artifact="evaluation_report",
        member_lines=MEMBERS,
        theory_of_mind=render("theory_of_mind", others="each teammate"),
        budget="\nBudget: $0.1 of $1 spent.",
    )
    step = step_of(order)
    assert step.kind == "plan"
    assert step.members() == {role.id: role.title for role in EVAL.members}


STATED = """=== data team ===
{"n": 6,
 "names": ["a", "b"]}
=== end of data team ===

=== eval team ===
{}
=== end of eval team ===

=== model team ===
{"n": [1, [2 more left out]
=== end of model team ==="""


@pytest.mark.parametrize("name", TEAMS)
def test_every_required_section_is_found_with_what_belongs_in_it(name: str) -> None:
    team = TEAMS[name]
    listed = "\n".join(f"- {section}" for section in team.sections)
    if team.name == "writing":
        listed += "\n\n" + render("findings_section", example="")
    order = render(
        "write",
        tools=", ".join(TO_CLOSE),
        artifact=team.artifact,
        readers="",
        request="",
        sections=listed,
        reports="what the members reported",
        outputs="=== a ===\nReported: x\nPrinted:\n- no: section",
        said="nothing",
        stated=f"{render('findings_so_far', findings=STATED)}\n\n",
        artifacts="=== model_architecture ===\n## No section",
        budget="",
    )
    step = step_of(order)
    assert (step.kind, step.artifact) == ("write", team.artifact)
    assert [title for title, _ in step.sections()] == [section.partition(":")[0] for section in team.sections]
    assert step.wants_findings() == (team.name == "writing")
    assert step.stated_so_far() == {"data": {"n": 6, "names": ["a", "b"]}, "eval": {}}


def test_the_newest_step_counts_and_what_followed_it() -> None:
    ran = AIMessage("", tool_calls=[{"name": "run_code", "args": {"code": "1"}, "id": "c1"}])
    step = step_of(
        work(), AIMessage("old"), work(turns=3), ran, ToolMessage("1", tool_call_id="c1"), "Your reply was empty."
    )
    assert step.turns == 3
    assert step.replies == 1
    assert [(use.name, use.result) for use in step.uses] == [("run_code", "1")]
    assert step.remarks == ("Your reply was empty.",)


@pytest.mark.parametrize(("spent", "hurry"), [(500_000, "none"), (750_000, "concise"), (900_000, "finalise")])
def test_the_notice_about_the_pool_is_heeded_in_the_last_message(spent: int, hurry: str) -> None:
    line = budget_status("full", 1_000_000, {"data": spent}, "eval")
    assert step_of(work(budget=f"\n{line}")).hurry == hurry
    ran = AIMessage("", tool_calls=[{"name": "list_artifacts", "args": {}, "id": "c1"}])
    assert step_of(work(), ran, ToolMessage(f"none yet\n\n{line}", tool_call_id="c1")).hurry == hurry
    assert step_of(work(budget=f"\n{line}"), ran, ToolMessage("none yet", tool_call_id="c1")).hurry == "none"


def test_a_request_is_read_out_of_the_order() -> None:
    text = render(
        "request_additional",
        asked_by="writing",
        request="more tests",
        artifact="evaluation_report",
        variables="",
        previous="x",
    )
    assert step_of(work(request=text)).request == "more tests"
    assert step_of(work()).request == ""


def test_a_conversation_without_a_step_is_something_else() -> None:
    assert read_step([HumanMessage("Choose A or B.")]).kind == "other"
    assert read_step([]).kind == "other"


def test_parts_are_split_at_their_headings() -> None:
    assert split_parts("=== a ===\none\n\n=== b ===\ntwo === c ===") == {"a": "one", "b": "two === c ==="}
    assert split_parts("none yet") == {}
