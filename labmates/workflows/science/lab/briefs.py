"""Prompts of the lab's agents: templates of the organisation, filled in from the state of the lab.

A prompt need not show every value. The facts of an order are those rendered by the values in its prompt, so baselines
know the same as models, in the words of any organisation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage

from labmates.agents.facts import ALWAYS, GIVEN
from labmates.agents.organisation_parts import REPORT, Seat, Team
from labmates.agents.sections import excerpt
from labmates.budgets.money import show_dollars
from labmates.budgets.purse import Purse
from labmates.models.orders import Order
from labmates.models.prefix import mark_shared
from labmates.records.event_text import versions_text
from labmates.records.events import ArtifactEvent
from labmates.tasks.schema import findings_example
from labmates.tasks.words import WORDS
from labmates.workflows.science.lab.context import (
    OUTPUT_CHARS,
    LabContext,
    delimited,
    earlier_files,
    outputs_text,
    said_text,
)
from labmates.workflows.science.lab.facts import phase_facts, run_facts, seat_facts
from labmates.workflows.science.lab.findings import stated_texts
from labmates.workflows.science.lab.state import LabState, Phase

KIND = "science"
"""Kind of the orders."""
PLAN_ARTIFACT_CHARS = 6_000
STATED_CHARS = 6_000


@dataclass(frozen=True)
class Shown:
    """A value of a prompt: its text, and the facts in the text."""

    text: str
    facts: Mapping[str, Any]

    def __str__(self) -> str:
        return self.text


def system_message(ctx: LabContext, team: Team, seat: Seat) -> BaseMessage:
    """The system prompt: the project and the agent's role, the same in all steps of the agent.

    The part common to all agents of a run comes first, word for word, so that providers' prompt caches serve it to all;
    the agent's team and role come last.
    """
    if seat.id not in ctx.system_messages:
        ctx.system_messages[seat.id] = _system_message(ctx, team, seat)
    return ctx.system_messages[seat.id]


def _system_message(ctx: LabContext, team: Team, seat: Seat) -> BaseMessage:
    count = len(ctx.organisation.teams)
    shared = {
        "teams": WORDS[count] if count < len(WORDS) else count,
        "brief": Shown(ctx.task.brief, {"brief": ctx.task.brief}),
        "findings": Shown(ctx.findings_text, {"findings": ctx.findings_text}),
        "handed": _handed(ctx),
        "budget_rules": _budget_rules(ctx),
    }
    description = ctx.description(seat.id)
    columns = {"data_description": Shown(description, {"data": description})}
    facts = seat_facts(ctx.condition, seat)
    parts = {member.id: _part(ctx, member) for member in team.members}
    values = {
        "team": Shown(team.name, {"team": team.name}),
        "role": seat.title,
        "agent": Shown(seat.id, {"agent": seat.id}),
        "part": seat.part,
        "members": Shown(listed(parts), {"parts": parts}),
    }
    sections: dict[str, Mapping[str, object]] = {"system": shared, "data_set": columns, "role": values}
    known = {n: fact for prompt, each in sections.items() for n, fact in _facts(ctx, prompt, facts, each).items()}
    *first, role = (ctx.organisation.render(prompt, facts, **each) for prompt, each in sections.items())
    common = "\n\n".join(first)
    return mark_shared(Order(KIND, known, f"{common}\n\n{role}").system(), len(common))


def readable_value(ctx: LabContext, lab: LabState, seat: Seat) -> Shown:
    """The names of the artifacts that a seat may read."""
    readable = sorted(ctx.newest(lab, seat))
    return Shown(", ".join(f"`{name}`" for name in readable), {"readable": readable})


def so_far(ctx: LabContext, lab: LabState, seat: Seat) -> dict[str, object]:
    """Teammates' reports and contributions in earlier phases, and the number of this phase.

    An agent with a conversation memory gets only news: the previous phase, without its own part and what it heard.
    """
    team, phase = ctx.team(lab), lab["agenda"][0]
    remembers = team.memory == "conversation"
    phases = lab["earlier"].get(team.name, [])
    lines: list[list[str]] = []
    for past in phases[-1:] if remembers else phases:
        reports = [[who, member["summary"]] for who, member in past["members"].items() if member["summary"]]
        reported = [line for line in reports if ctx.organisation.may("read", seat.id, line[0])]
        talk = [[who, text] for who, text in ctx.heard(seat, past["said"])]
        if remembers:
            reported = [line for line in reported if line[0] != seat.id]
            talk = talk[max((place for place, line in enumerate(talk, 1) if line[0] == seat.id), default=0) :]
        lines += reported + talk
    text = "\n".join(f"[{who}]: {line}" for who, line in lines)
    return {
        "so_far": Shown(f"## From the phases before\n{text}" if lines else "", {"so_far": lines}),
        "phase": str(phase["place"] + 1),
        "phases": str(len(ctx.organisation.flow)),
    }


def round_values(
    ctx: LabContext, lab: LabState, seat: Seat, round_: int, said: Sequence[tuple[str, str]]
) -> dict[str, object]:
    """What a talk is about, and what was said so far."""
    team = ctx.team(lab)
    return {
        "round": Shown(str(round_), {"round": round_}),
        "rounds": ctx.rounds(lab),
        "lead": "you write" if seat == team.lead else f"{name_of(team.lead, team)} writes",
        "said": Shown(said_text(said), {"said": [[who, text] for who, text in said]}),
    }


def name_of(seat: Seat, team: Team) -> str:
    """What others call a seat: its title, or its name where the title is not unique."""
    return f"the {seat.title}" if sum(o.title == seat.title for o in team.members) == 1 else seat.id


def own_work_values(ctx: LabContext, lab: LabState, seat: Seat, *, all_phases: bool = False) -> dict[str, object]:
    """A member's own report of this phase, or of all since the artifact, and what its code printed."""
    team, phase = ctx.team(lab), lab["agenda"][0]
    phases = [*lab["earlier"].get(team.name, []), phase] if all_phases else [phase]
    mine = [each["members"][seat.id] for each in phases if seat.id in each["members"]]
    reported = "\n".join(member["summary"] for member in mine if member["summary"]) or "nothing"
    outputs = [number for member in mine for number in member["outputs"]]
    # Its conversation holds what its code printed.
    prints = team.has_code and team.memory != "conversation"
    printed = f"What your code printed:\n{outputs_text(ctx, outputs) or 'nothing'}" if prints else ""
    return {"summary": Shown(reported, {"reported": reported}), "output": printed}


