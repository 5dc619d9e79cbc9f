"""A team's graph: plan, work in parallel, deliberate, write or report. One pass takes all phases up to another team's.

The organisation selects the steps. If members request work from earlier teams, the pass ends after the work and those
teams run first; then the team's graph is entered again, and the waiting members continue.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_parts import REPORT, WRITES, Seat, Team
from labmates.agents.prompts import render
from labmates.agents.sections import continued, excerpt
from labmates.agents.transcript import shorten
from labmates.agents.workspace import MOST_MESSAGE_CHARS
from labmates.budgets.ledger import InsufficientFundsError
from labmates.budgets.purse import Purse
from labmates.models.conversation import Accept, Read
from labmates.models.objects import RefusedError, UnusableAnswerError
from labmates.models.orders import Order
from labmates.models.prefix import mark_continued
from labmates.models.reply import Reply
from labmates.models.tracing import hidden
from labmates.records.events import MessageEvent, PhaseEvent, RequestEvent
from labmates.workflows.calls.remarks import answered, fault_text, remark_on
from labmates.workflows.science.briefs import (
    bid_prompt,
    deliberation_prompt,
    next_round_prompt,
    plan_prompt,
    system_message,
    write_prompt,
)
from labmates.workflows.science.context import LabContext, warm_up
from labmates.workflows.science.findings import JOINED, joined_reports, keep_findings, merged_findings
from labmates.workflows.science.member import work
from labmates.workflows.science.state import (
    Asked,
    LabState,
    Mail,
    Member,
    Phase,
    Report,
    TeamState,
    WorkOrder,
    new_member,
    new_phase,
)
from labmates.workflows.science.writing import Author, keep_version

T = TypeVar("T")
Update = dict[str, Any]

MOST_PLAN_CHARS = 6_000
_SENTENCES = "Answer with 2 or 3 sentences, and without a tool call."
MOST_HALVED = 5
"""The material of an artifact is halved up to this many times, until the pool can pay for writing it."""


TeamGraph = CompiledStateGraph[TeamState, LabContext, TeamState, LabState]


def team_graph(organisation: Organisation, team: Team) -> TeamGraph:
    """The graph of the phases of a team; that of the whole lab if there is no other team."""
    steps: set[str] = {step for phase in organisation.flow if phase.team == team.name for step in phase.names}
    alone = len(organisation.teams) == 1
    graph = StateGraph(TeamState, context_schema=LabContext, output_schema=LabState)
    members = [*team.seats] if "work" in steps else []
    authors = [f"{member}_reports" for member in team.seats] if "report" in steps else []
    nodes: dict[str, Node] = {name: node for name, node in NODES.items() if name in steps}
    for member in members:
        graph.add_node(member, _node(work), input_schema=WorkOrder)
        graph.add_edge(member, "gather")
        nodes["gather"] = gather
    for author in authors:
        graph.add_node(author, _node(report), input_schema=WorkOrder)
        graph.add_edge(author, "merge")
        nodes["merge"] = merge
    for name, node in nodes.items():
        graph.add_node(name, _node(in_phase, node))
    graph.add_node("begin", _node(begin))
    follow, after = next_step if alone else next_step_of_pass, [*members, *authors, *nodes, END]
    for name in (START, "begin", *nodes):
        graph.add_conditional_edges(name, hidden(follow), ["begin", *after] if alone or name == START else after)
    return graph.compile(name="science lab" if alone else f"{team.name} team")


def _node(function: Callable[..., Awaitable[Update]], *arguments: Any) -> Any:
    """A node whose bytecode LangGraph does not search for graphs, which takes longer than all else of compiling."""
    return partial(function, *arguments)


Node = Callable[[TeamState, Runtime[LabContext]], Awaitable[Update]]


async def in_phase(node: Node, state: TeamState, runtime: Runtime[LabContext]) -> Update:
    """Take a step that begins its phase if it is the first, and ends it if it is the last: nodes for that cost more."""
    if not state["agenda"][0]["started"]:
        state = cast(TeamState, {**state, **await begin(state, runtime)})
    update = await node(state, runtime)
    if update.get("over") or update["agenda"][0]["steps"]:
        return update
    update |= end(state, update["agenda"], runtime.context)
    return update if update["over"] else update | await begin(cast(TeamState, {**state, **update}), runtime)


async def next_step_of_pass(state: TeamState) -> str | list[Send]:
    """The node of the first uncompleted step; the end of the pass before another team's phase."""
    return END if state.get("over") else await next_step(state)


