"""What the baselines read in the prompts of one agent alone."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from labmates.agents.prompts import render
from labmates.workflows.science.baselines.diligent import Diligent
from labmates.workflows.science.baselines.material import gather
from labmates.workflows.science.baselines.prompt import read_step
from labmates.workflows.science.baselines.stated import find_block
from tests.support.lab_orders import with_facts
from tests.support.teams import ALONE, SOLO

SYSTEM = SystemMessage(
    ALONE.render(
        "system",
        brief="Look at this. What is it?",
        data_description="- day: number of the day",
        findings="- n_sensors (whole number): number of sensors",
        handed="- you hand over `notes`\n- you hand over `final_paper`",
        budget_rules="",
    )
    + "\n\n"
    + ALONE.render("role", role=SOLO.lead.title, agent=SOLO.lead.id, part=SOLO.lead.part)
)
WORK = HumanMessage(
    ALONE.render(
        "work",
        plan="- look",
        turns=64,
        tools="run_code, write_artifact, mark_complete",
        code_hint=render("code_hint", timeout=30),
        artifacts="`notes`\n- Overview: what there is\n- Doubts\n\n`more`\n- Aim",
        budget="",
    )
)
RAN = [
    AIMessage("", tool_calls=[{"name": "run_code", "args": {"code": "1"}, "id": "c1"}]),
    ToolMessage('There are 7 sensors.\nRESULT {"count": 7}', tool_call_id="c1"),
]
WRITE = HumanMessage(
    ALONE.render(
        "write",
        artifact="final_paper",
        tools="write_artifact, state_findings",
        sections=f"- Abstract\n\n{render('findings_section', example='')}",
        budget="",
    )
)


def test_who_is_alone_leads_and_is_told_the_artifacts_besides_the_paper() -> None:
    step = read_step(with_facts([SYSTEM, WORK]))
    assert (step.kind, step.agent, step.team, step.turns, step.leads) == ("work", "researcher", "solo", 64, True)
    assert step.also_asked() == {"notes": [("Overview", "what there is"), ("Doubts", "")], "more": [("Aim", "")]}
    assert set(step.owners.values()) == {"solo"}
    assert read_step(with_facts([SYSTEM, HumanMessage(ALONE.render("plan", turns=64, budget=""))])).members() == {}


def test_who_writes_in_the_conversation_of_its_work_remembers_it() -> None:
    step = read_step(with_facts([SYSTEM, WORK, *RAN, WRITE]))
    assert (step.kind, step.artifact, step.wants_findings()) == ("write", "final_paper", True)
    assert step.uses == ()
    assert [use.name for use in step.before] == ["run_code"]
    material = gather(step)
    assert material.alone
    assert material.results["count"] == 7
    reply = Diligent().invoke(with_facts([SYSTEM, WORK, *RAN, WRITE]))
    assert find_block(str(reply.content)) == {"n_sensors": 7}
