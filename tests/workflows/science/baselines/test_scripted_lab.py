"""Whole runs of the lab's protocol with the real templates, tools and desk, and single steps under pressure."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import BaseModel, Field

import tests.support.garbage
import tests.support.wasteful  # noqa: F401 - registers two baselines
from labmates.agents.organisation_parts import REPORT, Seat, Team
from labmates.agents.sections import excerpt, excerpts
from labmates.agents.tools import (
    STATE,
    TO_CLOSE,
    RunCode,
    ToolError,
    check_arguments,
    tool_schema,
    tool_schemas,
)
from labmates.agents.workspace import Workspace, use_workspace
from labmates.budgets.tokens import estimate_tokens
from labmates.budgets.visibility import CONCISE, FINALISE
from labmates.models.normalise import normalise
from labmates.models.reply import Reply
from labmates.models.scripted import BASELINES
from labmates.tasks.base import Check, Credit, Dataset, Difficulty, Task, accuracy
from labmates.tasks.findings import check_findings
from labmates.tasks.registry import get_task
from labmates.tasks.schema import findings_example, findings_schema_text
from labmates.workflows.science.baselines.stated import find_block
from labmates.workflows.science.baselines.writing import NO_ANALYSIS
from labmates.workflows.science.lab.context import delimited
from labmates.workflows.science.lab.findings import findings_form, stated_texts
from tests.support.lab_orders import with_facts
from tests.support.lab_prompts import render
from tests.support.teams import DATA, EVAL, MODEL, PIPELINE, TEAMS, WRITING

TURNS = 8
NAMES = ("diligent", "hasty", "wasteful", "silent", "garbage", "colleague")


class Lab:
    """A small lab: four teams of two, members one after the other, code run in this process, no budget."""

    def __init__(
        self, task: str | Task[Any, Any], difficulty: Difficulty, model: str, seed: int = 0, max_tokens: int = 4096
    ) -> None:
        self.task = get_task(task) if isinstance(task, str) else task
        self.data = self.task.generate(seed, difficulty)
        self.model = BASELINES.get(model)()
        self.max_tokens = max_tokens
        self.artifacts: dict[str, str] = {}
        self.form = findings_form(self.task)
        self.stated: dict[str, Mapping[str, Any]] = {}
        self.mail: list[tuple[str, str, str]] = []
        self.replies: list[Reply] = []
        self.errors: list[str] = []
        self.unclosed = 0

    def run(self, teams: Sequence[str] = tuple(TEAMS)) -> Lab:
        for name in teams:
            self._phase(TEAMS[name])
        return self

    def score(self) -> float:
        findings = check_findings(self.stated.get("writing", {}), self.task.findings).findings
        return accuracy(self.task.score(findings, self.data.truth)) if findings else 0.0

    def system(self, team: Team, role: Seat) -> SystemMessage:
        shared = render(
            "system",
            teams="four",
            brief=self.task.brief,
            findings=findings_schema_text(self.task),
            handed="\n".join(f"- {team} team: `{name}`" for name, team in PIPELINE.handed.items()),
            budget_rules="",
        )
        shared += "\n\n" + render("data_set", data_description=self.data.description)
        own = render("role", role=role.title, team=team.name, agent=role.id, members=members_of(team))
        return SystemMessage(f"{shared}\n\n{own}")

    def ask(self, messages: Sequence[BaseMessage], tools: Sequence[str] = ()) -> Reply:
        schemas = tool_schemas(tools, self.form)
        message = self.model.invoke(
            with_facts(messages), tools=schemas, seed=len(self.replies), max_tokens=self.max_tokens
        )
        assert isinstance(message, AIMessage)
        assert message.usage_metadata is not None
        assert message.usage_metadata["output_tokens"] <= self.max_tokens
        self.replies.append(normalise(message, sent=messages, tools=schemas))
        return self.replies[-1]

    def _phase(self, team: Team) -> None:
        roles = team.members[:2]
        plan = self.ask([self.system(team, roles[0]), HumanMessage(self.plan_order(team))]).text
        before = dict(self.artifacts)
        reports = {role.id: self._work(team, role, plan, before) for role in roles}
        said: list[str] = []
        for number in (1, 2):
            for role in roles:
                order = deliberation_order(team, number, *reports[role.id], "\n".join(said) or "")
                said.append(f"[{role.id}]: {self.ask([self.system(team, role), HumanMessage(order)]).text}")
        order = self.writing_order(team, reports, "\n".join(said))
        reply = self.ask([self.system(team, roles[0]), HumanMessage(order)], [STATE, "write_artifact"])
        for call in reply.tool_calls:
            if call.name == STATE:
                self.stated[team.name] = self.form.check(call.arguments).values
        written = [call.arguments for call in reply.tool_calls if call.arguments.get("name") == team.artifact]
        self.artifacts[team.artifact] = str(written[0].get("content")) if written else reply.text

    def plan_order(self, team: Team, budget: str = "") -> str:
        mail = "\n".join(f"- from the {by} team: {text}" for by, to, text in self.mail if to == team.name)
        return render(
            "plan",
            team=team.name,
            request="",
            artifacts=shown(self.artifacts, 6_000),
            stated=self.stated_so_far(),
            mail=mail,
            turns=TURNS,
            tools="",
            then="Then",
            artifact=team.artifact,
            member_lines=members_of(team),
            theory_of_mind="",
            budget=budget,
        )

    def writing_order(self, team: Team, reports: dict[str, tuple[str, str]], said: str, budget: str = "") -> str:
        sections = "\n".join(f"- {section}" for section in team.sections)
        paper = team.artifact == REPORT
        example = findings_example(self.task)
        stated = render("findings_section", example=example) if paper else render("findings_handover")
        return render(
            "write",
            artifact=team.artifact,
            tools=", ".join(TO_CLOSE),
            readers="",
            reports="what the members reported",
            request="",
            sections=f"{sections}\n\n{stated}",
            stated=self.stated_so_far(),
            outputs="\n\n".join(f"=== {n} ===\nReported: {s}\nPrinted:\n{o}" for n, (s, o) in reports.items()),
            said=said,
            artifacts=shown(self.artifacts if paper else {}, 12_000),
            budget=budget,
        )

    def stated_so_far(self) -> str:
        shown = "\n\n".join(delimited(f"{team} team", text) for team, text in stated_texts(self.stated).items())
        return f"{render('findings_so_far', findings=shown)}\n\n" if shown else ""

    def _work(self, team: Team, role: Seat, plan: str, before: dict[str, str]) -> tuple[str, str]:
        workspace, held = (
            Workspace(PIPELINE, team.name, before, dict.fromkeys(TEAMS, 0), readers_of(team)),
            team.tools(),
        )
        names: dict[str, Any] = {"df": pd.read_csv(io.BytesIO(self.data.csv()))}
        outputs: list[str] = []
        task = re.findall(rf"^{role.id}: (.+)$", plan, re.MULTILINE)
        order = work_order(team, task[-1] if task else role.part, plan, before)
        messages: list[BaseMessage] = [self.system(team, role), HumanMessage(order)]
        for _ in range(TURNS):
            reply = self.ask(messages, held)
            if not reply.tool_calls:
                remark = render("nudge_no_tool", tools=", ".join(held), example="{}")
                messages += [reply.message, HumanMessage(remark)]
                continue
            messages.append(reply.message)
            for call in reply.tool_calls:
                try:
                    arguments = check_arguments(call.name, call.arguments, held)
                    if isinstance(arguments, RunCode):
                        text = run_code(arguments.code, names)
                        outputs.append(text)
                    else:
                        text = use_workspace(workspace, arguments)
                except ToolError as error:
                    text = f"Error: {error}"
                    self.errors.append(text)
                messages.append(ToolMessage(text, tool_call_id=call.id))
            if workspace.summary is not None:
                break
        self.unclosed += workspace.summary is None
        self.artifacts.update({item.name: item.content for item in workspace.written})
        self.mail += [(team.name, item.team, item.content) for item in workspace.sent]
        return workspace.summary or "nothing", excerpts(outputs, 3_000) or "nothing"


def members_of(team: Team) -> str:
    return "\n".join(f"- {role.id}: {role.title}. {role.part}" for role in team.members[:2])


def readers_of(team: Team) -> list[str]:
    names = list(TEAMS)
    return names[names.index(team.name) + 1 :]


def shown(artifacts: dict[str, str], most: int) -> str:
    return "\n\n".join(f"=== {name} ===\n{excerpt(text, most)}" for name, text in artifacts.items()) or ""


def run_code(code: str, names: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(code, "cell", "exec"), names)
        except Exception as error:
            printed.write(f"{type(error).__name__}: {error}")
    return excerpt(printed.getvalue(), 10_000) or "[no output]"


def work_order(team: Team, task: str, plan: str, artifacts: dict[str, str], budget: str = "") -> str:
    return render(
        "work",
        task=task,
        plan=plan,
        request="",
        artifact_names=", ".join(f"`{name}`" for name in sorted(artifacts)) or "",
        readers=", ".join(readers_of(team)),
        mail="",
        turns=TURNS,
        tools=", ".join(team.tools(states=True)),
        code_hint=render("code_hint", data="the data set", timeout=30, libraries="numpy 2.4.6, pandas 3.1.1")
        if team.has_code
        else render("no_code_hint"),
        writes="The lead writes",
        artifact=team.artifact,
        material="the summaries",
        theory_of_mind="",
        budget=budget,
        begin="",
    )


def deliberation_order(team: Team, number: int, summary: str, output: str, said: str) -> str:
    return render(
        "deliberate",
        round=number,
        rounds=2,
        lead=f"the {team.lead.title} writes",
        artifact=team.artifact,
        task="Look.",
        calls="run_code",
        summary=summary,
        output=f"\nWhat your code printed:\n{output}\n",
        said=said,
        theory_of_mind="",
        budget="",
    )


LONG = pytest.mark.slow("tests/workflows/science/baselines/test_scripted_lab.py")


@pytest.fixture(
    scope="module",
    params=[
        ("ecology", "easy"),
        ("anomaly", "medium"),
        pytest.param(("biomarker", "medium"), marks=LONG),
        pytest.param(("geospatial", "medium"), marks=LONG),
    ],
    ids=lambda p: p[0],
)
def diligent(request: pytest.FixtureRequest) -> Lab:
    task, difficulty = request.param
    return Lab(task, difficulty, "diligent", seed=1).run()


def test_a_diligent_team_makes_no_error_and_closes_every_task(diligent: Lab) -> None:
    assert diligent.errors == []
    assert diligent.unclosed == 0
    assert not [reply.faults for reply in diligent.replies if reply.faults]


def test_a_diligent_paper_has_all_sections_with_substance_and_right_findings(diligent: Lab) -> None:
    paper = diligent.artifacts[REPORT]
    sections = re.split(r"^## ", paper.partition("```findings")[0], flags=re.MULTILINE)[1:]
    assert [section.partition("\n")[0] for section in sections] == list(WRITING.sections)
    assert all(len(re.findall(r"[.?](?:\s|$)", section)) >= 3 for section in sections)
    assert all(re.search(r"\d", section) for section in sections[2:6])
    for team in ("data", "model", "eval"):
        assert f"The {team} team" in paper
    assert "```" not in paper
    assert set(diligent.stated) == set(TEAMS)
    assert diligent.score() >= 0.45


def test_results_travel_through_artifacts_and_stated_findings_alone(diligent: Lab) -> None:
    model, checked = diligent.stated["model"], diligent.stated["eval"]
    assert model == find_block(diligent.artifacts["model_architecture"])
    assert checked == find_block(diligent.artifacts["evaluation_report"])
    paper = diligent.stated["writing"]
    assert set(model) <= set(paper)
    assert all(paper[name] == value for name, value in checked.items())
    assert [(by, to) for by, to, _ in diligent.mail] == [("data", "model"), ("model", "eval"), ("eval", "writing")]
    assert all(re.search(r"\d", text) for _, _, text in diligent.mail)


class Patients(BaseModel):
    """Findings of a task that ships no cells."""

    n_subtypes: int | None = Field(None, description="number of hidden subtypes of the patients")
    markers: list[str] | None = Field(None, description="markers with which the effect of the treatment differs")


class PatientsTask(Task[Patients, Patients]):
    """A plug-in's task: a plain table without time."""

    name = "patients"
    title = "Patients"
    brief = "Patients were treated or not. Which markers matter?"
    version = "1"
    findings = Patients

    def generate(self, seed: int, difficulty: Difficulty = "medium") -> Dataset[Patients]:
        rng = np.random.default_rng(seed)
        frame = pd.DataFrame(rng.normal(size=(120, 4)), columns=["m1", "m2", "m3", "response"])
        frame["response"] += frame["m1"]
        frame["arm"] = rng.choice(["treated", "control"], size=120)
        frame.insert(0, "patient", np.arange(120))
        return Dataset(frame, Patients(n_subtypes=2), "- patient: number\n- m1: marker\n- arm: treated or control")

    def oracle(self, truth: Patients) -> Patients:
        return truth

    def score(self, findings: Patients, truth: Patients) -> tuple[Credit, ...]:
        return (Credit("n_subtypes", float(findings.n_subtypes == truth.n_subtypes), 1, ""),)

    def checks(self, truth: Patients) -> tuple[Check, ...]:
        return ()


