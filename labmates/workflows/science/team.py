"""A team's graph: plan, work in parallel, deliberate, write the artifact. One passage is one phase of the team.

An agent that is alone passes through the same steps without deliberation, and writes in the conversation of its work.

If members have asked earlier teams for work, the passage ends after the work and the lab sends those teams first;
then the team's graph is entered again, and the members who waited go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from labmates.agents.excerpts import excerpt
from labmates.agents.roles import REPORT, Role, Team
from labmates.agents.sections import continued
from labmates.agents.transcript import kept_message, shorten
from labmates.agents.workspace import MOST_MESSAGE_CHARS
from labmates.budgets.ledger import InsufficientFundsError
from labmates.budgets.purse import Purse
from labmates.models.objects import UnusableAnswerError
from labmates.models.orders import Order
from labmates.models.prefix import mark_continued
from labmates.models.reply import Reply
from labmates.records.events import MessageEvent, PhaseEvent, RequestEvent
from labmates.workflows.asking import ask, fault_text
from labmates.workflows.science.briefs import (
    deliberation_prompt,
    next_round_prompt,
    plan_prompt,
    synthesis_prompt,
    system_message,
)
from labmates.workflows.science.context import LabContext, team_of, warm_up
from labmates.workflows.science.findings import keep_findings
from labmates.workflows.science.member import work
from labmates.workflows.science.state import (
    Asked,
    LabState,
    Mail,
    Phase,
    TeamState,
    WorkOrder,
    new_member,
    new_phase,
)
from labmates.workflows.science.writing import Author, keep_version

Update = dict[str, Any]

MOST_PLAN_CHARS = 6_000
MOST_HALVED = 5
"""So often the material of an artifact is halved until the pool can pay for an artifact written from it."""


@cache
def team_graph(team: Team) -> CompiledStateGraph[TeamState, LabContext, TeamState, LabState]:
    """Return the graph of one phase of `team`; compiled once, since that takes longer than a step."""
    graph = StateGraph(TeamState, context_schema=LabContext, output_schema=LabState)
    graph.add_node("plan", plan)
    for role in team.roles:
        graph.add_node(role.id, work, input_schema=WorkOrder)
    graph.add_node("gather", gather)
    graph.add_node("write", write)
    members = [role.id for role in team.roles]
    after = "write" if team.alone else "deliberate"
    graph.add_conditional_edges(START, entrance, ["plan", *members, after])
    graph.add_conditional_edges("plan", after_plan, [*members, "write", END])
    for member in members:
        graph.add_edge(member, "gather")
    graph.add_conditional_edges("gather", after_work, [after, END])
    if not team.alone:
        graph.add_node("deliberate", deliberate)
        graph.add_conditional_edges("deliberate", after_deliberation, ["write", END])
    graph.add_edge("write", END)
    return graph.compile(name=f"{team.name} team")


def entrance(state: TeamState) -> str | list[Send]:
    """Start with the plan, or go on with the work that waited for another team.

    Who asked may have closed its task in the same reply: where nobody waits, the work is over.
    """
    if not state["agenda"][0]["planned"]:
        return "plan"
    return send_to_work(state) or after_work(state)


def after_plan(state: TeamState) -> str | list[Send]:
    """Send the members to work; where the pool could not pay for a plan, write at once, or end."""
    return END if state.get("over") else send_to_work(state) or "write"


def send_to_work(state: TeamState) -> list[Send]:
    """Send all members to work that have something left to do."""
    lab = cast(LabState, {key: value for key, value in state.items() if key not in ("results", "over")})
    members = state["agenda"][0]["members"]
    open_ = [agent for agent, member in members.items() if member["status"] != "done"]
    return [Send(agent, WorkOrder(agent=agent, sharers=len(open_), lab=lab)) for agent in open_]


def after_work(state: TeamState) -> Literal["deliberate", "write", "__end__"]:
    """Deliberate, unless a member waits for another team; who is alone writes at once."""
    waits = any(member["status"] == "waiting" for member in state["agenda"][0]["members"].values())
    if waits or not state["agenda"][0]["members"]:
        return "__end__"
    return "write" if team_of(state).alone else "deliberate"


def after_deliberation(state: TeamState) -> Literal["write", "__end__"]:
    """Write the artifact, unless the run ends here because the pool ran dry."""
    return "__end__" if state.get("over") else "write"


def unpaid(ctx: LabContext, state: TeamState, purse: Purse) -> Update:
    """End a phase that the pool can't pay: the next one starts, or the run ends where nothing is set aside."""
    phase = state["agenda"][0]
    agenda = state["agenda"][1:] if ctx.sets_aside else []
    if ctx.sets_aside:
        where = _here(phase, "skipped")
        ctx.recorder.once(PhaseEvent(**where, status="skipped", number=phase["number"], reason=phase["reason"]))
    return {"agenda": agenda, "spent": {phase["team"]: purse.spent}, "exhausted": True, "over": True}