async def next_step(state: TeamState) -> str | list[Send]:  # LangGraph calls an ordinary function in a thread.
    """The node of the first uncompleted step; the end after the last phase."""
    if not state["agenda"]:
        return END
    phase = state["agenda"][0]
    step = phase["steps"][0]
    if step not in ("work", "report"):
        return step
    if not phase["started"]:
        return "begin"
    lab = cast(LabState, {key: value for key, value in state.items() if key not in ("results", "reports", "over")})
    if step == "report":
        members = phase["members"]
        return [Send(f"{agent}_reports", WorkOrder(agent=agent, sharers=len(members), lab=lab)) for agent in members]
    open_ = [agent for agent, member in phase["members"].items() if member["status"] != "done"]
    return [Send(agent, WorkOrder(agent=agent, sharers=len(open_), lab=lab)) for agent in open_]


async def begin(state: TeamState, runtime: Runtime[LabContext]) -> Update:
    """Start the phase; before a plan, members have their parts as tasks."""
    ctx, phase = runtime.context, state["agenda"][0]
    team = ctx.team(state)
    where = _here(phase, "phase")
    ctx.recorder.once(PhaseEvent(**where, status="started", number=phase["number"], reason=phase["reason"]))
    warm_up(ctx.sandboxes, ctx.condition, team)
    begun: Phase = {**phase, "started": True, "members": _members(ctx, state, {})}
    return {"agenda": [begun, *state["agenda"][1:]]}


def _members(ctx: LabContext, state: TeamState, tasks: Mapping[str, str], *, done: bool = False) -> dict[str, Member]:
    """The members of a phase; those without a task do their part, and non-workers are done."""
    workers = {seat.id for seat in ctx.workers(state)}
    members = ctx.team(state).members
    return {s.id: new_member(tasks.get(s.id, s.part), done=done or s.id not in workers) for s in members}


def end(state: TeamState, agenda: Sequence[Phase], ctx: LabContext) -> Update:
    """End the first phase of the agenda, and the pass before another team's phase: entering a graph has its cost."""
    phase = agenda[0]
    team, where = phase["team"], _here(phase, "end")
    ctx.recorder.once(PhaseEvent(**where, status="ended", number=phase["number"], reason=phase["reason"]))
    wrote = ctx.organisation.flow[phase["place"]].names[-1] in WRITES
    earlier = [] if wrote else [*state["earlier"].get(team, []), phase]
    over = [next_phase["team"] for next_phase in agenda[1:2]] != [team]
    return {"agenda": agenda[1:], "earlier": {team: earlier}, "over": over}


def unpaid(ctx: LabContext, state: TeamState, purse: Purse) -> Update:
    """End a phase that the pool can't pay: the next one starts, or without a reserve the run ends."""
    phase = state["agenda"][0]
    agenda = state["agenda"][1:] if ctx.sets_aside else []
    if ctx.sets_aside:
        where = _here(phase, "skipped")
        ctx.recorder.once(PhaseEvent(**where, status="skipped", number=phase["number"], reason=phase["reason"]))
    return {"agenda": agenda, **_spending(purse), "exhausted": True, "over": True}


