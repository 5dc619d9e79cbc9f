"""What the agents of the lab are told: templates filled in from the state of the lab."""

from __future__ import annotations

from collections.abc import Mapping

from labmates.agents.desk import MOST_ARTIFACT_CHARS
from labmates.agents.prompts import render
from labmates.agents.roles import REPORT, SOLO, TEAMS, Role, Team
from labmates.budgets.money import show_dollars
from labmates.budgets.purse import Purse
from labmates.workflows.science.context import LabContext, team_of
from labmates.workflows.science.state import LabState, Member, Phase, Waiting

PLAN_ARTIFACT_CHARS = 6_000
PAPER_ARTIFACT_CHARS = 12_000
OUTPUT_CHARS = 3_000
"""How much of a member's code output the lead gets to write from (cooperative-profiles paper, appendix C.6)."""


def system_prompt(ctx: LabContext, team: Team, role: Role) -> str:
    """Return who the agent is and what the project is about."""
    who = "You" if team.alone else "All teams"
    hidden = ctx.condition.visibility == "hidden"
    told = {
        "role": role.title,
        "team": team.name,
        "agent": role.id,
        "brief": ctx.task.brief,
        "data_description": ctx.dataset.description,
        "findings": ctx.findings_text,
        "role_description": role.description,
        "budget_rules": "" if hidden else render("budget_rules", who=who, total=_pool(ctx)),
    }
    if team.alone:
        handed = [f"- the {SOLO.name} team hands over `{other.artifact}`" for other in TEAMS.values()]
        return render("solo_system", **told, artifacts="\n".join(handed))
    return render("system", **told, members=member_lines(ctx, team))


def plan_prompt(ctx: LabContext, lab: LabState, purse: Purse) -> str:
    """Return the lead's order to plan a phase."""
    team = team_of(lab)
    if team.alone:
        return render("solo_plan", budget=_budget(ctx, purse))
    return render(
        "plan",
        team=team.name,
        request=request_text(ctx, lab),
        artifacts=_artifacts(_upstream(ctx.newest(lab), team), PLAN_ARTIFACT_CHARS),
        mail=_mail(lab, team.name),
        member_lines=member_lines(ctx, team),
        theory_of_mind=_theory_of_mind(ctx),
        budget=_budget(ctx, purse),
    )


def work_prompt(ctx: LabContext, lab: LabState, member: Member, purse: Purse) -> str:
    """Return a member's order to work."""
    team = team_of(lab)
    hint = render("code_hint", timeout=f"{ctx.condition.code_timeout:g}") if team.has_code else render("no_code_hint")
    turns = ctx.condition.turns_of(team)
    if team.alone:
        plan, artifacts = lab["agenda"][0]["plan"], _solo_artifacts()
        budget = _budget(ctx, purse)
        return render("solo_work", plan=plan, turns=turns, code_hint=hint, artifacts=artifacts, budget=budget)
    return render(
        "work",
        task=member["task"],
        plan=lab["agenda"][0]["plan"],
        request=request_text(ctx, lab),
        artifact_names=", ".join(f"`{name}`" for name in sorted(lab["artifacts"])) or "none yet",
        mail=_mail(lab, team.name),
        turns=turns,
        code_hint=hint,
        theory_of_mind=_theory_of_mind(ctx),
        budget=_budget(ctx, purse),
    )


def deliberation_prompt(ctx: LabContext, lab: LabState, role: Role, round_: int, purse: Purse) -> str:
    """Return a member's order to speak in the team's deliberation."""
    team, phase = team_of(lab), lab["agenda"][0]
    member = phase["members"][role.id]
    return render(
        "deliberate",
        round=round_,
        rounds=ctx.condition.deliberation_rounds,
        lead=f"the {team.lead.title}",
        artifact=team.artifact,
        task=member["task"],
        summary=member["summary"] or "nothing",
        output=_outputs(ctx, member) or "nothing",
        said=_said(phase),
        theory_of_mind=_theory_of_mind(ctx),
        budget=_budget(ctx, purse),
    )