def reports_value(ctx: LabContext, lab: LabState, author: Seat, most: int) -> Shown:
    """Members' reports since the previous artifact, and at most `most` characters of their code's output."""
    team = ctx.team(lab)
    phases = [*lab["earlier"].get(team.name, []), lab["agenda"][0]]
    reports: dict[str, dict[str, str]] = {}
    for seat in ctx.workers(lab):
        if not ctx.organisation.may("read", author.id, seat.id):
            continue
        members = [phase["members"][seat.id] for phase in phases if seat.id in phase["members"]]
        outputs = [number for member in members for number in member["outputs"]]
        reported = "\n".join(member["summary"] for member in members if member["summary"]) or "nothing"
        reports[seat.id] = {"reported": reported}
        if team.has_code and (seat != author or team.memory != "conversation"):  # which holds what its code printed
            reports[seat.id]["printed"] = outputs_text(ctx, outputs, most) or "nothing"
    parts = (
        f"=== {name} ===\nReported: {report['reported']}"
        + (f"\nPrinted:\n{report['printed']}" if "printed" in report else "")
        for name, report in reports.items()
    )
    return Shown("\n\n".join(parts), {"reports": reports})


def sections_value(ctx: LabContext, lab: LabState, seat: Seat) -> Shown:
    """The sections of the team's artifact, and instructions for its findings."""
    team, facts = ctx.team(lab), seat_facts(ctx.condition, seat)
    if "apart" not in facts and lab["findings"].get(team.name):
        facts = facts.union(["stated"])
    lines = bullets(team.sections)
    if team.artifact != REPORT:
        stating = ctx.organisation.render("findings_handover", facts)
        return Shown(f"{lines}\n\n{stating}", {"sections": [*team.sections]})
    stating = ctx.organisation.render("findings_section", facts, example=findings_example(ctx.task))
    return Shown(f"{lines}\n\n{stating}", {"sections": [*team.sections], "block": "findings"})


