"""Strategy writing: all strategies are written in parallel, each described once and then implemented.

A worker checks each implementation. A failed one is discarded, and the model implements the same description again,
told why the last one failed.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage

from labmates.agents.prompts import Prompts
from labmates.agents.transcript import append_line
from labmates.errors import UsageError
from labmates.models.objects import UnusableAnswerError
from labmates.models.orders import Order
from labmates.models.reply import Reply
from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent, Event, WarningEvent
from labmates.workflows.calls.call import Speaker
from labmates.workflows.play.playing import Table, together
from labmates.workflows.protocol.experiment import Outcome
from labmates.workflows.protocol.services import Services
from labmates_populations.condition import PROMPTS_VERSION, StrategiesCondition
from labmates_populations.engine.attitudes import spelled
from labmates_populations.engine.authoring import source_of, task_of, written_class
from labmates_populations.engine.checks import Checked, check_strategies
from labmates_populations.engine.workers import Workers

KIND = "strategies"
"""The kind of the orders."""
render = Prompts(__package__).render


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


@dataclass(frozen=True)
class Writing:
    """The writing of a run's strategies."""

    condition: StrategiesCondition
    services: Services
    workers: Workers
    table: Table
    checking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def speaker(self, name: str) -> Speaker:
        """The author of a strategy as a speaker."""
        return Speaker("authors", name, self.condition.model)

    def drop(self, name: str, reason: str, attempts: int) -> Ended:
        """Record that a strategy is dropped."""
        self.services.recorder.once(WarningEvent(step=f"{name}/dropped", text=f"{name} is dropped: {reason}"))
        return Ended(attempts)


async def write(condition: StrategiesCondition, services: Services) -> Outcome:
    """Write all strategies in parallel, with workers that check implementations."""
    if services.shared is None:
        raise UsageError("this session has no workers for strategies")
    names = [f"Strategy_{condition.attitude.upper()}_{number}" for number in range(1, condition.number + 1)]
    with services.shared.workers() as workers:
        writing = Writing(condition, services, workers, Table(condition, services))
        return _outcome(await together(_strategy(writing, name) for name in names))


async def _strategy(writing: Writing, name: str) -> Ended:
    """Describe a strategy and implement the description until it passes the checks, unless it is recorded."""
    condition, recorder = writing.condition, writing.services.recorder
    recorded = recorder.done("artifact", name)
    if isinstance(recorded, ArtifactEvent):
        deterministic = bool(recorder.bodies[recorded.content]["deterministic"])
        return Ended(recorded.version, passed=True, deterministic=deterministic)
    messages = [*_system_prompt(condition), describing(condition).human()]
    description = await writing.table.say(
        f"{name}/describe", writing.speaker(name), messages, _description, name="describe"
    )
    if description is None:
        return writing.drop(name, "no description could be used", attempts=0)
    problem = "nothing was written"
    for attempt in range(1, condition.implementations + 1):
        code = await _implementation(writing, name, description, attempt, problem)
        problem, checked = await _check(writing, name, attempt, code)
        if checked is not None:
            _record(writing, name, description, code, attempt, checked)
            await recorder.flush()
            return Ended(attempt, passed=True, deterministic=checked.deterministic)
    reason = f"no implementation passed the checks, the last because: {problem}"
    return writing.drop(name, reason, attempts=condition.implementations)


async def _implementation(writing: Writing, name: str, description: str, attempt: int, problem: str) -> str:
    """Ask for an implementation of the description; empty if the reply holds none."""
    condition, speaker = writing.condition, writing.speaker(name)
    order: BaseMessage = implementing(condition, name, description).human()
    if attempt > 1:
        order = append_line(order, render("again", problem=problem))
    code = await writing.table.caller.answer(
        f"{name}/implement/{attempt}",
        speaker,
        [*_system_prompt(condition), order],
        writing.table.purse(speaker.team),
        partial(_code, name),
        name="implement",
        repair_turns=0,
    )
    return code or ""


async def _check(writing: Writing, name: str, attempt: int, code: str) -> tuple[str, Checked | None]:
    """Why an implementation failed, or its check if it passed."""
    if not code:
        return "it was not one class in one code block with the name above, or it was cut off", None
    async with writing.checking:
        problems, checked = await asyncio.to_thread(_checked, writing, code)
    if checked is None or problems:
        writing.table.caller.failed(f"{name}/implement/{attempt}/check", writing.speaker(name), problems[0])
        return problems[0], None
    return "", checked


def _outcome(ended: Sequence[Ended]) -> Outcome:
    """The outcome of a run with all strategies written or dropped."""
    number, written = len(ended), [each for each in ended if each.passed]
    metrics = {
        "written": len(written),
        "dropped": number - len(written),
        "attempts": sum(each.attempts for each in ended),
        "first_try_rate": sum(each.attempts == 1 for each in written) / number,
    }
    if written:
        metrics["deterministic_rate"] = sum(each.deterministic for each in written) / len(written)
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


def _record(writing: Writing, name: str, description: str, code: str, attempt: int, checked: Checked) -> None:
    recorder = writing.services.recorder
    body = {
        "code": code,
        "description": description,
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
