"""Run a graph, answer its interrupts and resume it; the checkpointer lives in memory."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import is_invalid_resume
from langgraph.types import Command
from pydantic import ValidationError

from labmates.errors import UsageError
from labmates.workflows.people.interrupts import Asked, question_text

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph


async def invoke_answered(
    graph: CompiledStateGraph[Any, Any],
    state: Any,
    config: RunnableConfig,
    context: Any,
    answer: Callable[[Asked], Awaitable[Any]],
) -> Any:
    """The last state of a graph whose interrupts are answered.

    A question is asked at once, while the nodes beside the interrupted one work on; all of them go on together. An
    answer that does not match the schema of its interrupt is asked for again. Raises `UsageError` if a graph within
    this one can't resume.

    Parameters
    ----------
    answer
        Returns what an interrupt resumes with.
    """
    # A process that ends loses nothing: the run has its record.
    saver = InMemorySaver(serde=_Copies())
    graph = graph.copy({"checkpointer": saver})
    config = {**config, "configurable": {"thread_id": "run"}}
    order, counts = state, Counter[tuple[str, ...]]()
    asked: dict[str, Asked] = {}
    tasks: dict[str, str] = {}
    while True:
        answers: dict[str, asyncio.Future[Any]] = {}
        before, asked, active = asked, {}, set[str]()
        parts: AsyncIterator[Any] = graph.astream(
            order, config, context=context, stream_mode=["tasks", "values"], subgraphs=True
        )
        try:
            try:
                async for namespace, mode, part in parts:
                    if mode == "values":
                        state = state if namespace else part
                        continue
                    active.add(part["id"])
                    for interrupt in part.get("interrupts", ()):
                        # It comes again from the tasks around it, which have no part in it.
                        if (name := interrupt["id"]) not in asked:
                            asked[name], tasks[name] = _question(namespace, part["name"], interrupt, counts), part["id"]
                            answers[name] = asyncio.ensure_future(answer(asked[name]))
            except ValidationError as error:
                if not is_invalid_resume(error):
                    raise
                for waiting in answers.values():
                    waiting.cancel()
                asked = {name: _again(question, error) for name, question in before.items()}
                answers = {name: asyncio.ensure_future(answer(question)) for name, question in asked.items()}
            if lost := next((question for name, question in before.items() if tasks[name] not in active), None):
                raise UsageError(  # it began anew
                    f"the graph with the node {'/'.join(lost.task)} did not resume after its interrupt; compile it "
                    "without checkpointer=False"
                )
            if not asked:
                return state
            order = Command(resume={name: await waiting for name, waiting in answers.items()})
        finally:
            for waiting in answers.values():
                waiting.cancel()
            await asyncio.gather(*answers.values(), return_exceptions=True)
        config.pop("run_id", None)  # Each invocation is a separate trace.


def _question(
    namespace: Sequence[str], node: str, interrupt: Mapping[str, Any], counts: Counter[tuple[str, ...]]
) -> Asked:
    """The question of an interrupt; its nodes and a digest of its text are the same in each process."""
    nodes = (*(part.partition(":")[0] for part in namespace), node)[1:]  # the first is a node of the experiment's own
    digest = hashlib.sha256(question_text(interrupt["value"]).encode()).hexdigest()[:8]
    number, counts[*nodes, digest] = counts[*nodes, digest], counts[*nodes, digest] + 1
    return Asked(interrupt["value"], nodes, f"{digest}.{number}", interrupt.get("response_schema"))


def _again(question: Asked, error: ValidationError) -> Asked:
    """The question to repeat after an answer that does not match its schema; others keep their answers."""
    if question.schema is None:
        return question
    faults = (f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
    return replace(question, number=f"{question.number}+", fault="Not a valid answer. " + "; ".join(faults))


class _Copies:
    """Keeps copies of what a graph holds; what can't be copied, such as a lock, stays as it is."""

    def dumps_typed(self, obj: Any) -> tuple[str, Any]:
        with suppress(Exception):
            return "copy", deepcopy(obj)
        return "object", obj

    def loads_typed(self, data: tuple[str, Any]) -> Any:
        kind, kept = data
        return deepcopy(kept) if kind == "copy" else kept