def request_value(ctx: LabContext, lab: LabState, *, most: int = PLAN_ARTIFACT_CHARS) -> Shown:
    """Another team's request to this phase, with at most `most` characters of the existing artifact.

    Empty in a planned phase.
    """
    asked, team = lab["agenda"][0]["asked"], ctx.team(lab)
    if asked is None:
        return Shown("", {"request": ""})
    values = {"asked_by": asked["by"], "request": asked["request"], "artifact": team.artifact}
    if asked["kind"] == "redo":
        text = ctx.organisation.render("request_redo", ALWAYS, **values, justification=asked["justification"])
    else:
        previous = ctx.newest(lab).get(team.artifact)
        text = ctx.organisation.render(
            "request_additional",
            seat_facts(ctx.condition, team.lead),
            **values,
            previous=delimited(team.artifact, excerpt(previous, most)) if previous else "(it was never written)",
        )
    return Shown(text, {"request": asked["request"]})


def answer_text(ctx: LabContext, phase: Phase) -> str:
    """The answer to the request that caused a phase: its reports, or that nobody could be paid."""
    team, members = ctx.organisation.teams[phase["team"]], phase["members"].items()
    reports = " ".join(f"{name} reports: {member['summary']}" for name, member in members if member["summary"])
    if not any(member["turns"] for _, member in members):
        return ctx.organisation.render("request_unpaid", team=team.name)
    written = any(isinstance(event, ArtifactEvent) and event.name == team.artifact for event in ctx.recorder.events)
    stands = f"read_artifact shows `{team.artifact}`." if written else f"There is still no `{team.artifact}`."
    reports = reports or "Nobody reported."
    return ctx.organisation.render("request_answered", team=team.name, reports=reports, stands=stands)


def code_hint(ctx: LabContext, lab: LabState, seat: Seat) -> str:
    """What an agent is told of its code tools and of the files in its sandbox."""
    facts = seat_facts(ctx.condition, seat)
    if "codes" not in facts:
        return ctx.organisation.render("no_code_hint", facts)
    files = ", ".join(f"`in/{name}`" for name in earlier_files(ctx, lab, seat))
    timeout, libraries = f"{ctx.condition.code_timeout:g}", versions_text(ctx.libraries)
    facts = facts.union(["files"] if files else [])
    return ctx.organisation.render("code_hint", facts, timeout=timeout, libraries=libraries, files=files, data=ctx.data)


def status_text(ctx: LabContext, purse: Purse) -> str:
    """The agent's view of the budget; empty if it is hidden."""
    who = {"alone": "you have", "apart": "all researchers have", "group": "the group has", "teams": "your team has"}
    facts = run_facts(ctx.condition)
    return purse.status(ctx.condition.visibility, next(who[name] for name in who if name in facts))


def step_order(
    ctx: LabContext, lab: LabState, seat: Seat, step: str, prompt: str, values: Mapping[str, object], *more: str
) -> Order:
    """The order of a step to a seat from a prompt, with the facts of the values that the prompt shows.

    `more` are further facts that sentences of the prompt rest on.
    """
    given = (name for name, value in values.items() if name in GIVEN and str(value))
    facts = phase_facts(ctx.condition, seat, lab["agenda"][0], ctx.workers(lab)).union(given, more)
    text = ctx.organisation.render(prompt, facts, **values)
    return Order(KIND, {"step": step, **_facts(ctx, prompt, facts, values)}, text)


