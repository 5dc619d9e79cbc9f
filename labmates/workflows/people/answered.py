"""Graphs whose interrupts are answered while they go on, with a checkpointer that ends with their process."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import is_invalid_resume
from langgraph.types import Command
from pydantic import ValidationError

from labmates.errors import UsageError
from labmates.workflows.people.interrupts import Asked

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
    answer that does not match the schema of its interrupt is asked for again.

    Parameters
    ----------
    answer
        Returns what an interrupt resumes with.

    Raises
    ------
    UsageError
        If a graph within this one can't resume.
    """
    # A process that ends loses nothing: the run has its record.
    saver = InMemorySaver(serde=_Copies())
    graph = graph.copy({"checkpointer": saver})
    config = {**config, "configurable": {"thread_id": "run"}}
    order, names = state, TaskNames()
    asked: dict[str, Asked] = {}
    while True:
        answers: dict[str, asyncio.Future[Any]] = {}
        before, asked = asked, {}
        names.active.clear()
        parts: AsyncIterator[Any] = graph.astream(
            order, config, context=context, stream_mode=["tasks", "values"], subgraphs=True
        )
        try:
            try:
                async for namespace, mode, part in parts:
                    if mode == "values":
                        state = state if namespace else part
                    elif "interrupts" not in part:
                        names.begin(namespace, part)
                    else:
                        for name, question in names.interrupts(part):
                            if name not in asked:
                                asked[name] = question
                                answers[name] = asyncio.ensure_future(answer(question))
            except ValidationError as error:
                if not is_invalid_resume(error):
                    raise
                for waiting in answers.values():
                    waiting.cancel()
                asked = {name: _again(question, error) for name, question in before.items()}
                answers = {name: asyncio.ensure_future(answer(question)) for name, question in asked.items()}
            names.check_resumed(before)
            if not asked:
                return state
            order = Command(resume={name: await waiting for name, waiting in answers.items()})
        finally:
            for waiting in answers.values():
                waiting.cancel()
            await asyncio.gather(*answers.values(), return_exceptions=True)
        config.pop("run_id", None)  # Each invocation is a separate trace.


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


class TaskNames:
    """Names of a graph's tasks that are the same in each process: their nodes, from the outermost in, and a number.

    Attributes
    ----------
    active
        LangGraph's names of the tasks that have begun or ended in this invocation.
    """

    def __init__(self) -> None:
        self._names: dict[str, tuple[str, ...]] = {}
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._interrupts: defaultdict[str, list[str]] = defaultdict(list)
        self._of: dict[str, str] = {}
        self.active: set[str] = set()

    def begin(self, namespace: Sequence[str], task: Mapping[str, Any]) -> None:
        """Name a task of the graph in a namespace, if it is new: tasks begin in the same order in each process."""
        self.active.add(task["id"])
        if task["id"] not in self._names:
            name = (*self._graph(namespace), task["name"])
            number, self._counts[name] = self._counts[name], self._counts[name] + 1
            self._names[task["id"]] = (*name[:-1], f"{task['name']}.{number}") if number else name

    def interrupts(self, task: Mapping[str, Any]) -> Iterator[tuple[str, Asked]]:
        """The interrupts with which a task ends, by LangGraph's names of them.

        They come again from the tasks around it, which have no part in them.
        """
        self.active.add(task["id"])
        for interrupt in task.get("interrupts", ()):
            known = self._interrupts[self._of.setdefault(interrupt["id"], task["id"])]
            if interrupt["id"] not in known:
                known.append(interrupt["id"])
            name = self._names.get(self._of[interrupt["id"]], ())[1:]  # the first is a node of the experiment's own
            number = str(known.index(interrupt["id"]))
            yield interrupt["id"], Asked(interrupt["value"], name, number, interrupt.get("response_schema"))

    def check_resumed(self, answered: Mapping[str, Asked]) -> None:
        """Check that the tasks of answered interrupts went on; a graph without a checkpointer begins anew instead.

        Raises
        ------
        UsageError
            If one did not.
        """
        for interrupt, question in answered.items():
            if self._of[interrupt] not in self.active:
                raise UsageError(
                    f"the graph with the node {'/'.join(question.task)} did not resume after its interrupt; compile it "
                    "without checkpointer=False"
                )

    def _graph(self, namespace: Sequence[str]) -> tuple[str, ...]:
        """The name of a graph: that of the task that runs it, and a number if it is not the first one there."""
        for place in reversed(range(len(namespace))):
            if (name := self._names.get(namespace[place].partition(":")[2])) is not None:
                return (*name, *namespace[place + 1 :])
        return ()
