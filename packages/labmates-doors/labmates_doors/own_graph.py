"""Organisations as code: a user's function, or the LangGraph graph that it returns, works in the lab.

Model and tool calls go through the `Lab`, so the budget, the sandbox, the record, resume, replay, fork and judges are
those of any run. A run repeats exactly if the function calls each seat's model and tools in the same order.

An interrupt of the graph asks a person. Then LangGraph executes the interrupted tasks again from their beginning, and
what they did before is answered from memory. After a kill the graph starts anew, and the record answers.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count
from typing import Any, TypeVar, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from labmates.agents.organisation_parts import REPORT
from labmates.agents.tools import ARGUMENTS, OWN_TOOLS, STATE, ToolError, own_tool, tool_schemas
from labmates.agents.workspace import Workspace
from labmates.budgets.ledger import InsufficientFundsError
from labmates.budgets.purse import Purse
from labmates.errors import UsageError, unknown_name
from labmates.models.orders import Order
from labmates.models.reply import Reply, ToolCall
from labmates.records.events import PhaseEvent
from labmates.sandboxes.base import CodeResult
from labmates.sandboxes.pool import Session
from labmates.tasks.schema import findings_example
from labmates.workflows.calls.call import Speaker
from labmates.workflows.science.lab.briefs import KIND, code_hint
from labmates.workflows.science.lab.context import LabContext
from labmates.workflows.science.lab.facts import run_facts
from labmates.workflows.science.lab.findings import keep_findings, statement
from labmates.workflows.science.lab.outside import worked
from labmates.workflows.science.lab.state import LabState, Phase, first_state
from labmates.workflows.science.lab.tool_use import ToolUse, earlier_code
from labmates.workflows.science.lab.writing import keep_version, version_of

T = TypeVar("T")

TOOLS = ("run_code", "read_artifact", "write_artifact", "append_artifact", "replace_section", STATE, "list_artifacts")
"""The tools of a seat."""
DIVIDED = "It is divided: each seat's Python session holds the records of one instrument as `df`."


@dataclass
class Place:
    """The workplace of one seat."""

    speaker: Speaker
    purse: Purse
    tools: ToolUse


class Deeds:
    """What the tasks of a graph have done, so that a task that is executed again does nothing twice."""

    def __init__(self) -> None:
        self._next: Counter[tuple[str, str]] = Counter()
        self._counts: defaultdict[str, count[int]] = defaultdict(count)
        self._numbers: dict[tuple[str, str, int], int] = {}
        self._results: dict[tuple[str, str, int], Any] = {}

    def again(self) -> None:
        """Begin again: interrupted tasks are executed from their beginning."""
        self._next.clear()

    async def once(self, kind: str, do: Callable[[int], Awaitable[T]]) -> T:
        """The result of the next deed of a kind in the task that calls this, done now or before an interrupt.

        `do` gets its number among those of its kind, also where an interrupt has cut it off before.
        """
        task = (_task(), kind)
        deed, self._next[task] = (*task, self._next[task]), self._next[task] + 1
        if deed not in self._numbers:
            self._numbers[deed] = next(self._counts[kind])
        if deed not in self._results:
            self._results[deed] = await do(self._numbers[deed])
        return cast(T, self._results[deed])


def _task() -> str:
    """LangGraph's id of the current task; unchanged when the task is re-executed."""
    try:
        return str(get_config()["configurable"].get("checkpoint_ns", ""))
    except RuntimeError:
        return ""