async def plan(state: TeamState, runtime: Runtime[LabContext]) -> Update:
    """Let the lead plan the phase and give each member its task."""
    ctx, phase = runtime.context, state["agenda"][0]
    team, workers = ctx.team(state), ctx.workers(state)
    purse = ctx.purse(state, team.name).of(team.lead.id)
    messages = _opening(ctx, state, team.lead, plan_prompt(ctx, state, purse))
    form = render("plan_form", lines="\n".join(f"{seat.id}: …" for seat in workers)) if len(team.members) > 1 else ""
    text, tasks, calls = "(no plan)", dict[str, str](), list[BaseMessage]()
    exhausted = False

    def read(reply: Reply, last: bool) -> tuple[str, dict[str, str]]:
        if problem := fault_text(reply):
            raise UnusableAnswerError(problem, remark=f"{problem}\n{form}".rstrip())
        tasks = read_tasks(reply.text, workers)
        missing = [seat.id for seat in workers if seat.id not in tasks]
        if missing and not last and len(team.members) > 1:
            raise UnusableAnswerError(f"it has no line with a task for {', '.join(missing)}", form=form)
        return excerpt(reply.text, MOST_PLAN_CHARS, "first"), tasks

    step, speaker = f"{team.name}/{phase['number']}/{team.lead.id}/plan", ctx.speaker(team, team.lead)

    async def accept(answer: tuple[str, dict[str, str]], number: int) -> None:
        if refusal := ctx.approvals.refusal("plan", f"{step}/{number}", speaker, team.name, answer[0]):
            raise RefusedError("refused", remark=refusal)

    try:
        if answer := await _ask(ctx, state, team.lead, "plan", messages, purse, read, accept):
            (text, tasks), calls = answer
    except InsufficientFundsError:
        if not (purse.is_bound_by_share or (ctx.sets_aside and team.artifact == REPORT)):
            return unpaid(ctx, state, purse)
        # The paper is always written, from whatever material exists.
        exhausted = not purse.is_bound_by_share
    planned: Phase = {
        **phase,
        "steps": phase["steps"][-1:] if exhausted else phase["steps"][1:],
        "plan": text,
        "members": _members(ctx, state, tasks, done=exhausted),
    }
    return {
        "agenda": [planned, *state["agenda"][1:]],
        **_spending(purse),
        "exhausted": exhausted,
        "conversations": ctx.memory(team, team.lead, [*messages, *(calls or [AIMessage(text)])]),
    }


async def bid(state: TeamState, runtime: Runtime[LabContext]) -> Update:
    """Let each member bid; the highest bidder works alone. Bidding ends without bids.

    Among equal bids, the seat that has worked least often wins, then the first one.
    """
    ctx, phase = runtime.context, state["agenda"][0]
    team = ctx.team(state)
    purse = ctx.purse(state, team.name)
    worked = Counter(who for past in state["earlier"].get(team.name, []) for who in past["chosen"])
    bids: dict[str, tuple[int, str]] = {}
    conversations: dict[str, list[int]] = {}
    exhausted = False
    for seat in ctx.workers(state):
        messages = _opening(ctx, state, seat, bid_prompt(ctx, state, seat, purse.of(seat.id)))
        try:
            answer = await _ask(ctx, state, seat, "bid", messages, purse, read_bid)
        except InsufficientFundsError:
            if purse.is_bound_by_share:
                continue
            exhausted = True
            break
        bids[seat.id], calls = answer or ((0, ""), [])
        if answer:
            said = calls or [AIMessage("{}: {}".format(*bids[seat.id]))]
            conversations |= ctx.memory(team, seat, [*messages, *said])
    if exhausted and not ctx.sets_aside:
        return unpaid(ctx, state, purse)
    best = min(bids, key=lambda name: (-bids[name][0], worked[name]), default="")
    agenda: list[Phase] = [{**phase, "steps": phase["steps"][1:]}, *state["agenda"][1:]]
    if exhausted or not best or not bids[best][0]:
        while agenda[1:] and ctx.organisation.flow[agenda[1]["place"]].names[0] == "bid":
            del agenda[1]
        agenda[0] = {**agenda[0], "steps": [step for step in agenda[0]["steps"] if step != "work"]}
    else:
        members = {name: new_member(bids[best][1], done=name != best) for name in team.seats}
        agenda[0] = {**agenda[0], "members": members, "chosen": [best]}
    return {
        "agenda": agenda,
        **_spending(purse),
        "exhausted": exhausted,
        "conversations": conversations,
    }


def read_bid(reply: Reply, last: bool) -> tuple[int, str]:
    """The points and the task of a bid, from a line ``7: fit the model``."""
    del last
    match = re.search(r"^[\s*\-#>`_]*(10|\d)[`*_]*\s*:[*_]*\s*(\S.*)$", reply.text, flags=re.MULTILINE)
    if match is None:
        problem = "it has no line with a number from 0 to 10, a colon and a task"
        raise UnusableAnswerError(problem, form="Answer with this one line, with your number and your task: 0: …")
    return int(match[1]), excerpt(match[2].strip(), MOST_MESSAGE_CHARS, "first")


