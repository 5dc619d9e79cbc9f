"""Strategy writing as a graph: all strategies are written in parallel, each described once and then implemented.

A worker checks each implementation. A failed one is discarded, and the model implements the same description again
without seeing the failure.
"""

from __future__ import annotations

import asyncio
import hashlib
import operator
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Annotated, Any, TypedDict

from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from labmates.agents.prompts import Prompts
from labmates.agents.transcript import append_line
from labmates.errors import UsageError
from labmates.models.objects import UnusableAnswerError
from labmates.models.orders import Order
from labmates.models.reply import Reply
from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent, Event, WarningEvent
from labmates.workflows.calls.call import Speaker
from labmates.workflows.play.playing import Table
from labmates.workflows.protocol.experiment import Outcome
from labmates.workflows.protocol.services import Services
from labmates_populations.condition import PROMPTS_VERSION, StrategiesCondition
from labmates_populations.engine.attitudes import spelled
from labmates_populations.engine.authoring import source_of, task_of, written_class
from labmates_populations.engine.checks import Checked, check_strategies
from labmates_populations.engine.workers import Workers

KIND = "strategies"
render = Prompts(__package__).render
"""The kind of the orders."""


@dataclass(frozen=True)
class Ended:
    """The result of writing one strategy.

    Attributes
    ----------
    attempts
        Number of implementations tried.
    passed
        Whether the last one passed the checks.
    """

    attempts: int
    passed: bool = False
    deterministic: bool = False


class WritingState(TypedDict):
    """Results of writing, and errors that stopped it."""

    ended: Annotated[list[Ended], operator.add]
    errors: Annotated[list[Exception], operator.add]


class StrategyState(TypedDict, total=False):
    """One strategy.

    Attributes
    ----------
    attempt
        The number of the current implementation, from 1.
    code
        That implementation; empty if the reply holds none.
    problem
        Why the last checked implementation failed.
    ended
        Empty until the writing has ended.
    """

    number: int
    description: str
    attempt: int
    code: str
    problem: str
    ended: list[Ended]


@dataclass(frozen=True)
class Writing:
    """The context of a run."""

    condition: StrategiesCondition
    services: Services
    workers: Workers
    table: Table
    checking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def name(self, state: StrategyState) -> str:
        """The name of a strategy's class."""
        return f"Strategy_{self.condition.attitude.upper()}_{state['number']}"

    def speaker(self, state: StrategyState) -> Speaker:
        """The author of a strategy as a speaker."""
        return Speaker("authors", self.name(state), self.condition.model)

    def drop(self, state: StrategyState, reason: str, attempts: int) -> StrategyState:
        """Record that a strategy is dropped."""
        name = self.name(state)
        self.services.recorder.once(WarningEvent(step=f"{name}/dropped", text=f"{name} is dropped: {reason}"))
        return StrategyState(ended=[Ended(attempts)])


@asynccontextmanager
async def context(condition: StrategiesCondition, services: Services) -> AsyncIterator[Writing]:
    """The context of a run, with workers that check implementations."""
    if services.shared is None:
        raise UsageError("this session has no workers for strategies")
    with services.shared.workers() as workers:
        yield Writing(condition, services, workers, Table(condition, services))


def first_state(_condition: StrategiesCondition, _seed: int) -> WritingState:
    """The state in which a run starts."""
    return WritingState(ended=[], errors=[])


def each_strategy(_state: WritingState, runtime: Runtime[Writing]) -> list[Send]:
    """Start writing all strategies."""
    numbers = range(1, runtime.context.condition.number + 1)
    return [
        Send("strategy", StrategyState(number=number, attempt=0, problem="nothing was written", ended=[]))
        for number in numbers
    ]


async def strategy(state: StrategyState, runtime: Runtime[Writing]) -> dict[str, Any]:
    """Write one strategy. An error is stored until the others end, so that calls in flight are paid and recorded."""
    try:
        ended = await strategy_graph().ainvoke(state, context=runtime.context)
    except Exception as error:
        return {"errors": [error]}
    return {"ended": ended["ended"]}


async def finish(state: WritingState) -> dict[str, Any]:
    """Raise the first error, if any."""
    if state["errors"]:
        raise state["errors"][0]
    return {}


