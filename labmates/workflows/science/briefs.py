"""What the agents of the lab are told: templates filled in from the state of the lab."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from labmates.agents.excerpts import LEFT_OUT, excerpt
from labmates.agents.prompts import render
from labmates.agents.roles import REPORT, TEAMS, Role, Team
from labmates.agents.tools import TO_CLOSE, shared_names, tool_names
from labmates.agents.workspace import MOST_ARTIFACT_CHARS
from labmates.budgets.money import show_dollars
from labmates.budgets.purse import Purse
from labmates.models.orders import Order
from labmates.models.prefix import mark_shared
from labmates.tasks.schema import findings_example
from labmates.workflows.science.context import LabContext, team_of
from labmates.workflows.science.digests import (
    OUTPUT_CHARS,
    artifacts_text,
    calls_text,
    delimited,
    mail_text,
    outputs_text,
    report_text,
    said_text,
)
from labmates.workflows.science.findings import stated_texts
from labmates.workflows.science.reserve import likely_cost
from labmates.workflows.science.state import LabState, Waiting, readers

KIND = "science"
"""Of the orders."""
PLAN_ARTIFACT_CHARS = 6_000
PAPER_ARTIFACT_CHARS = 12_000
DISCUSSION_CHARS = 40_000
STATED_CHARS = 6_000

_CODE = "Each has a Python session of its own with the data set, and reads and writes artifacts."
_NO_CODE = "They have no code tools: they read and write artifacts."
_READ_ON = "Where characters are left out, read_artifact shows them."
_LAST = "It is the result of the project."
_NOT_LAST = "The teams after yours know of your team's work only what its artifacts, stated findings and messages say."


def system_message(ctx: LabContext, team: Team, role: Role, *, data: bool = True) -> BaseMessage:
    """Return what the project is about and who the agent is.

    What all agents of a run read comes first and word for word the same, so that a provider's prompt cache serves it
    to each of them; the agent's team and role come last.

    Parameters
    ----------
    data
        Describe the columns of the data set. A deliberation, in which nobody reads them, goes without.
    """
    told = {"brief": ctx.task.brief, "findings": ctx.findings_text, "budget_rules": _budget_rules(ctx, team)}
    facts: dict[str, Any] = {"brief": ctx.task.brief, "agent": role.id}
    if team.alone:
        facts["handed"] = {other.artifact: "you" for other in TEAMS.values()}
        handed = "\n".join(f"- you hand over `{name}`" for name in facts["handed"])
        shared = render("solo_system", **told, artifacts=handed)
        own = render("solo_role", role=role.title, agent=role.id, role_description=role.description)
    else:
        parts = {member.id: _part(member, team) for member in ctx.members(team)}
        facts |= {"team": team.name, "parts": parts, "handed": {one.artifact: one.name for one in TEAMS.values()}}
        shared = render("system", **told)
        own = render("system_role", team=team.name, role=role.title, agent=role.id, members=_listed(parts))
    if data:
        shared += "\n\n" + render("data_set", data_description=ctx.dataset.description)
    return mark_shared(Order(KIND, facts, f"{shared}\n\n{own}").system(), len(shared))


def plan_prompt(ctx: LabContext, lab: LabState, purse: Purse) -> Order:
    """Return the lead's order to plan a phase."""
    team = team_of(lab)
    if team.alone:
        text = render("solo_plan", turns=ctx.condition.turns_of(team), budget=_budget(ctx, purse, team))
        return _order("plan", text)
    members = {role.id: f"{'you, ' if role is team.lead else ''}the {role.title}" for role in ctx.members(team)}
    text = render(
        "plan",
        team=team.name,
        request=request_text(ctx, lab),
        artifacts=artifacts_text(ctx, lab, team, PLAN_ARTIFACT_CHARS),
        stated=_stated(ctx, lab),
        mail=mail_text(lab, team.name),
        turns=ctx.condition.turns_of(team),
        tools=_CODE if team.has_code else _NO_CODE,
        then=_then(ctx),
        artifact=team.artifact,
        member_lines=_listed(members),
        theory_of_mind=_theory_of_mind(ctx, team),
        budget=_budget(ctx, purse, team),
    )
    return _order("plan", text, members=members, request=_request(lab))