class Lab:
    """The lab, for a user's function.

    Attributes
    ----------
    brief
        A message with the project, the findings to state, the data set and the sections to write.
    """

    def __init__(self, ctx: LabContext, phase: Phase) -> None:
        self.brief = _brief(ctx).human()
        self._ctx = ctx
        self._phase = phase
        self._deeds = Deeds()
        self._stack: AsyncExitStack
        self._places: dict[str, Place] = {}
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._artifacts: dict[str, str] = {}
        self._versions: Counter[str] = Counter()
        self._stated = 0

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """The time from the start, or from the answer to an interrupt, to the end or the next interrupt."""
        self._deeds.again()
        async with AsyncExitStack() as self._stack:
            for place in self._places.values():
                place.tools.code = await self._session(place.speaker)
            yield

    def model(self, seat: str = "researcher") -> BaseChatModel:
        """The chat model of a seat, paid by the pool; ``--model-for SEAT=MODEL`` sets it."""
        return SeatModel(seat=seat, ask=partial(self.call, seat))

    def tools(self, seat: str = "researcher", names: Sequence[str] = TOOLS) -> list[BaseTool]:
        """Tools of a seat by name, including those of other packages (entry points ``labmates.tools``) and MCP servers.

        Raises
        ------
        UsageError
            If a tool is unknown.
        """
        names = self._ctx.mcp.names(names)
        known = [*TOOLS, *OWN_TOOLS.names(), *self._ctx.mcp.titles]
        if unknown := [name for name in names if name not in known]:
            raise UsageError(f"there is no tool '{unknown[0]}' in the lab; tools: {', '.join(known)}")
        return [self._tool(seat, name) for name in names]

    def data(self, seat: str = "researcher") -> str:
        """The description of a seat's data; with divided evidence, of its part only."""
        return self._ctx.description(seat)

    async def run_code(self, code: str, seat: str = "researcher") -> CodeResult:
        """Run code in the sandbox of a seat; the call is neither charged nor recorded, as those of its tools are."""
        return await self._deeds.once(f"{seat}/code", lambda _: self._run_code(code, seat))

    async def _run_code(self, code: str, seat: str) -> CodeResult:
        return await (await self._place(seat)).tools.code.run(code)

    async def deliver(self, paper: str, findings: Mapping[str, Any] | None = None, *, seat: str = "researcher") -> None:
        """Deliver the paper, and its findings unless the paper has a findings block.

        Raises
        ------
        UsageError
            If the paper is empty or the findings are invalid.
        """
        await self._deeds.once(f"{seat}/paper", lambda _: self._deliver(paper, findings, seat))

    async def _deliver(self, paper: str, findings: Mapping[str, Any] | None, seat: str) -> None:
        tools = (await self._place(seat)).tools
        try:
            if findings is not None:
                tools.workspace.state(findings)
            tools.workspace.write(REPORT, paper)
        except ToolError as error:
            raise UsageError(f"the seat {seat} can't deliver this: {error}") from error
        self._keep(seat, tools.workspace)

    @property
    def has_paper(self) -> bool:
        """Whether the paper is written."""
        return REPORT in self._artifacts

    async def call(self, seat: str, messages: list[BaseMessage], tools: Sequence[dict[str, Any]]) -> AIMessage:
        """Call the model of a seat."""
        place = await self._place(seat)

        async def call(number: int) -> Reply:
            step = f"{self._phase['team']}/0/{seat}/work/{number}"
            made = await self._ctx.caller.call(
                step, place.speaker, messages, place.purse, name=f"{seat}: {step}", tools=tools
            )
            return made.reply

        return message_of(await self._deeds.once(f"{seat}/call", call))

    def _tool(self, seat: str, name: str) -> BaseTool:
        async def use(**arguments: Any) -> str:
            place = await self._place(seat)

            async def once(number: int) -> str:
                step = f"{self._phase['team']}/0/{seat}/tool/{number}"
                text = await place.tools.use(step, ToolCall(step, name, arguments))
                self._keep(seat, place.tools.workspace)
                return text

            return await self._deeds.once(f"{seat}/tool", once)

        parameters: Any
        if (served := self._ctx.mcp.get(name)) is not None:
            description, parameters = served.description, served.schema["function"]["parameters"]
        elif name not in TOOLS:
            custom = own_tool(name)
            description, parameters = custom.description, custom.args_schema
        else:
            [schema] = tool_schemas([name], self._ctx.form)
            description = schema["function"]["description"]
            parameters = schema["function"]["parameters"] if name == STATE else ARGUMENTS[name]
        turn = self._turns[seat]
        return SeatTool(name=name, description=description, args_schema=parameters, coroutine=use, turn=turn)

    def _keep(self, seat: str, workspace: Workspace) -> None:
        """Record a seat's artifacts and findings, readable for all seats."""
        ctx = self._ctx
        for item in workspace.written:
            self._versions[item.name] += 1
            keep_version(ctx, self._phase, item.name, self._versions[item.name], version_of(ctx, seat, item))
            self._artifacts[item.name] = item.content
        stated = [statement(ctx.recorder.bodies, findings) for findings in workspace.stated]
        keep_findings(ctx, self._phase, seat, self._stated, stated)
        self._stated += len(stated)
        workspace.written.clear()
        workspace.stated.clear()

    async def _place(self, seat: str) -> Place:
        if seat not in self._places:
            ctx, team = self._ctx, self._phase["team"]
            if ctx.organisation.declares_seats and seat not in ctx.organisation.seats:
                raise unknown_name("seat", seat, [*ctx.organisation.seats])
            speaker = Speaker(team, seat, ctx.condition.model_of(seat))
            purse = Purse(ctx.ledger, team, {}, shares=ctx.shares).spend_as(seat)
            workspace = Workspace(ctx.organisation, team, self._artifacts, {}, form=ctx.form)
            session = await self._session(speaker)
            held = [*TOOLS, *OWN_TOOLS.names(), *ctx.mcp.titles]
            tools = ToolUse(ctx, speaker, purse, session, workspace, held)
            self._places.setdefault(seat, Place(speaker, purse, tools))
        return self._places[seat]

    async def _session(self, speaker: Speaker) -> Session:
        """The session of a seat; one that was paused goes on."""
        ctx = self._ctx
        earlier = earlier_code(ctx, speaker.team, speaker.agent)
        code = ctx.sandboxes.session(speaker.agent, speaker.model, earlier, ctx.condition.code_timeout)
        return await self._stack.enter_async_context(code)