def synthesis_prompt(ctx: LabContext, lab: LabState, purse: Purse) -> str:
    """Return the lead's order to write the team's artifact."""
    team, phase = team_of(lab), lab["agenda"][0]
    sections = "\n".join(f"- {section}" for section in team.sections)
    if team.artifact == REPORT:
        sections += "\n\n" + render("findings_section")
    if team.alone:
        return render("solo_write", artifact=team.artifact, sections=sections, budget=_budget(ctx, purse))
    newest = ctx.newest(lab)
    if team.artifact == REPORT:
        material = _artifacts({k: v for k, v in newest.items() if k != REPORT}, PAPER_ARTIFACT_CHARS)
    else:
        own = {name: text for name, text in newest.items() if name in _written_here(ctx, lab) and name != team.artifact}
        material = _artifacts(own, PLAN_ARTIFACT_CHARS)
    return render(
        "synthesis",
        artifact=team.artifact,
        request=request_text(ctx, lab, most=MOST_ARTIFACT_CHARS),
        sections=sections,
        outputs="\n\n".join(_reported(ctx, phase, role) for role in ctx.members(team)),
        said=_said(phase),
        artifacts=material,
        budget=_budget(ctx, purse),
    )


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
    previous = ctx.newest(lab).get(artifact, "(it was never written)")
    return render(
        "request_additional",
        asked_by=asked["by"],
        request=asked["request"],
        artifact=artifact,
        previous=_cut(previous, most),
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


def member_lines(ctx: LabContext, team: Team) -> str:
    """Return the members of a team, one on a line."""
    return "\n".join(f"- {role.id}: {role.title}" for role in ctx.members(team))


def _solo_artifacts() -> str:
    """Return the artifacts besides the paper, with their sections but for those that speak to a next team."""
    parts = []
    for team in TEAMS.values():
        if team.artifact != REPORT:
            sections = [f"- {section}" for section in team.sections if " team" not in section]
            parts.append("\n".join([f"`{team.artifact}`", *sections]))
    return "\n\n".join(parts)


def _pool(ctx: LabContext) -> str:
    return show_dollars(ctx.ledger.total) if ctx.condition.visibility == "full" else "credits"


def _budget(ctx: LabContext, purse: Purse) -> str:
    status = purse.status(ctx.condition.visibility)
    return f"\n{status}" if status else ""


def _theory_of_mind(ctx: LabContext) -> str:
    return render("theory_of_mind") + "\n" if ctx.condition.theory_of_mind else ""


def _upstream(newest: Mapping[str, str], team: Team) -> dict[str, str]:
    return {name: text for name, text in newest.items() if name != team.artifact}


def _artifacts(artifacts: Mapping[str, str], most: int) -> str:
    return "\n\n".join(f"=== {name} ===\n{_cut(text, most)}" for name, text in artifacts.items()) or "none yet"


def _mail(lab: LabState, team: str) -> str:
    lines = [f"- from the {item['sender']} team: {item['text']}" for item in lab["mail"] if item["to"] == team]
    return "\n".join(lines) or "none"


def _said(phase: Phase) -> str:
    return "\n".join(f"[{agent}]: {text}" for agent, text in phase["said"]) or "nothing yet"


def _reported(ctx: LabContext, phase: Phase, role: Role) -> str:
    member = phase["members"][role.id]
    return (
        f"=== {role.id} ===\nReported: {member['summary'] or 'nothing'}\nPrinted:\n{_outputs(ctx, member) or 'nothing'}"
    )


def _outputs(ctx: LabContext, member: Member) -> str:
    return _cut("\n".join(ctx.text(number) for number in member["outputs"]), OUTPUT_CHARS)


def _written_here(ctx: LabContext, lab: LabState) -> set[str]:
    phase = lab["agenda"][0]
    return {
        event.name
        for event in ctx.recorder.events
        if event.type == "artifact" and event.step.startswith(f"{phase['team']}/{phase['number']}/")
    }


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[cut: {len(text) - most} more characters]"