def work_prompt(ctx: LabContext, lab: LabState, role: Role, purse: Purse) -> Order:
    """Return a member's order to work."""
    team, phase = team_of(lab), lab["agenda"][0]
    hint = render("code_hint", timeout=f"{ctx.condition.code_timeout:g}") if team.has_code else render("no_code_hint")
    turns, lacking, plan = ctx.condition.turns_of(team), _lacking(team, leads=role is team.lead), phase["plan"]
    tools = f"all but {', '.join(lacking)}" if lacking else "all"
    if team.alone:
        also, budget = _solo_sections(), _budget(ctx, purse, team)
        artifacts = "\n\n".join(f"`{name}`\n{_bullets(sections)}" for name, sections in also.items())
        text = render(
            "solo_work", plan=plan, turns=turns, tools=tools, code_hint=hint, artifacts=artifacts, budget=budget
        )
        return _order("work", text, turns=turns, lacking=lacking, also=also)
    task, readable, reading = phase["members"][role.id]["task"], sorted(lab["artifacts"]), readers(lab["agenda"])
    text = render(
        "work",
        task=task,
        plan=plan,
        request=request_text(ctx, lab),
        artifact_names=", ".join(f"`{name}`" for name in readable) or "none yet",
        readers=", ".join(reading) or "none",
        mail=mail_text(lab, team.name),
        turns=turns,
        tools=tools,
        code_hint=hint,
        writes="You write" if role is team.lead else f"The {team.lead.title} writes",
        artifact=team.artifact,
        material=_material(ctx, team),
        theory_of_mind=_theory_of_mind(ctx, team),
        budget=_budget(ctx, purse, team),
    )
    facts = {"readable": readable, "readers": [*reading], "lacking": lacking, "request": _request(lab)}
    return _order("work", text, task=task, turns=turns, artifact=team.artifact, **facts)


def deliberation_prompt(ctx: LabContext, lab: LabState, role: Role, round_: int, purse: Purse) -> Order:
    """Return the order by which a member enters the team's deliberation, with a digest of its own work."""
    team, phase = team_of(lab), lab["agenda"][0]
    member = phase["members"][role.id]
    output = f"\nWhat your code printed:\n{outputs_text(ctx, member) or 'nothing'}\n" if team.has_code else ""
    text = render(
        "deliberate",
        round=round_,
        rounds=ctx.condition.deliberation_rounds,
        lead=_lead(team, role),
        artifact=team.artifact,
        task=member["task"],
        calls=calls_text(ctx, phase, role) or "nothing",
        summary=member["summary"] or "nothing",
        output=output,
        said=said_text(phase["said"]),
        theory_of_mind=_theory_of_mind(ctx, team),
        budget=_budget(ctx, purse),
    )
    facts = {"task": member["task"], "reported": member["summary"] or "nothing", "said": _said(phase["said"])}
    return _order("deliberate", text, round=round_, artifact=team.artifact, **facts)


def next_round_prompt(
    ctx: LabContext, team: Team, role: Role, round_: int, since: Sequence[tuple[str, str]], purse: Purse
) -> Order:
    """Return a member's order to speak again, with what its teammates have said `since` it spoke."""
    text = render(
        "deliberate_again",
        round=round_,
        rounds=ctx.condition.deliberation_rounds,
        lead=_lead(team, role),
        artifact=team.artifact,
        said=said_text(since),
        theory_of_mind=_theory_of_mind(ctx, team),
        budget=_budget(ctx, purse),
    )
    return _order("deliberate", text, round=round_, said=_said(since), artifact=team.artifact)