def _facts(ctx: LabContext, prompt: str, facts: frozenset[str], values: Mapping[str, object]) -> dict[str, Any]:
    parts = (values[name] for name in ctx.organisation.shown_in(prompt, facts))
    return {name: fact for part in parts if isinstance(part, Shown) for name, fact in part.facts.items()}


def _handed(ctx: LabContext) -> Shown:
    """The artifacts to hand over, a line each; their team is 'you' if the line names no team."""
    facts = run_facts(ctx.condition)
    handed = ctx.organisation.handed
    text = "\n".join(
        ctx.organisation.render("handed", facts, team=team, artifact=name).strip() for name, team in handed.items()
    )
    names_teams = "team" in ctx.organisation.shown_in("handed", facts)
    return Shown(text, {"handed": {name: team if names_teams else "you" for name, team in handed.items()}})


def bullets(lines: Iterable[str]) -> str:
    """Lines of a list."""
    return "\n".join(f"- {line}" for line in lines)


def listed(members: Mapping[str, str]) -> str:
    """A line per member."""
    return bullets(f"{name}: {text}" for name, text in members.items())


def _budget_rules(ctx: LabContext) -> str:
    prices = ctx.condition.prices.of(ctx.condition.models()[0])
    return ctx.organisation.render(
        "budget_rules",
        run_facts(ctx.condition),
        total=show_dollars(ctx.ledger.total) if ctx.condition.visibility == "full" else "credits",
        price=f"A million tokens cost {show_dollars(prices.input)} to read and {show_dollars(prices.output)} to write.",
    )


def theory_of_mind(ctx: LabContext, seat: Seat) -> str:
    """The request to think about what others know; empty unless the condition has it."""
    facts = seat_facts(ctx.condition, seat)
    if not ctx.condition.theory_of_mind or "others" not in facts:
        return ""
    return ctx.organisation.render("theory_of_mind", facts)


def _part(ctx: LabContext, seat: Seat) -> str:
    facts, team = seat_facts(ctx.condition, seat), ctx.organisation.teams[ctx.organisation.seats[seat.id][0]]
    duty = ", leads the team" if "leads" in facts else f", writes `{team.artifact}`" if "writes" in facts else ""
    return f"{seat.title}{duty}. {seat.part}"


def material_text(ctx: LabContext, team: Team) -> str:
    """What the author of the team's artifact will see of the members' work."""
    if not team.has_code:
        return "the members' summaries and the artifacts"
    shown = {
        "ends": f"{OUTPUT_CHARS:,} characters of each member's: long outputs lose their middle",
        "first": f"the first {OUTPUT_CHARS:,} characters of each member's",
    }
    return f"the members' summaries and what their code printed ({shown[ctx.condition.output_excerpt]})"


def stated_value(ctx: LabContext, lab: LabState, reader: Seat, material: float = 1.0) -> Shown:
    """The findings stated by the teams; a value repeated by the next team is shown once, with that team's."""
    stated, most = ctx.stated(lab, reader), int(material * STATED_CHARS)
    texts = stated_texts(stated)
    parts = [delimited(f"{team} team", excerpt(text, most)) for team, text in texts.items()]
    shown: dict[str, dict[str, Any]] = {}
    after, repeated = "", dict[str, Any]()
    for team, values in reversed(stated.items()):
        if len(texts[team]) <= most:
            known = shown.get(after, {})
            shown[team] = {n: value for n, value in values.items() if n in known or repeated.get(n) != value}
        after, repeated = team, values
    text = ctx.organisation.render("findings_so_far", findings="\n\n".join(parts)) if stated else ""
    return Shown(text, {"stated": shown})