async def describe(state: StrategyState, runtime: Runtime[Writing]) -> StrategyState:
    """Ask for a description in words, unless the whole strategy is recorded."""
    writing = runtime.context
    condition, recorder, name = writing.condition, writing.services.recorder, writing.name(state)
    recorded = recorder.done("artifact", name)
    if isinstance(recorded, ArtifactEvent):
        deterministic = bool(recorder.bodies[recorded.content]["deterministic"])
        return StrategyState(ended=[Ended(recorded.version, passed=True, deterministic=deterministic)])
    messages = [*_system_prompt(condition), describing(condition).human()]
    description = await writing.table.say(
        f"{name}/describe", writing.speaker(state), messages, _description, name="describe"
    )
    if description is None:
        return writing.drop(state, "no description could be used", attempts=0)
    return StrategyState(description=description)


async def implement(state: StrategyState, runtime: Runtime[Writing]) -> StrategyState:
    """Ask for an implementation of the description, or drop the strategy after too many attempts."""
    writing, attempt = runtime.context, state["attempt"] + 1
    condition, name, speaker = writing.condition, writing.name(state), writing.speaker(state)
    if attempt > condition.implementations:
        reason = f"no implementation passed the checks, the last because: {state['problem']}"
        return writing.drop(state, reason, attempts=condition.implementations)
    order: BaseMessage = implementing(condition, name, state["description"]).human()
    if attempt > 1:
        order = append_line(order, render("again", problem=state["problem"]))
    code = await writing.table.caller.answer(
        f"{name}/implement/{attempt}",
        speaker,
        [*_system_prompt(condition), order],
        writing.table.purse(speaker.team),
        partial(_code, name),
        name="implement",
        repair_turns=0,
    )
    return StrategyState(attempt=attempt, code=code or "")


async def check(state: StrategyState, runtime: Runtime[Writing]) -> StrategyState:
    """Check an implementation, and record it if it passes."""
    writing, code, attempt = runtime.context, state["code"], state["attempt"]
    if not code:
        return StrategyState(problem="it was not one class in one code block with the name above, or it was cut off")
    async with writing.checking:
        problems, checked = await asyncio.to_thread(_checked, writing, code)
    if checked is None or problems:
        step = f"{writing.name(state)}/implement/{attempt}/check"
        writing.table.caller.failed(step, writing.speaker(state), problems[0])
        return StrategyState(problem=problems[0])
    _record(writing, state, checked)
    await writing.services.recorder.flush()
    return StrategyState(ended=[Ended(attempt, passed=True, deterministic=checked.deterministic)])


def unless_ended(step: str, state: StrategyState) -> str:
    """The next node: `step`, unless the writing of the strategy has ended."""
    return END if state["ended"] else step


WritingGraph = CompiledStateGraph[WritingState, Writing, WritingState, WritingState]
StrategyGraph = CompiledStateGraph[StrategyState, Writing, StrategyState, StrategyState]


def graph(_condition: StrategiesCondition) -> WritingGraph:
    """The graph of a run, the same for all conditions."""
    return _graph()


@cache
def _graph() -> WritingGraph:
    builder = StateGraph(WritingState, context_schema=Writing)
    builder.add_node("strategy", strategy, input_schema=StrategyState)
    builder.add_node("finish", finish)
    builder.add_conditional_edges(START, each_strategy, ["strategy"])
    builder.add_edge("strategy", "finish")
    builder.add_edge("finish", END)
    return builder.compile(name="strategy writing", checkpointer=False)


@cache
def strategy_graph() -> StrategyGraph:
    """The graph of one strategy."""
    builder = StateGraph(StrategyState, context_schema=Writing)
    builder.add_node("describe", describe)
    builder.add_node("implement", implement)
    builder.add_node("check", check)
    builder.add_edge(START, "describe")
    builder.add_conditional_edges("describe", partial(unless_ended, "implement"), ["implement", END])
    builder.add_conditional_edges("implement", partial(unless_ended, "check"), ["check", END])
    builder.add_conditional_edges("check", partial(unless_ended, "implement"), ["implement", END])
    return builder.compile(name="strategy", checkpointer=False)


def outcome(state: WritingState, writing: Writing) -> Outcome:
    """The outcome of a run with all strategies written or dropped."""
    number, written = writing.condition.number, [ended for ended in state["ended"] if ended.passed]
    metrics = {
        "written": len(written),
        "dropped": number - len(written),
        "attempts": sum(ended.attempts for ended in state["ended"]),
        "first_try_rate": sum(ended.attempts == 1 for ended in written) / number,
    }
    if written:
        metrics["deterministic_rate"] = sum(ended.deterministic for ended in written) / len(written)
    return Outcome("completed", metrics, None if written else "no strategy was written")