def synthesis_prompt(ctx: LabContext, lab: LabState, purse: Purse, material: float = 1.0) -> Order:
    """Return the lead's order to write the team's artifact.

    Parameters
    ----------
    material
        How much of the usual material it holds, from 0 to 1.
    """
    team, phase = team_of(lab), lab["agenda"][0]
    sections = _bullets(team.sections)
    facts: dict[str, Any] = {"artifact": team.artifact, "tools": [*TO_CLOSE], "sections": [*team.sections]}
    if team.artifact == REPORT:
        sections += "\n\n" + render("findings_section", example=findings_example(ctx.task))
        facts["block"] = "findings"
    else:
        sections += "\n\n" + render("findings_handover")
    tools = ", ".join(TO_CLOSE)
    if team.alone:
        budget = _budget(ctx, purse, team)
        text = render("solo_write", artifact=team.artifact, sections=sections, tools=tools, budget=budget)
        return _order("write", text, **facts)
    printed = int(material * OUTPUT_CHARS)
    most = PAPER_ARTIFACT_CHARS if team.artifact == REPORT else PLAN_ARTIFACT_CHARS
    artifacts = artifacts_text(ctx, lab, team, int(material * most))
    if material == 1 and LEFT_OUT in artifacts:
        artifacts += f"\n\n{_READ_ON}"
    text = render(
        "synthesis",
        artifact=team.artifact,
        tools=tools,
        readers=_LAST if _is_last(ctx, team) else _NOT_LAST,
        reports="what the members reported" + " and what their code printed" * team.has_code,
        request=request_text(ctx, lab, most=int(material * MOST_ARTIFACT_CHARS)),
        sections=sections,
        outputs="\n\n".join(report_text(ctx, phase, team, role, printed) for role in ctx.members(team)),
        said=excerpt(said_text(phase["said"]), int(material * DISCUSSION_CHARS)),
        artifacts=artifacts,
        stated=_stated(ctx, lab, material),
        budget=_budget(ctx, purse, team),
    )
    return _order("write", text, request=_request(lab), stated=_stated_facts(ctx, lab, material), **facts)


def request_text(ctx: LabContext, lab: LabState, *, most: int = PLAN_ARTIFACT_CHARS) -> str:
    """Return what another team asked this phase for; empty in a planned phase.

    Parameters
    ----------
    most
        How much of the artifact that is to be completed is shown: who writes it anew has to see all of it.
    """
    phase = lab["agenda"][0]
    asked, artifact = phase["asked"], TEAMS[phase["team"]].artifact
    if asked is None:
        return ""
    if asked["kind"] == "redo":
        return render(
            "request_redo",
            asked_by=asked["by"],
            request=asked["request"],
            justification=asked["justification"],
            artifact=artifact,
        )
    previous = ctx.newest(lab).get(artifact)
    team = TEAMS[phase["team"]]
    return render(
        "request_additional",
        asked_by=asked["by"],
        request=asked["request"],
        artifact=artifact,
        previous=delimited(artifact, excerpt(previous, most)) if previous else "(it was never written)",
        variables=" The Python variables of your earlier phase are still there." if team.has_code else "",
    )


def answered_text(lab: LabState, asked: Waiting) -> str:
    """Return what an agent is told when it comes back to its request: how the team answered, or that it was refused."""
    team = asked["team"]
    if asked["refused"]:
        return render("request_refused", team=team)
    artifact = TEAMS[team].artifact
    version = len(lab["artifacts"].get(artifact, []))
    outcome = f"`{artifact}` is now at version {version}; read it." if version else f"There is still no `{artifact}`."
    return render("request_answered", team=team, outcome=outcome)


def status_text(ctx: LabContext, purse: Purse) -> str:
    """Return what the agent may read about the budget now; empty if nothing."""
    return purse.status(ctx.condition.visibility, "you have" if ctx.condition.solo else "your team has")


def _lacking(team: Team, *, leads: bool) -> list[str]:
    """The tools of the run that a member may not call at work."""
    held = tool_names(team, leads=leads)
    return [name for name in shared_names(alone=team.alone) if name not in held]


def _order(step: str, text: str, **facts: Any) -> Order:
    return Order(KIND, {"step": step, **facts}, text)


def _request(lab: LabState) -> str:
    asked = lab["agenda"][0]["asked"]
    return asked["request"] if asked else ""