def read_tasks(text: str, members: Sequence[Seat]) -> dict[str, str]:
    """The task of each member with a line ``name: task`` in the text."""
    tasks = {}
    for seat in members:
        lines = re.findall(rf"^[\s*\-#>`_]*{seat.id}[`*_]*\s*:[*_]*\s*(\S.*)$", text, flags=re.MULTILINE)
        if lines:
            tasks[seat.id] = lines[-1].strip()
    return tasks


async def gather(state: TeamState, runtime: Runtime[LabContext]) -> Update:
    """Merge the results of the members' work, in the order of the members.

    Members request against the cap at the start of the step; requests beyond the cap are refused here.
    """
    ctx, phase = runtime.context, state["agenda"][0]
    artifacts: dict[str, list[int]] = {}
    authors: dict[str, list[str]] = {}
    partial: dict[str, bool] = {}
    findings: list[int] = []
    mail: list[Mail] = []
    phases: list[Phase] = []
    counts: dict[str, int] = {}
    members = dict(phase["members"])
    # Others may have worked in an earlier phase.
    results = {agent: state["results"][agent] for agent, member in members.items() if member["status"] != "done"}
    for agent, result in results.items():
        for draft in result["written"]:
            name, content = draft["name"], draft["content"]
            before = [*state["artifacts"].get(name, []), *artifacts.get(name, [])]
            if draft["adds"]:
                # A teammate may have written in parallel: append after that.
                cut = partial.get(name, state["partial"].get(name, False))
                content = ctx.recorder.bodies.keep(continued(ctx.text(before[-1]), ctx.text(content), cut=cut))
            artifacts.setdefault(name, []).append(content)
            authors.setdefault(name, []).append(agent)
            partial[name] = draft["partial"]
            keep_version(
                ctx, phase, agent, name, len(before) + 1, content, draft["description"], partial=draft["partial"]
            )
        had = len(state.get("findings", {}).get(phase["team"], []))
        findings += keep_findings(ctx, phase, agent, had + len(findings), result["stated"])
        for to, text in result["sent"]:
            step = f"mail/{len(state['mail']) + len(mail)}"
            mail.append(Mail(sender=phase["team"], agent=agent, to=to, text=text))
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
            number = state["phases"].get(to, 0) + counts.get(to, 0)
            phases.append(new_phase(ctx.organisation, ctx.organisation.place(to), number, asked))
            counts[to] = counts.get(to, 0) + 1
        members[agent] = {**result["member"], "waiting": waiting}
    if phases:
        where = _here(phase, f"suspended/{sum(state['asked'].values())}")
        ctx.recorder.once(PhaseEvent(**where, status="suspended", number=phase["number"], reason=phase["reason"]))
    waits = any(member["status"] == "waiting" for member in members.values())
    steps = phase["steps"] if waits else phase["steps"][1:]
    return {
        "over": waits or bool(phases),
        "agenda": [*phases, {**phase, "members": members, "steps": steps}, *state["agenda"][1:]],
        "artifacts": artifacts,
        "authors": authors,
        "partial": partial,
        "conversations": {agent: result["member"]["transcript"] for agent, result in results.items()},
        "findings": {phase["team"]: findings},
        "mail": mail,
        "asked": {f"{phase['team']}>{to}": n for to, n in counts.items()},
        "phases": counts,
    }