async def plan(state: TeamState, runtime: Runtime[LabContext]) -> Update:
    """Let the lead plan the phase and give each member its task."""
    ctx, phase = runtime.context, state["agenda"][0]
    team = team_of(state)
    members = ctx.members(team)
    ctx.recorder.once(
        PhaseEvent(**_here(phase, "phase"), status="started", number=phase["number"], reason=phase["reason"])
    )
    warm_up(ctx.sandboxes, ctx.condition, team)
    purse = ctx.purse(state, team.name)
    exhausted = False

    def read(reply: Reply, last: bool) -> tuple[str, dict[str, str]]:
        if problem := fault_text(reply):
            raise UnusableAnswerError(problem, remark=problem)
        tasks = read_tasks(reply.text, members)
        missing = [role.id for role in members if role.id not in tasks]
        if missing and not last and not team.alone:
            raise UnusableAnswerError(f"there is no line with a task for {', '.join(missing)}.")
        return excerpt(reply.text, MOST_PLAN_CHARS, "first"), tasks

    try:
        answer = await ask(
            ctx.caller,
            f"{team.name}/{phase['number']}/{team.lead.id}/plan",
            ctx.speaker(team, team.lead),
            _opening(ctx, team, team.lead, plan_prompt(ctx, state, purse)),
            purse,
            read,
            name=f"{team.lead.id}, phase {phase['number'] + 1}: plan",
            repair_turns=ctx.condition.repair_turns,
        )
    except InsufficientFundsError:
        if not (ctx.sets_aside and team.artifact == REPORT):
            return unpaid(ctx, state, purse)
        # The paper is written in any case, from what there is.
        answer, exhausted = None, True
    text, tasks = answer or ("(no plan)", {})
    planned: Phase = {
        **phase,
        "planned": True,
        "plan": text,
        "members": {role.id: new_member(tasks.get(role.id, role.description), done=exhausted) for role in members},
    }
    agenda = [planned, *state["agenda"][1:]]
    return {"agenda": agenda, "spent": {team.name: purse.spent}, "exhausted": exhausted}


def read_tasks(text: str, members: tuple[Role, ...]) -> dict[str, str]:
    """Return the task of each member for whom the text has a line ``name: task``."""
    tasks = {}
    for role in members:
        found = re.findall(rf"^[\s*\-#>`_]*{role.id}[`*_]*\s*:[*_]*\s*(\S.*)$", text, flags=re.MULTILINE)
        if found:
            tasks[role.id] = found[-1].strip()
    return tasks