def test_a_task_without_cells_gets_a_paper_that_says_so_and_no_findings() -> None:
    lab = Lab(PatientsTask(), "easy", "diligent").run()
    paper = lab.artifacts[REPORT]
    assert lab.errors == []
    assert lab.unclosed == 0
    assert find_block(paper) == lab.stated["writing"] == {}
    assert [title for title in WRITING.sections if f"## {title}\n" not in paper] == []
    assert paper.count(NO_ANALYSIS) == len(WRITING.sections)


@pytest.mark.parametrize("name", ["hasty", "silent"])
def test_little_work_costs_little_and_finds_nothing(name: str) -> None:
    lab = Lab("anomaly", "easy", name).run(("data", "writing"))
    assert lab.score() == 0.0
    assert lab.artifacts[REPORT]
    assert sum(reply.usage.output_tokens for reply in lab.replies) < 3_000
    if name == "silent":
        assert not any(reply.tool_calls for reply in lab.replies)
        assert lab.unclosed == 4
    else:
        assert lab.unclosed == 0
        assert lab.errors == []


def test_waste_costs_far_more_than_diligence_and_finds_no_more() -> None:
    labs = [Lab("ecology", "easy", name, seed=1) for name in ("diligent", "wasteful")]
    for lab in labs:
        lab.run(("data", "model"))
    cost = [sum(r.usage.input_tokens + 6 * r.usage.output_tokens for r in lab.replies) for lab in labs]
    found = [find_block(lab.artifacts["model_architecture"]) for lab in labs]
    assert cost[1] > 2 * cost[0]
    assert found[0]["interactions"]
    assert found[0] == found[1]
    assert any("can make no further request" in error for error in labs[1].errors)
    assert set(labs[1].artifacts) > {"notes_of_data_lead", "model_architecture"}