async def deliberate(state: TeamState, runtime: Runtime[LabContext]) -> Update:
    """Let the members speak in turn; each hears the others, and continues its conversation in later rounds."""
    ctx, phase = runtime.context, state["agenda"][0]
    team = ctx.team(state)
    purse = ctx.purse(state, team.name)
    talk = list(phase["said"])
    spoken: dict[str, tuple[list[BaseMessage], int]] = {}
    lab = cast(LabState, {**state, "agenda": [{**phase, "said": talk}]})
    exhausted = False
    for round_ in range(1, ctx.rounds(state) + 1):
        for role in team.members:
            step = f"{team.name}/{phase['number']}/{role.id}/deliberation/{round_}"
            purse.of(role.id)
            if role.id in spoken:
                before, heard = spoken[role.id]
                order = next_round_prompt(ctx, state, role, round_, talk[heard:], purse)
                messages = [*before, order.human()]
            else:
                order = deliberation_prompt(ctx, lab, role, round_, purse)
                messages = _opening(ctx, state, role, order, continued=True)
            try:
                answer = await _ask(ctx, state, role, f"deliberation/{round_}", messages, purse, _read_contribution)
            except InsufficientFundsError:
                if purse.is_bound_by_share:
                    continue
                exhausted = True
                break
            if answer:
                text, calls = answer
                talk.append((role.id, text))
                spoken[role.id] = ([*messages, *(calls or [AIMessage(text)])], len(talk))
                body = ctx.recorder.bodies.keep(text)
                ctx.recorder.once(MessageEvent(step=step, team=team.name, agent=role.id, to=team.name, text=body))
        if exhausted:
            break
    if exhausted and not ctx.sets_aside:
        return unpaid(ctx, state, purse)
    conversations: dict[str, list[int]] = {}
    for seat in team.members:
        if seat.id in spoken:
            conversations |= ctx.memory(team, seat, spoken[seat.id][0])
    return {
        "agenda": [{**phase, "said": talk, "steps": phase["steps"][1:]}, *state["agenda"][1:]],
        **_spending(purse),
        "exhausted": exhausted,
        "conversations": conversations,
    }


async def write(state: TeamState, runtime: Runtime[LabContext]) -> Update:
    """Let the lead write the team's artifact."""
    ctx, phase = runtime.context, state["agenda"][0]
    team = ctx.team(state)
    purse = ctx.purse_to_write(state, team)
    author = Author(ctx, cast(LabState, state), purse, team.lead, team.artifact)
    try:
        await author.write(author.affordable(_orders(ctx, state, purse, team.lead, team.artifact)))
    except InsufficientFundsError:
        if not author.versions:
            return {**unpaid(ctx, state, purse), "findings": {team.name: author.findings}}
    update: Update = {
        "agenda": [{**phase, "steps": phase["steps"][1:]}, *state["agenda"][1:]],
        "spent": {team.name: purse.spent},
        "findings": {team.name: author.findings},
    }
    if author.versions:
        update["artifacts"] = {author.artifact: author.versions}
        update["authors"] = {author.artifact: [team.lead.id] * len(author.versions)}
        update["partial"] = {author.artifact: author.workspace.is_partial(author.artifact)}
    return update


async def report(state: WorkOrder, runtime: Runtime[LabContext]) -> Update:
    """Let one member state its findings and write a separate report, hidden from its teammates."""
    ctx, lab = runtime.context, state["lab"]
    team = ctx.team(lab)
    seat = team.seats[state["agent"]]
    purse, paid = ctx.purse_to_write(lab, team, state["sharers"]), True
    author = Author(ctx, lab, purse, seat, f"{team.artifact}_of_{seat.id}")
    try:
        await author.write(author.affordable(_orders(ctx, lab, purse, seat, author.artifact)))
    except InsufficientFundsError:
        paid = bool(author.versions)
    partial = bool(author.versions) and author.workspace.is_partial(author.artifact)
    written = Report(
        artifact=author.artifact, versions=author.versions, findings=author.findings, partial=partial, paid=paid
    )
    return {"reports": {seat.id: written}, "spent": {team.name: purse.spent}}


async def merge(state: TeamState, runtime: Runtime[LabContext]) -> Update:
    """Merge the findings of all reports by the rule of `labmates.tasks.merging`, and join the reports."""
    ctx, phase = runtime.context, state["agenda"][0]
    team = ctx.team(state)
    reports = {seat: state["reports"][seat] for seat in team.seats}
    findings = merged_findings(ctx, reports.values())
    before = len(state["findings"].get(team.name, []))
    merged = keep_findings(ctx, phase, "", before, findings)
    written = {seat: report for seat, report in reports.items() if report["versions"]}
    if not written and not all(report["paid"] for report in reports.values()):
        return unpaid(ctx, state, Purse(ctx.ledger, team.name, state["spent"]))
    update: Update = {
        "agenda": [{**phase, "steps": phase["steps"][1:]}, *state["agenda"][1:]],
        "findings": {team.name: merged},
        "artifacts": {report["artifact"]: report["versions"] for report in written.values()},
        "authors": {report["artifact"]: [seat] * len(report["versions"]) for seat, report in written.items()},
        "partial": {report["artifact"]: report["partial"] for report in written.values()},
    }
    if written:
        texts = {seat: ctx.text(report["versions"][-1]) for seat, report in written.items()}
        paper = ctx.recorder.bodies.keep(joined_reports(texts))
        version = len(state["artifacts"].get(team.artifact, [])) + 1
        keep_version(ctx, phase, "", team.artifact, version, paper, JOINED, partial=False)
        update["artifacts"][team.artifact] = [paper]
        update["authors"][team.artifact] = [""]
        update["partial"][team.artifact] = False
    return update


