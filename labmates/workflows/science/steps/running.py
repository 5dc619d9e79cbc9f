"""What a step works with in a run: its team's state, money, orders and questions to seats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from langchain_core.messages import AIMessage, BaseMessage

from labmates.agents.organisation_parts import Seat, Team
from labmates.agents.prompts import render
from labmates.agents.steps import StepKind, find_step
from labmates.agents.workspace import MOST_PLAN_CHARS
from labmates.budgets.ledger import LEAST_OUTPUT_TOKENS, InsufficientFundsError
from labmates.budgets.purse import Purse
from labmates.models.conversation import Accept, Read
from labmates.models.objects import UnusableAnswerError
from labmates.models.orders import Order
from labmates.models.prefix import mark_continued
from labmates.models.reply import Reply
from labmates.records.events import MessageEvent, PhaseEvent
from labmates.workflows.calls.remarks import answered, remark_on
from labmates.workflows.play.playing import together
from labmates.workflows.science.lab.briefs import (
    Shown,
    answer_text,
    status_text,
    step_order,
    system_message,
    theory_of_mind,
)
from labmates.workflows.science.lab.context import LabContext, lacking
from labmates.workflows.science.lab.state import LabState, Member, Phase, TeamState, new_member
from labmates.workflows.science.steps.member import work_order

T = TypeVar("T")
Answered = tuple[T, list[BaseMessage]]
"""An answer, and the reply that is remembered in its place if it has tool calls."""


@dataclass
class Told:
    """What several members said at the same time, with what it cost."""

    # Their texts in the order of the seats, without those who said nothing usable or could not pay.
    said: list[tuple[str, str]] = field(default_factory=list)
    transcripts: dict[str, list[BaseMessage]] = field(default_factory=dict)  # their conversations in this step, by seat
    spent: int = 0
    spent_by: dict[str, int] = field(default_factory=dict)


@dataclass(eq=False)
class StepRun:
    """One step of a team in a run."""

    kind: StepKind
    state: TeamState
    ctx: LabContext

    def __post_init__(self) -> None:
        self.lab = cast(LabState, self.state)  # at the start of the step
        self.phase: Phase = self.state["agenda"][0]
        self.team: Team = self.ctx.team(self.lab)

    @property
    def workers(self) -> tuple[Seat, ...]:
        """The working seats of the phase."""
        return self.ctx.workers(self.lab)

    def place(self, seat: Seat, part: str = "") -> str:
        """The step of a seat's calls in records."""
        return "/".join(filter(None, (self.team.name, str(self.phase["number"]), seat.id, self.kind.label, part)))

    def purse(self, sharers: int = 1) -> Purse:
        """The money of the step; of `sharers` members who spend at the same time, each needs a purse of its own."""
        return self.ctx.purse(self.lab, self.team.name, sharers)

    def order(self, seat: Seat, purse: Purse, values: Mapping[str, object], prompt: str = "", *facts: str) -> Order:
        """The order of this step to a seat from a prompt, by default that of its name; `facts` hold, too.

        Each prompt may show the line about the budget, the request to think of others, and the team's artifact.
        """
        common = {
            "artifact": Shown(self.team.artifact, {"artifact": self.team.artifact}),
            "theory_of_mind": theory_of_mind(self.ctx, seat),
            "budget": status_text(self.ctx, purse),
        }
        prompt = prompt or self.kind.order
        return step_order(self.ctx, self.lab, seat, self.kind.order, prompt, {**common, **values}, *facts)

    def opening(self, seat: Seat, order: Order, *, continued: bool = False) -> list[BaseMessage]:
        """A transcript that ends with an order, after the agent's memory or its system prompt."""
        return opening(self.ctx, self.lab, seat, order, continued=continued)

    def remember(self, seat: Seat, messages: Sequence[BaseMessage]) -> dict[str, list[int]]:
        """The conversation of a seat, if its team remembers all of it."""
        return self.ctx.memory(self.team, seat, messages)

    def least_cost(self, seat: Seat, messages: list[BaseMessage]) -> int:
        """What is reserved for a seat's shortest reply, in micro-dollars."""
        return self.ctx.caller.reservation(self.ctx.speaker(self.team, seat), messages, self.ctx.tools)

    def money_for_work(self, seat: Seat, messages: list[BaseMessage], spent: int, workers: Sequence[Seat]) -> int:
        """The money that a reply before the work must leave for it, with `spent` in the step, in micro-dollars.

        It pays a reply of each worker who can be paid, whose order holds what is said now; in a small pool, all but the
        shortest reply. Raises `InsufficientFundsError` if no worker could be paid after the shortest reply: it would
        buy nothing.
        """
        if not any(find_step(name).does == "work" for name in self.phase["steps"]):
            return 0
        rest = self.purse().left - spent - self.least_cost(seat, messages)
        if able := self.paid_to_work(workers, rest, LEAST_OUTPUT_TOKENS):
            costs = self._work_costs(workers, MOST_PLAN_CHARS // len("plan "))
            return min(rest, sum(costs[name] for name in able))
        self.lacking(seat, "nobody could be paid for the work after it")
        raise InsufficientFundsError("nobody could be paid for the work")

    def paid_to_work(self, workers: Sequence[Seat], funds: int, words: int = 0) -> list[str]:
        """The workers whom so many micro-dollars can pay a reply, after a plan of so many words."""
        return payable(self._work_costs(workers, words), funds, self.ctx.shares_left(self.lab))

    def _work_costs(self, workers: Sequence[Seat], words: int) -> dict[str, int]:
        """What each worker's first reply costs at least, after a plan of so many words."""
        purse, planned = self.purse(len(workers)), cast(Phase, {**self.phase, "plan": "plan " * words})
        lab = cast(LabState, {**self.lab, "agenda": [planned, *self.lab["agenda"][1:]]})
        orders = ((worker, work_order(self.ctx, lab, worker, purse)) for worker in workers)
        return {worker.id: self.least_cost(worker, self.opening(worker, order)) for worker, order in orders}

    async def ask(
        self,
        seat: Seat,
        messages: list[BaseMessage],
        purse: Purse,
        read: Read[T],
        *,
        part: str = "",
        accept: Accept[T] | None = None,
    ) -> Answered[T] | None:
        """A seat's answer without tools; None if unusable.

        With it comes its reply if that has tool calls, each answered by an error; else nothing. The request lists the
        tools as in every step: `tool_choice` or another list would break prompt caches. Raises `InsufficientFundsError`
        and `EndpointError` as `Caller.call` does.
        """
        no_tools = render("no_tools")

        def read_text(reply: Reply, last: bool) -> Answered[T]:
            try:
                return read(reply, last), answered(reply, no_tools) if reply.tool_calls else []
            except UnusableAnswerError as problem:
                if reply.tool_calls:
                    problem.remark = f"{no_tools}\n{remark_on(problem)}"
                raise

        async def accept_text(answer: Answered[T], number: int) -> None:
            if accept is not None:
                await accept(answer[0], number)

        what = " ".join(filter(None, (self.kind.label, part)))
        try:
            return await self.ctx.caller.answer(
                self.place(seat, part),
                self.ctx.speaker(self.team, seat),
                messages,
                purse,
                read_text,
                name=f"{seat.id}, phase {self.phase['number'] + 1}: {what}",
                repair_turns=self.ctx.condition.repair_turns,
                accept=accept_text,
                status=lambda: status_text(self.ctx, purse),
                tools=self.ctx.tools,
                usable=(),
            )
        except InsufficientFundsError:
            self.lacking(seat, "the pool could not pay it", part)
            raise

    async def ask_together(
        self,
        seats: Sequence[Seat],
        order: Callable[[Seat, Purse], Order],
        read: Callable[[Seat], Read[str]],
        *,
        part: str = "",
        before: Told | None = None,
    ) -> Told:
        """Ask members at the same time, each with its share of the money, and record what they say.

        A member that can't pay, or whose answer is unusable, says nothing.

        Parameters
        ----------
        order, read
            The order to a seat with its purse, and the reader of its answer.
        part
            Part of the step, for instance a round.
        before
            What they said and spent earlier in the step; they continue their conversations.
        """
        told = Told() if before is None else before
        spent, spent_by = told.spent, dict(told.spent_by)

        async def ask(seat: Seat) -> tuple[Purse, list[BaseMessage], Answered[str] | None]:
            # A purse each: a common one would book on the share of whoever it was handed to last.
            purse = self.ctx.purse(_after(self.lab, self.team.name, spent, spent_by), self.team.name, len(seats))
            asked = order(seat, purse.spend_as(seat.id))
            messages = self.opening(seat, asked, continued=bool(part))
            if earlier := told.transcripts.get(seat.id):
                messages = [*earlier, asked.human()]
            try:
                return purse, messages, await self.ask(seat, messages, purse, read(seat), part=part)
            except InsufficientFundsError:
                return purse, messages, None

        for seat, (purse, messages, answer) in zip(seats, await together(map(ask, seats)), strict=True):
            told.spent += purse.spent
            for agent, charged in purse.spent_by.items():
                told.spent_by[agent] = told.spent_by.get(agent, 0) + charged
            if answer is not None:
                text, calls = answer
                told.transcripts[seat.id] = [*messages, *(calls or [AIMessage(text)])]
                told.said.append((seat.id, text))
                self.tell(seat, text, part)
        return told

    def lacking(self, seat: Seat, why: str, part: str = "") -> None:
        """Record that a seat's reply was not bought."""
        lacking(self.ctx, self.place(seat, part), self.ctx.speaker(self.team, seat), why)

    def tell(self, seat: Seat, text: str, part: str = "") -> None:
        """Record what a seat says to its team."""
        body = self.ctx.recorder.bodies.keep(text)
        where = {"step": self.place(seat, part), "team": self.team.name, "agent": seat.id}
        self.ctx.recorder.once(MessageEvent(**where, to=self.team.name, text=body))

    def next(self, phase: Mapping[str, Any] | None = None, **update: Any) -> dict[str, Any]:
        """The update that completes the step: changes of the phase, and of the state."""
        changed = {**self.phase, "steps": self.phase["steps"][1:], **(phase or {})}
        return {"agenda": [changed, *self.state["agenda"][1:]], **update}

    def next_with(self, told: Told, *notes: str) -> dict[str, Any]:
        """The update after members spoke at the same time; `notes` are for the author of the team's artifact."""
        phase = {"said": [*self.phase["said"], *told.said], "notes": [*self.phase["notes"], *notes]}
        conversations: dict[str, list[int]] = {}
        for seat in self.team.members:
            if seat.id in told.transcripts:
                conversations |= self.remember(seat, told.transcripts[seat.id])
        spent = {"spent": {self.team.name: told.spent}, "spent_by": told.spent_by}
        return self.next(phase, **spent, conversations=conversations)

    def unpaid(self, purse: Purse) -> dict[str, Any]:
        """End a phase that the pool can't pay: the next one starts, or without a reserve the run ends."""
        agenda = with_answer(self.ctx, self.phase, self.state["agenda"][1:]) if self.ctx.sets_aside else []
        if self.ctx.sets_aside:
            where = here(self.phase, "skipped")
            number, reason = self.phase["number"], self.phase["reason"]
            self.ctx.recorder.once(PhaseEvent(**where, status="skipped", number=number, reason=reason))
        return {"agenda": agenda, **spending(purse), "exhausted": True, "over": True}


def payable(costs: Mapping[str, int], funds: int, shares: Mapping[str, int]) -> list[str]:
    """As many seats as equal shares of `funds` can pay at these costs; `shares` limit some seats."""
    for number in range(len(costs), 0, -1):
        able = [seat for seat, cost in costs.items() if cost <= min(funds // number, shares.get(seat, funds))]
        if len(able) >= number:
            return able[:number]
    return []


def with_answer(ctx: LabContext, phase: Phase, agenda: Sequence[Phase]) -> list[Phase]:
    """The agenda after a phase: if a request caused it, with its answer to the member that waits for it."""
    asked = phase["asked"]
    for place, later in enumerate(agenda if asked else ()):
        for name, member in later["members"].items():
            for n, item in enumerate(member["waiting"]):
                if later["team"] == asked["by"] and item["team"] == phase["team"] and not item["answer"]:  # type: ignore[index]
                    text = answer_text(ctx, phase)
                    waiting = [*member["waiting"][:n], {**item, "answer": text}, *member["waiting"][n + 1 :]]
                    members = {**later["members"], name: {**member, "waiting": waiting}}
                    changed = cast(Phase, {**later, "members": members})
                    return [*agenda[:place], changed, *agenda[place + 1 :]]
    return [*agenda]


def _after(lab: LabState, team: str, spent: int, spent_by: Mapping[str, int]) -> LabState:
    """The state of the lab with further charges."""
    of_teams = {**lab["spent"], team: lab["spent"].get(team, 0) + spent}
    of_seats = {seat: lab["spent_by"].get(seat, 0) + spent_by.get(seat, 0) for seat in {**lab["spent_by"], **spent_by}}
    return {**lab, "spent": of_teams, "spent_by": of_seats}


def spending(purse: Purse) -> dict[str, Any]:
    """The update with the charges of a step."""
    return {"spent": {purse.member: purse.spent}, "spent_by": purse.spent_by}


def here(phase: Phase, what: str, agent: str = "") -> dict[str, str]:
    """The step, the team and the agent of an event of a phase."""
    return {"step": f"{phase['team']}/{phase['number']}/{what}", "team": phase["team"], "agent": agent}


def phase_members(ctx: LabContext, lab: LabState, tasks: Mapping[str, str], *, done: bool = False) -> dict[str, Member]:
    """The members of a phase; those without a task do their part, and non-workers are done."""
    workers = {seat.id for seat in ctx.workers(lab)}
    seats = ctx.team(lab).members
    return {s.id: new_member(tasks.get(s.id, s.part), done=done or s.id not in workers) for s in seats}


def opening(
    ctx: LabContext, lab: LabState, seat: Seat, order: Order, *, writes: bool = False, continued: bool = False
) -> list[BaseMessage]:
    """A transcript that ends with an order, after the agent's memory or its system prompt."""
    team = ctx.team(lab)
    asked = mark_continued(order.human()) if continued or team.memory == "conversation" else order.human()
    before = ctx.remembered(lab, team, seat, writes=writes)
    return [*(before or [system_message(ctx, team, seat)]), asked]