def _checked(writing: Writing, code: str) -> tuple[tuple[str, ...], Checked | None]:
    """The problems of an implementation, and its check, if it was played."""
    try:
        loaded = writing.workers.load("the implementation", source_of(code))
    except UsageError as error:
        return (str(error),), None
    if len(loaded) != 1:
        return (f"it holds {len(loaded)} strategies",), None
    individual = writing.condition.information == "individual"
    if loaded[0].paper != individual:
        return (f"does not decide by {task_of(writing.condition.game, individual=individual)['arguments']}",), None
    [checked] = check_strategies(writing.workers, writing.condition.game, loaded)
    return checked.problems, checked


def _record(writing: Writing, state: StrategyState, checked: Checked) -> None:
    recorder, name, attempt = writing.services.recorder, writing.name(state), state["attempt"]
    if recorder.done("artifact", name) is not None:
        return
    body = {
        "code": state["code"],
        "description": state["description"],
        "attempts": attempt,
        "deterministic": checked.deterministic,
        "way": checked.strategy.way,
        **({"why": checked.strategy.why} if checked.strategy.why else {}),
        "seconds": (checked.microseconds or 0.0) / 1e6,
        "prompt": writing.condition.prompt,
        "information": writing.condition.information,
        **_provenance_of(writing.condition.system),
        "prompts_version": PROMPTS_VERSION,
    }
    content = recorder.bodies.keep(body)
    recorder.emit(ArtifactEvent(step=name, agent=name, name=name, version=attempt, content=content))


def _system_prompt(condition: StrategiesCondition) -> list[BaseMessage]:
    return [SystemMessage(condition.system)] if condition.system else []


def _provenance_of(system: str) -> dict[str, str]:
    """A system prompt as provenance: its text, and a short digest that distinguishes sets."""
    return {"system": hashlib.sha256(system.encode()).hexdigest()[:8], "system_prompt": system} if system else {}


def describing(condition: StrategiesCondition) -> Order:
    """The order to describe a strategy."""
    facts = {"attitude": spelled(condition.attitude), "follows_each": condition.information == "individual"}
    length = "brief" if condition.prompt == "brief" else "standard"
    text = render(
        f"describe_{condition.prompt}",
        game=render(f"game_{condition.game}"),
        example=render(f"example_{condition.game}"),
        seen=render(f"sees_{condition.information}_{length}"),
        **facts,
    )
    return Order(KIND, facts, text)


def implementing(condition: StrategiesCondition, name: str, description: str) -> Order:
    """The order to implement a described strategy."""
    task = task_of(condition.game, individual=condition.information == "individual")
    facts = {"description": description, "name": name, "arguments": task["arguments"]}
    text = render(
        "implement",
        game=render(f"game_{condition.game}"),
        seen=render(f"sees_{condition.information}_code"),
        **{**task, **facts},
    )
    return Order(KIND, facts, text)


def _description(reply: Reply, _last: bool) -> str:
    if "cut" in reply.faults:
        raise UnusableAnswerError("it was cut off at its length limit", form="Write a shorter description.")
    if not reply.text.strip():
        raise UnusableAnswerError("it has no text", form="Write the description as plain text.")
    return reply.text.strip()


def _code(name: str, reply: Reply, _last: bool) -> str:
    if "cut" in reply.faults:
        raise UnusableAnswerError("the implementation was cut at the length limit")
    return written_class(reply.text, name)


def recorded_strategies(
    condition: StrategiesCondition, run_id: str, events: Iterable[Event], bodies: Bodies
) -> list[tuple[str, Mapping[str, Any]]]:
    """The strategies in a run's record, each as its code and its provenance, ordered by number."""
    artifacts = {event.name: event for event in events if isinstance(event, ArtifactEvent)}
    author = {"attitude": condition.attitude, "model": condition.model, "temperature": condition.temperature}
    strategies: list[tuple[str, Mapping[str, Any]]] = []
    for name in sorted(artifacts, key=lambda name: int(name.rpartition("_")[2])):
        body = dict(bodies[artifacts[name].content])
        code = str(body.pop("code"))
        strategies.append((code, {"class": name, **author, "run": run_id, **body}))
    return strategies