async def gather(state: TeamState, runtime: Runtime[LabContext]) -> Update:
    """Take over what the members bring back from work, in the order of the members.

    Each asked with what was left of the team's requests when the step started; those beyond the cap are refused here.
    """
    ctx, phase = runtime.context, state["agenda"][0]
    artifacts: dict[str, list[int]] = {}
    partial: dict[str, bool] = {}
    findings: list[int] = []
    mail: list[Mail] = []
    phases: list[Phase] = []
    counts: dict[str, int] = {}
    members = dict(phase["members"])
    for agent in phase["members"]:
        result = state["results"].get(agent)
        if result is None:
            continue
        for draft in result["written"]:
            name, content = draft["name"], draft["content"]
            before = [*state["artifacts"].get(name, []), *artifacts.get(name, [])]
            if draft["adds"]:
                # A teammate may have written meanwhile: what was added stands after that.
                cut = partial.get(name, state["partial"].get(name, False))
                content = ctx.recorder.bodies.keep(continued(ctx.text(before[-1]), ctx.text(content), cut=cut))
            artifacts.setdefault(name, []).append(content)
            partial[name] = draft["partial"]
            keep_version(
                ctx, phase, agent, name, len(before) + 1, content, draft["description"], partial=draft["partial"]
            )
        had = len(state.get("findings", {}).get(phase["team"], []))
        findings += keep_findings(ctx, phase, agent, had + len(findings), result["stated"])
        for to, text in result["sent"]:
            step = f"mail/{len(state['mail']) + len(mail)}"
            mail.append(Mail(sender=phase["team"], to=to, text=text))
            body = ctx.recorder.bodies.keep(text)
            ctx.recorder.once(MessageEvent(**_here(phase, step, agent), to=to, text=body))
        waiting = list(result["member"]["waiting"])
        for n, (to, kind, request, justification) in enumerate(result["requests"]):
            made = state["asked"].get(f"{phase['team']}>{to}", 0) + counts.get(to, 0)
            if made >= ctx.condition.max_requests:
                waiting[n] = {**waiting[n], "refused": True}
                continue
            asked = Asked(by=phase["team"], kind=kind, request=request, justification=justification)
            where = _here(phase, f"request/{sum(state['asked'].values()) + len(phases)}", agent)
            ctx.recorder.once(RequestEvent(**where, to=to, kind=kind, request=request, justification=justification))
            phases.append(new_phase(to, state["phases"].get(to, 0) + counts.get(to, 0), asked))
            counts[to] = counts.get(to, 0) + 1
        members[agent] = {**result["member"], "waiting": waiting}
    if phases:
        where = _here(phase, f"suspended/{sum(state['asked'].values())}")
        ctx.recorder.once(PhaseEvent(**where, status="suspended", number=phase["number"], reason=phase["reason"]))
    return {
        "agenda": [*phases, {**phase, "members": members}, *state["agenda"][1:]],
        "artifacts": artifacts,
        "partial": partial,
        "findings": {phase["team"]: findings},
        "mail": mail,
        "asked": {f"{phase['team']}>{to}": n for to, n in counts.items()},
        "phases": counts,
    }


async def deliberate(state: TeamState, runtime: Runtime[LabContext]) -> Update:
    """Let the members speak in turn, each hearing what was said; who has spoken goes on in the same conversation."""
    ctx, phase = runtime.context, state["agenda"][0]
    team = team_of(state)
    purse = ctx.purse(state, team.name)
    said = list(phase["said"])
    spoken: dict[str, tuple[list[BaseMessage], int]] = {}
    lab = cast(LabState, {**state, "agenda": [{**phase, "said": said}]})
    exhausted = False
    for round_ in range(1, ctx.condition.deliberation_rounds + 1):
        for role in ctx.members(team):
            step = f"{team.name}/{phase['number']}/{role.id}/deliberation/{round_}"
            if role.id in spoken:
                before, heard = spoken[role.id]
                order = next_round_prompt(ctx, team, role, round_, said[heard:], purse)
                messages = [*before, order.human()]
            else:
                order = deliberation_prompt(ctx, lab, role, round_, purse)
                messages = [system_message(ctx, team, role, data=False), mark_continued(order.human())]
            try:
                text = await ask(
                    ctx.caller,
                    step,
                    ctx.speaker(team, role),
                    messages,
                    purse,
                    _read_said,
                    name=f"{role.id}, phase {phase['number'] + 1}: deliberation {round_}",
                    repair_turns=ctx.condition.repair_turns,
                )
            except InsufficientFundsError:
                exhausted = True
                break
            if text:
                said.append((role.id, text))
                spoken[role.id] = ([*messages, AIMessage(text)], len(said))
                body = ctx.recorder.bodies.keep(text)
                ctx.recorder.once(MessageEvent(step=step, team=team.name, agent=role.id, to=team.name, text=body))
        if exhausted:
            break
    if exhausted and not ctx.sets_aside:
        return unpaid(ctx, state, purse)
    agenda = [{**phase, "said": said}, *state["agenda"][1:]]
    return {"agenda": agenda, "spent": {team.name: purse.spent}, "exhausted": exhausted}


