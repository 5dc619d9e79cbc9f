"""Strategy writing, from its condition to its metrics.

Strategies are written side by side. Each is described once; what is implemented is checked in a worker, and a failed
implementation is thrown away and written anew from the same description, of which the model does not see the failure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from labmates.agents.prompts import render
from labmates.errors import UsageError
from labmates.models.objects import UnusableAnswerError
from labmates.models.orders import Order
from labmates.models.reply import Reply
from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent, Event, WarningEvent
from labmates.workflows.asking import ask
from labmates.workflows.calls import Speaker
from labmates.workflows.experiment import Outcome
from labmates.workflows.playing import Table, together
from labmates.workflows.populations.condition import PROMPTS_VERSION, StrategiesCondition
from labmates.workflows.populations.engine.authoring import source_of, task_of, written_class
from labmates.workflows.populations.engine.checks import check_strategies
from labmates.workflows.populations.engine.workers import Workers
from labmates.workflows.services import Services

KIND = "strategies"
"""Of the orders."""


async def execute(condition: StrategiesCondition, services: Services) -> Outcome:
    """Let a model write strategies.

    Raises
    ------
    EndpointError
        If the model could not be had; what was written so far is recorded and can be gone on with.
    """
    if services.shared is None:
        raise UsageError("this session has no workers for strategies")
    desk = _Desk(condition, services, Table(condition, services))
    with services.shared.workers() as workers:
        tried = await together(desk.write(number, workers) for number in range(1, condition.number + 1))
    written = [one for one in tried if one is not None]
    dropped = condition.number - len(written)
    metrics = {
        "written": len(written),
        "dropped": dropped,
        "attempts": sum(written) + desk.wasted,
        "first_try_rate": sum(one == 1 for one in written) / condition.number,
    }
    if written:
        metrics["deterministic_rate"] = desk.deterministic / len(written)
    return Outcome("completed", metrics, None if written else "no strategy was written")


class _Desk:
    """Where the strategies of one run are written."""

    def __init__(self, condition: StrategiesCondition, services: Services, table: Table) -> None:
        self.wasted = 0
        self.deterministic = 0
        self._condition = condition
        self._services = services
        self._table = table
        self._checking = asyncio.Lock()

    async def write(self, number: int, workers: Workers) -> int | None:
        """Write a strategy; return how many implementations it took, or None if it was dropped."""
        condition, recorder = self._condition, self._services.recorder
        name = f"Strategy_{condition.attitude.upper()}_{number}"
        kept = recorder.done("artifact", name)
        if isinstance(kept, ArtifactEvent):
            self.deterministic += bool(recorder.bodies[kept.content]["deterministic"])
            return kept.version
        speaker = Speaker("authors", name, condition.model)
        description = await self._table.say(
            f"{name}/describe",
            speaker,
            [describing(condition).human()],
            _description,
            name="describe",
        )
        if description is None:
            self._drop(name, "no description could be used", 0)
            return None
        order = implementing(condition, name, description)
        why = "nothing was written"
        for attempt in range(1, condition.implementations + 1):
            code = await ask(
                self._table.caller,
                f"{name}/implement/{attempt}",
                speaker,
                [order.human()],
                self._table.purse(speaker.team),
                partial(_code, name),
                name="implement",
                repair_turns=0,
            )
            if code is None:
                continue
            problems, deterministic = await self._check(code, workers)
            if not problems:
                self.deterministic += deterministic
                self._keep(name, code, description, attempt, deterministic)
                await recorder.flush()
                return attempt
            why = problems[0]
            self._table.caller.failed(f"{name}/implement/{attempt}/check", speaker, why)
        why = f"no implementation passed the checks, the last because: {why}"
        self._drop(name, why, condition.implementations)
        return None

    async def _check(self, code: str, workers: Workers) -> tuple[tuple[str, ...], bool]:
        """Return what is wrong with an implementation, and whether it is deterministic."""
        async with self._checking:
            return await asyncio.to_thread(self._checked, code, workers)

    def _checked(self, code: str, workers: Workers) -> tuple[tuple[str, ...], bool]:
        try:
            loaded = workers.load("the implementation", source_of(code))
        except UsageError as error:
            return (str(error),), False
        if len(loaded) != 1:
            return (f"it holds {len(loaded)} strategies",), False
        [found] = check_strategies(workers, self._condition.game, loaded)
        return found.problems, found.deterministic

    def _keep(self, name: str, code: str, description: str, attempt: int, deterministic: bool) -> None:
        recorder, condition = self._services.recorder, self._condition
        body = {
            "code": code,
            "description": description,
            "attempts": attempt,
            "deterministic": deterministic,
            "prompt": condition.prompt,
            "prompts_version": PROMPTS_VERSION,
        }
        if recorder.done("artifact", name) is None:
            content = recorder.bodies.keep(body)
            recorder.emit(ArtifactEvent(step=name, agent=name, name=name, version=attempt, content=content))

    def _drop(self, name: str, why: str, attempts: int) -> None:
        self.wasted += attempts
        self._services.recorder.once(WarningEvent(step=f"{name}/dropped", text=f"{name} is dropped: {why}"))


def describing(condition: StrategiesCondition) -> Order:
    """The order to describe a strategy."""
    facts = {"attitude": condition.attitude}
    game = render(f"strategy_game_{condition.game}")
    return Order(KIND, facts, render(f"strategy_describe_{condition.prompt}", game=game, **facts))


def implementing(condition: StrategiesCondition, name: str, description: str) -> Order:
    """The order to implement a strategy that was described."""
    task = task_of(condition.game)
    facts = {"description": description, "name": name, "arguments": task["arguments"]}
    game = render(f"strategy_game_{condition.game}")
    return Order(KIND, facts, render("strategy_implement", game=game, **{**task, **facts}))


def _description(reply: Reply, last: bool) -> str:
    del last
    if "cut" in reply.faults:
        raise UnusableAnswerError("The description was cut at the length limit: please write a shorter one.")
    if not reply.text.strip():
        raise UnusableAnswerError("There is no description in your reply.")
    return reply.text.strip()


def _code(name: str, reply: Reply, last: bool) -> str:
    del last
    if "cut" in reply.faults:
        raise UnusableAnswerError("the implementation was cut at the length limit")
    return written_class(reply.text, name)


def written_in(
    condition: StrategiesCondition, run_id: str, events: Iterable[Event], bodies: Bodies
) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the strategies of a run's record, each as its code and its provenance, in the order of their numbers."""
    found = {event.name: event for event in events if isinstance(event, ArtifactEvent)}
    written: list[tuple[str, Mapping[str, Any]]] = []
    for name in sorted(found, key=lambda one: int(one.rpartition("_")[2])):
        body = dict(bodies[found[name].content])
        code = str(body.pop("code"))
        own = {"attitude": condition.attitude, "model": condition.model, "temperature": condition.temperature}
        provenance = {"class": name, **own, "run": run_id, **body}
        written.append((code, provenance))
    return written