def _said(said: Sequence[tuple[str, str]]) -> list[list[str]]:
    return [[who, text] for who, text in said]


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _listed(members: Mapping[str, str]) -> str:
    return _bullets(f"{name}: {text}" for name, text in members.items())


def _solo_sections() -> dict[str, list[str]]:
    """Return the artifacts besides the paper, with their sections but for those that speak to a next team."""
    return {
        team.artifact: [section for section in team.sections if " team" not in section]
        for team in TEAMS.values()
        if team.artifact != REPORT
    }


def _pool(ctx: LabContext) -> str:
    return show_dollars(ctx.ledger.total) if ctx.condition.visibility == "full" else "credits"


def _budget(ctx: LabContext, purse: Purse, team: Team | None = None) -> str:
    """Return the lines about the budget; the `team` that writes last is also told what the paper is likely to cost."""
    status = status_text(ctx, purse)
    if team is not None and _is_last(ctx, team) and ctx.sets_aside and ctx.condition.visibility == "full":
        status += f" The paper is likely to cost about {show_dollars(likely_cost(ctx.condition, team))}."
    return f"\n{status}" if status else ""


def _budget_rules(ctx: LabContext, team: Team) -> str:
    if ctx.condition.visibility == "hidden":
        return ""
    who = "You" if team.alone else "All teams"
    tools = " Each tool call has a price, too." if ctx.condition.prices.tool_call else ""
    return render("budget_rules", who=who, total=_pool(ctx), tool_calls=tools)


def _theory_of_mind(ctx: LabContext, team: Team) -> str:
    if not ctx.condition.theory_of_mind:
        return ""
    others = "each teammate" + ("" if _is_last(ctx, team) else " and of the team that works after yours")
    return render("theory_of_mind", others=others) + "\n"


def _is_last(ctx: LabContext, team: Team) -> bool:
    return team.name == ctx.condition.teams[-1].name


def _part(role: Role, team: Team) -> str:
    """Return a member's part of the work."""
    return f"{role.title}{', leads the team' if role is team.lead else ''}. {role.description}"


def _lead(team: Team, role: Role) -> str:
    return "you write" if role is team.lead else f"the {team.lead.title} writes"


def _then(ctx: LabContext) -> str:
    rounds = ctx.condition.deliberation_rounds
    if not rounds:
        return "Then"
    return f"Then they talk the results over in {rounds} round{'s' * (rounds > 1)}, and"


def _material(ctx: LabContext, team: Team) -> str:
    """Say from what the lead writes."""
    if not team.has_code:
        return "the members' summaries and the artifacts"
    shown = {
        "ends": f"{OUTPUT_CHARS:,} characters of each member's: long outputs lose their middle",
        "first": f"the first {OUTPUT_CHARS:,} characters of each member's",
    }
    return f"the members' summaries and what their code printed ({shown[ctx.condition.output_excerpt]})"


def _stated(ctx: LabContext, lab: LabState, material: float = 1.0) -> str:
    """Return the findings that the teams have stated so far, as data."""
    stated, most = ctx.stated(lab), int(material * STATED_CHARS)
    if not stated:
        return ""
    parts = [delimited(f"{team} team", excerpt(text, most)) for team, text in stated_texts(stated).items()]
    return render("findings_so_far", findings="\n\n".join(parts)) + "\n\n"


def _stated_facts(ctx: LabContext, lab: LabState, material: float) -> dict[str, dict[str, Any]]:
    """The findings that are shown, by team; what the next team repeated is shown with that one's."""
    stated, most = ctx.stated(lab), int(material * STATED_CHARS)
    whole = {team for team, text in stated_texts(stated).items() if excerpt(text, most) == text}
    shown: dict[str, dict[str, Any]] = {}
    after: str | None = None
    for team, values in reversed(stated.items()):
        repeated = stated[after] if after else {}
        known = shown.get(after or "", {})
        if team in whole:
            shown[team] = {n: value for n, value in values.items() if n in known or repeated.get(n) != value}
        after = team
    return shown