async def write(state: TeamState, runtime: Runtime[LabContext]) -> Update:
    """Let the lead write the team's artifact; with it the phase ends."""
    ctx, phase = runtime.context, state["agenda"][0]
    team = team_of(state)
    purse = ctx.purse_to_write(state, team)
    author = Author(ctx, state, purse)
    try:
        await author.write(author.affordable(_orders(ctx, state, purse)))
    except InsufficientFundsError:
        if not author.versions:
            return {**unpaid(ctx, state, purse), "findings": {team.name: author.findings}}
    ctx.recorder.once(PhaseEvent(**_here(phase, "end"), status="ended", number=phase["number"], reason=phase["reason"]))
    update: Update = {
        "agenda": state["agenda"][1:],
        "spent": {team.name: purse.spent},
        "findings": {team.name: author.findings},
    }
    if author.versions:
        update["artifacts"] = {team.artifact: author.versions}
        update["partial"] = {team.artifact: author.workspace.is_partial(team.artifact)}
    return update


def _read_said(reply: Reply, last: bool) -> str:
    if not reply.text.strip():
        raise UnusableAnswerError(
            "it has no text." if not reply.tool_calls else "answer with sentences, not with a tool call."
        )
    if "cut" in reply.faults and not last:
        raise UnusableAnswerError("it was cut off; answer in 2 or 3 sentences.")
    return excerpt(reply.text.strip(), MOST_MESSAGE_CHARS, "first")


def _here(phase: Phase, what: str, agent: str = "") -> dict[str, str]:
    return {"step": f"{phase['team']}/{phase['number']}/{what}", "team": phase["team"], "agent": agent}


def _orders(ctx: LabContext, state: TeamState, purse: Purse) -> Iterator[list[BaseMessage]]:
    """Yield the transcript that ends with the order to write, and shorter ones for a pool that can't pay it."""
    phase, team = state["agenda"][0], team_of(state)
    if team.alone:
        order = synthesis_prompt(ctx, state, purse)
        messages: list[BaseMessage] | None = _conversation(ctx, phase, order) or _opening(ctx, team, team.lead, order)
        while messages is not None:
            yield messages
            messages = shorten(messages)
        return
    for halved in range(MOST_HALVED + 1 if ctx.sets_aside else 1):
        yield _opening(ctx, team, team.lead, synthesis_prompt(ctx, state, purse, material=0.5**halved))


def _conversation(ctx: LabContext, phase: Phase, order: Order) -> list[BaseMessage]:
    """Return the conversation in which the one member worked, with a new order at its end; empty if it did not work."""
    [member] = phase["members"].values()
    messages = [kept_message(ctx.recorder.bodies[number]) for number in member["transcript"]]
    if not messages:
        return []
    if isinstance(messages[-1], HumanMessage):
        # What it was told to do in its work is over; and servers refuse two messages of a user in a row.
        messages.pop()
    return [*messages, order.human()]


def _opening(ctx: LabContext, team: Team, role: Role, order: Order) -> list[BaseMessage]:
    return [system_message(ctx, team, role), order.human()]