@pytest.mark.parametrize("seed", range(2))
def test_garbage_ends_no_run(seed: int) -> None:
    lab = Lab("ecology", "easy", "garbage", seed=seed, max_tokens=700).run(("data", "model"))
    assert lab.errors
    assert {fault for reply in lab.replies for fault in reply.faults} >= {"empty", "cut", "bad_tool_call"}


LAB = Lab("ecology", "easy", "diligent")
EFFECTS = [{"source": "Aa b", "target": "Cc d", "sign": "+", "strength": 0.01 * i} for i in range(1, 25)]
OUTPUT = "\n".join(
    [
        "regime shifts at survey [75], n = 300 transitions",
        f"RESULT {json.dumps({'n_species': 2, 'shift_surveys': [75], 'interactions': EFFECTS})}",
    ]
)
REPORTS = {"ml_engineer": ("A regime shift begins at survey 75.", OUTPUT)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("limit", [64, 256, 512, 1024, 4096])
def test_no_step_takes_more_than_the_limit(name: str, limit: int) -> None:
    lab = Lab("ecology", "easy", name, max_tokens=limit)
    opening = lab.system(MODEL, MODEL.lead)
    lab.ask([opening, HumanMessage(lab.plan_order(MODEL))])
    lab.ask([opening, HumanMessage(work_order(MODEL, "Fit.", "- fit", {}))], MODEL.tools())
    lab.ask([opening, HumanMessage(deliberation_order(MODEL, 1, "Found 5.", OUTPUT, "nothing yet"))])
    lab.ask([opening, HumanMessage(lab.writing_order(MODEL, REPORTS, "nothing"))], ["write_artifact"])
    if name == "diligent" and limit >= 256:
        assert not [reply.faults for reply in lab.replies if reply.faults]


@pytest.mark.parametrize("limit", [256, 512, 1024, 4096])
def test_with_few_tokens_the_prose_shrinks_and_the_findings_stay_whole(limit: int) -> None:
    lab = Lab("ecology", "easy", "diligent", max_tokens=limit)
    messages = [lab.system(MODEL, MODEL.lead), HumanMessage(lab.writing_order(MODEL, REPORTS, "nothing"))]
    content = str(lab.ask(messages, ["write_artifact"]).tool_calls[0].arguments["content"])
    block = find_block(content)
    assert block["shift_surveys"] == [75]
    assert ("## Limits" in content) == (limit >= 2_000)
    assert len(block["interactions"]) == 24 if limit >= 2_000 else 0 < len(block["interactions"]) <= 24


@pytest.mark.parametrize("limit", [256, 1024, 2048])
def test_with_few_tokens_a_member_runs_the_cells_that_fit_and_closes_its_task(limit: int) -> None:
    lab = Lab("ecology", "easy", "diligent", max_tokens=limit)
    handed = {"dataset_description": "There are 5 species at 6 places in this table."}
    summary, output = lab._work(MODEL, MODEL.lead, "ml_engineer: Fit the model.", handed)
    assert (lab.unclosed, lab.errors) == (0, [])
    assert re.search(r"\d", summary)
    assert "stopped:" not in output
    assert ('"n_species"' in output) == (limit >= 1024)
    assert ('"shift_surveys"' in output) == (limit >= 2048)


@pytest.mark.parametrize(("notice", "most"), [(CONCISE, 0.9), (FINALISE, 0.75)])
def test_a_notice_makes_texts_shorter(notice: str, most: float) -> None:
    def tokens(budget: str) -> int:
        order = LAB.writing_order(MODEL, REPORTS, "nothing", budget)
        reply = LAB.ask([LAB.system(MODEL, MODEL.lead), HumanMessage(order)], ["write_artifact"])
        return estimate_tokens(str(reply.tool_calls[0].arguments["content"]).partition("## Findings so far")[0])

    assert tokens(f"\nBudget: $0.9 of $1 spent. {notice}") < most * tokens("\nBudget: $0.1 of $1 spent.")


@pytest.mark.parametrize(
    ("notice", "member", "calls"),
    [
        (FINALISE, 0, ["mark_complete"]),
        (FINALISE, 1, ["mark_complete"]),
        (CONCISE, 0, ["read_artifact", "run_code"]),
        (CONCISE, 1, ["mark_complete"]),
        ("", 1, ["read_artifact", "run_code"]),
    ],
)
def test_with_a_low_pool_the_lead_does_the_least_and_the_others_close(
    notice: str, member: int, calls: list[str]
) -> None:
    budget = f"\nBudget: $0.8 of $1 spent. {notice}"
    order = work_order(EVAL, "Test every claim.", "- check", {"model_architecture": "x"}, budget)
    reply = LAB.ask([LAB.system(EVAL, EVAL.members[member]), HumanMessage(order)], EVAL.tools())
    assert [call.name for call in reply.tool_calls] == calls


def test_a_lead_who_finds_no_numbers_asks_for_them_once() -> None:
    messages: list[BaseMessage] = [
        LAB.system(EVAL, EVAL.lead),
        HumanMessage(work_order(EVAL, "Check.", "- check", {"model_architecture": "x"})),
    ]
    made: list[str] = []
    for answer in (
        "A model was fitted.",
        "The model team has answered your request.",
        "It has 3 parts and an error of 0.2.",
    ):
        reply = LAB.ask(messages, EVAL.tools())
        made += [call.name for call in reply.tool_calls]
        messages += [reply.message, *(ToolMessage(answer, tool_call_id=call.id) for call in reply.tool_calls)]
    made += [call.name for call in LAB.ask(messages, EVAL.tools()).tool_calls]
    assert made[:3] == ["read_artifact", "run_code", "request_additional_work"]
    assert made[3] == "read_artifact", "the artifact is read again once the request is answered"
    assert made.count("request_additional_work") == 1


def titles_of(answers: Sequence[str], limits: Sequence[int]) -> list[str]:
    """Return what a data engineer calls next, each time that its last call was answered."""
    lab = Lab("ecology", "easy", "diligent")
    messages: list[BaseMessage] = [
        lab.system(DATA, DATA.members[1]),
        HumanMessage(work_order(DATA, "Clean.", "- clean", {})),
    ]
    titles: list[str] = []
    for answer, limit in zip(answers, limits, strict=True):
        lab.max_tokens = limit
        reply = lab.ask(messages, DATA.tools())
        titles.append(str(reply.tool_calls[0].arguments.get("description", reply.tool_calls[0].name)))
        messages += [reply.message, *(ToolMessage(answer, tool_call_id=call.id) for call in reply.tool_calls)]
    return titles


FOUND_PANEL = "3 rows, 8 columns"


def test_variables_that_were_lost_are_computed_again_once() -> None:
    lost = "stopped: NameError name 'd' is not defined"
    titles = titles_of([FOUND_PANEL, lost, lost, ""], [4096] * 4)
    assert titles == [
        "see the layout of the surveys",
        "repair names, units and slips",
        titles[0],
        "describe every column",
    ]


def test_cells_of_one_reply_that_miss_their_variables_are_one_loss() -> None:
    lab = Lab("ecology", "easy", "diligent")
    order = work_order(MODEL, "Fit.", "- fit", {})
    messages: list[BaseMessage] = [lab.system(MODEL, MODEL.lead), HumanMessage(order)]
    made: list[list[str]] = []
    for answer in ("5 rows.", FOUND_PANEL, "stopped: NameError name 'd' is not defined", FOUND_PANEL, ""):
        reply = lab.ask(messages, MODEL.tools())
        made.append([call.arguments.get("description", call.name) for call in reply.tool_calls])
        messages += [reply.message, *(ToolMessage(answer, tool_call_id=call.id) for call in reply.tool_calls)]
    _, first, cells, *again = made
    assert len(cells) == 2
    assert again == [first, cells]


def test_a_limit_that_falls_meanwhile_makes_no_cell_run_twice() -> None:
    titles = titles_of([FOUND_PANEL, "clean", ""], [4096, 4096, 700])
    assert titles[2] == "mark_complete"


@pytest.mark.parametrize("name", NAMES)
def test_a_reply_depends_on_what_was_heard_alone(name: str) -> None:
    order = HumanMessage(work_order(MODEL, "Fit.", "- fit", {}))
    messages = with_facts([LAB.system(MODEL, MODEL.lead), order])
    schemas = [tool_schema(tool) for tool in MODEL.tools()]
    replies = [BASELINES.get(name)().invoke(messages, tools=schemas, seed=3, max_tokens=900) for _ in range(2)]
    assert replies[0].content == replies[1].content
    assert repr(replies[0].tool_calls) == repr(replies[1].tool_calls)
    assert replies[0].usage_metadata == replies[1].usage_metadata


ORDERS = (
    LAB.plan_order(MODEL),
    work_order(MODEL, "Fit.", "- fit", {"dataset_description": "x"}),
    deliberation_order(MODEL, 2, "Found 5.", OUTPUT, "[statistician]: I found 7."),
    LAB.writing_order(MODEL, REPORTS, "nothing"),
)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["diligent", "wasteful", "talkative", "hasty", "silent", "colleague"]),
    st.sampled_from(ORDERS),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from([[], ["run_code"], ["write_artifact"], MODEL.tools()]),
)
def test_a_prompt_cut_anywhere_is_answered(name: str, order: str, most: float, least: float, tools: list[str]) -> None:
    system = str(LAB.system(MODEL, MODEL.lead).content)
    messages = [SystemMessage(system[: int(most * len(system))]), HumanMessage(order[: int(least * len(order))])]
    schemas = [tool_schema(tool) for tool in tools]
    message = BASELINES.get(name)().invoke(with_facts(messages), tools=schemas, max_tokens=400)
    assert message.usage_metadata is not None
    assert message.usage_metadata["output_tokens"] <= 400
    assert {call["name"] for call in message.tool_calls} <= set(tools)