def message_of(reply: Reply) -> AIMessage:
    """A reply as a message with its usage, and how it ended."""
    usage = reply.usage
    total = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    return reply.message.model_copy(
        update={
            "content": reply.text,
            "response_metadata": {"finish_reason": reply.finish},
            "usage_metadata": {**total, "total_tokens": usage.input_tokens + usage.output_tokens},
        }
    )


class SeatTool(StructuredTool):
    """A tool of a seat, which uses its tools one after the other, in the order in which its reply calls them."""

    turn: asyncio.Lock

    async def arun(self, *args: Any, **kwargs: Any) -> Any:
        """Run the tool in its turn."""
        # The place in the queue is taken before LangChain's callbacks, which end in any order in their threads.
        async with self.turn:
            return await super().arun(*args, **kwargs)


class SeatModel(BaseChatModel):
    """The chat model of a seat, under the budget of the run; supports only asynchronous calls."""

    seat: str
    ask: Callable[[list[BaseMessage], Sequence[dict[str, Any]]], Awaitable[AIMessage]]

    @property
    def _llm_type(self) -> str:
        return "labmates-seat"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """The model with tools."""
        kwargs.pop("tool_choice", None)
        return cast(
            Runnable[Any, AIMessage], self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)
        )

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise UsageError(f"the model of the seat {self.seat} supports only asynchronous calls; use ainvoke")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        message = await self.ask(messages, kwargs.get("tools") or ())
        return ChatResult(generations=[ChatGeneration(message=message)])


@lru_cache(maxsize=1)
def own_graph() -> CompiledStateGraph[LabState, LabContext, LabState, LabState]:
    """The graph of a run whose organisation is code."""
    graph = StateGraph(LabState, context_schema=LabContext)
    graph.add_node("lab", _work)
    graph.add_edge(START, "lab")
    graph.add_edge("lab", END)
    return graph.compile(name="science lab")


async def _work(state: LabState, runtime: Runtime[LabContext]) -> dict[str, Any]:
    """Run the function, or the graph that it returns, until it ends or the pool is empty."""
    ctx, phase = runtime.context, state["agenda"][0]
    team = phase["team"]
    ctx.recorder.once(PhaseEvent(step=f"{team}/0/phase", team=team, status="started", number=0, reason="planned"))
    exhausted = False
    lab: Lab = ctx.kept.setdefault("lab", Lab(ctx, phase))
    async with lab.at_work():
        try:
            await _finish(lab, await worked(ctx.organisation.graph, lab, [lab.brief]))
        except InsufficientFundsError:
            exhausted = True
    ctx.recorder.once(PhaseEvent(step=f"{team}/0/end", team=team, status="ended", number=0, reason="planned"))
    return {"agenda": [], "exhausted": exhausted}


async def _finish(lab: Lab, ended: object) -> None:
    """Take a graph's last message for the paper if none was delivered."""
    messages = ended.get("messages", []) if isinstance(ended, Mapping) else []
    if not lab.has_paper and messages and str(messages[-1].text).strip():
        await lab.deliver(str(messages[-1].text))


def _brief(ctx: LabContext) -> Order:
    """The whole project as one order, with the facts in its text."""
    data = ctx.parts[0].description if len(ctx.parts) == 1 else DIVIDED
    team = next(iter(ctx.organisation.teams.values()))
    facts = {
        "step": "work",
        "agent": "researcher",
        "brief": ctx.task.brief,
        "findings": ctx.findings_text,
        "data": data,
        "also": {REPORT: [*team.sections]},
        "artifact": REPORT,
        "block": "findings",
    }
    example = findings_example(ctx.task)
    text = ctx.organisation.render(
        "own_work",
        brief=ctx.task.brief,
        findings=ctx.findings_text,
        data=data,
        code_hint=code_hint(ctx, first_state(ctx.organisation), team.lead),
        artifacts="\n".join(f"- {section}" for section in team.sections),
        stating=ctx.organisation.render("findings_section", run_facts(ctx.condition), example=example),
        begin=ctx.organisation.render("begin", frozenset({"codes"})),
    )
    return Order(KIND, facts, text)