async def _ask(
    ctx: LabContext,
    state: TeamState,
    seat: Seat,
    what: str,
    messages: list[BaseMessage],
    purse: Purse,
    read: Read[T],
    accept: Accept[T] | None = None,
) -> tuple[T, list[BaseMessage]] | None:
    """A seat's answer in a step without tools, ``plan`` or ``deliberation/2``; None if unusable.

    With it comes its reply if that has tool calls, each answered by an error; else nothing. The request lists the tools
    as in every step: `tool_choice` or another list would break prompt caches.
    """
    team, phase = ctx.team(state), state["agenda"][0]
    no_tools = render("no_tools")

    def read_text(reply: Reply, last: bool) -> tuple[T, list[BaseMessage]]:
        try:
            return read(reply, last), answered(reply, no_tools) if reply.tool_calls else []
        except UnusableAnswerError as problem:
            if reply.tool_calls:
                problem.remark = f"{no_tools}\n{remark_on(problem)}"
            raise

    async def accept_text(answer: tuple[T, list[BaseMessage]], number: int) -> None:
        if accept is not None:
            await accept(answer[0], number)

    return await ctx.caller.answer(
        f"{team.name}/{phase['number']}/{seat.id}/{what}",
        ctx.speaker(team, seat),
        messages,
        purse,
        read_text,
        name=f"{seat.id}, phase {phase['number'] + 1}: {what.replace('/', ' ')}",
        repair_turns=ctx.condition.repair_turns,
        accept=accept_text,
        tools=ctx.tools,
    )


def _spending(purse: Purse) -> Update:
    return {"spent": {purse.member: purse.spent}, "spent_by": purse.spent_by}


def _read_contribution(reply: Reply, last: bool) -> str:
    if not reply.text.strip():
        raise UnusableAnswerError("it is a tool call" if reply.tool_calls else "it has no text", form=_SENTENCES)
    if "cut" in reply.faults and not last:
        raise UnusableAnswerError("it was cut off at its length limit", form=_SENTENCES)
    return excerpt(reply.text.strip(), MOST_MESSAGE_CHARS, "first")


def _here(phase: Phase, what: str, agent: str = "") -> dict[str, str]:
    return {"step": f"{phase['team']}/{phase['number']}/{what}", "team": phase["team"], "agent": agent}


def _orders(ctx: LabContext, state: LabState, purse: Purse, author: Seat, artifact: str) -> Iterator[list[BaseMessage]]:
    """Transcripts that end with the order to write, ever shorter for a pool that can't pay."""
    if ctx.team(state).memory != "step":
        order = write_prompt(ctx, state, purse, author, artifact)
        messages: list[BaseMessage] | None = _opening(ctx, state, author, order, writes=True)
        while messages is not None:
            yield messages
            messages = shorten(messages)
        return
    for halved in range(MOST_HALVED + 1 if ctx.sets_aside else 1):
        yield _opening(ctx, state, author, write_prompt(ctx, state, purse, author, artifact, material=0.5**halved))


def _opening(
    ctx: LabContext,
    state: LabState,
    seat: Seat,
    order: Order,
    *,
    writes: bool = False,
    continued: bool = False,
) -> list[BaseMessage]:
    """A transcript that ends with an order, after the agent's memory or its system prompt."""
    team = ctx.team(state)
    asked = mark_continued(order.human()) if continued or team.memory == "conversation" else order.human()
    before = ctx.remembered(state, team, seat, writes=writes)
    return [*(before or [system_message(ctx, team, seat)]), asked]


NODES = {"plan": plan, "bid": bid, "talk": deliberate, "write": write}
"""The nodes of the steps, except work and report."""
