"""What the baselines read in the prompts of one agent alone."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from labmates.tasks.registry import get_task
from labmates.tasks.schema import findings_fields_text
from labmates.workflows.science.baselines.diligent import Diligent
from labmates.workflows.science.baselines.prompt import Step, read_step
from labmates.workflows.science.baselines.stated import find_block
from labmates.workflows.science.baselines.writing import Material, gather, write_sections
from tests.support.lab_orders import with_facts
from tests.support.lab_prompts import render_alone as render
from tests.support.teams import SOLO

SYSTEM = SystemMessage(
    render(
        "system",
        brief="Look at this. What is it?",
        data_description="- day: number of the day",
        findings=findings_fields_text(get_task("anomaly")),
        handed="- `notes`\n- `final_paper`",
        budget_rules="",
    )
    + "\n\n"
    + render("role", role=SOLO.lead.title, agent=SOLO.lead.id, part=SOLO.lead.part)
)
WORK = HumanMessage(
    render(
        "work",
        plan="- look",
        turns=64,
        tools="run_code, write_artifact, mark_complete",
        code_hint=render("code_hint", data="the data set", timeout=30, libraries="numpy 2.4.6, pandas 3.1.1"),
        artifact_sections="`notes`\n- Overview: what there is\n- Doubts\n\n`more`\n- Aim",
        budget="",
        begin=render("begin"),
    )
)
RAN = [
    AIMessage("", tool_calls=[{"name": "run_code", "args": {"code": "1"}, "id": "c1"}]),
    ToolMessage('There are 7 sensors.\nRESULT {"n_sensors": 7}', tool_call_id="c1"),
]
WRITE = HumanMessage(
    render(
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
    assert read_step(with_facts([SYSTEM, HumanMessage(render("plan", turns=64, budget=""))])).members() == {}


def test_who_writes_in_the_conversation_of_its_work_remembers_it() -> None:
    step = read_step(with_facts([SYSTEM, WORK, *RAN, WRITE]))
    assert (step.kind, step.artifact, step.wants_findings()) == ("write", "final_paper", True)
    assert step.uses == ()
    assert [use.name for use in step.before] == ["run_code"]
    material = gather(step)
    assert material.found == {"n_sensors": 7}
    reply = Diligent().invoke(with_facts([SYSTEM, WORK, *RAN, WRITE]))
    assert find_block(str(reply.content)) == {"n_sensors": 7}


def test_a_paper_names_the_teams_that_handed_over_what_it_quotes() -> None:
    owners = {"model_architecture": "fit", "evaluation_report": "audit", "final_paper": "paper"}
    facts = {"handed": owners, "artifact": "final_paper", "findings": findings_fields_text(get_task("anomaly"))}
    artifacts = {"model_architecture": "An event was found at sample 812 with t = 3.1."}
    material = Material(Step("write", "", facts=facts), {}, (), artifacts)
    text = write_sections([("Methods", ""), ("Evaluation", "")], material, 2)
    assert "The fit team reports in `model_architecture`: An event was found at sample 812" in text
    assert "The audit team handed over nothing with numbers in `evaluation_report`." in text
    assert "model team" not in text
