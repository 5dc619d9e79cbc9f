"""One episode: a run of the engine in which a policy answers in place of a model."""

from __future__ import annotations

import asyncio
import os
import selectors
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar, Unpack, cast

from langchain_core.messages import AIMessage, BaseMessage

from labmates.budgets.prices import Price
from labmates.models.hub import CallParameters, ModelHub
from labmates.models.normalise import normalise
from labmates.models.options import ModelOptions
from labmates.models.reply import Reply
from labmates.records.events import Event
from labmates.records.recorder import Recorder
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, Outcome
from labmates.workflows.protocol.unkept import unkept_services

T = TypeVar("T")

POLICY: Final = "openai:policy"
"""The model of the seats that an environment asks for actions; others play as their models do."""


Tools = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Question:
    """A call of the policy.

    Attributes
    ----------
    step
        Its name, unique in the episode.
    team, agent
        The caller, as the experiment names it.
    tools
        As OpenAI schemas.
    """

    step: str
    team: str
    agent: str
    messages: Sequence[BaseMessage]
    tools: Tools


Answers = Callable[[Question], Awaitable[AIMessage]]


class PolicyHub(ModelHub):
    """The models of an episode, among them the policy.

    Attributes
    ----------
    said
        All models' replies by the steps of their calls.
    """

    def __init__(self, answers: Answers) -> None:
        super().__init__(ModelOptions(base_url=os.environ.get("LABMATES_BASE_URL")))
        self._answers = answers
        self.said: dict[str, Reply] = {}

    async def call(self, model: str, messages: Sequence[BaseMessage], **parameters: Unpack[CallParameters]) -> Reply:
        """See `ModelHub.call`."""
        question = _question(messages, parameters)
        if model == POLICY:
            reply = normalise(
                await self._answers(question),
                sent=messages,
                tools=question.tools,
                limit=parameters["max_output_tokens"],
                source=POLICY,
            )
            parameters["meter"].begin()
        else:
            reply = await super().call(model, messages, **parameters)
        self.said[question.step] = reply
        return reply

    def price(self, model: str) -> Price | None:
        """See `ModelHub.price`; that of the policy is unknown."""
        return None if model == POLICY else super().price(model)

    def context(self, model: str) -> int | None:
        """See `ModelHub.context`; that of the policy is unknown."""
        return None if model == POLICY else super().context(model)


class RecordedHub(PolicyHub):
    """The replies of an ended episode, but for one seat, which has none."""

    def __init__(self, said: Mapping[str, Reply], is_mute: Callable[[Question], bool]) -> None:
        super().__init__(_silence)
        self._recorded, self._is_mute = said, is_mute

    async def call(self, model: str, messages: Sequence[BaseMessage], **parameters: Unpack[CallParameters]) -> Reply:
        """See `ModelHub.call`."""
        question = _question(messages, parameters)
        if question.step not in self._recorded or self._is_mute(question):
            return await super().call(POLICY, messages, **parameters)
        parameters["meter"].begin()
        return self._recorded[question.step]


async def _silence(_question: Question) -> AIMessage:
    return AIMessage("")


def _question(messages: Sequence[BaseMessage], parameters: CallParameters) -> Question:
    where = parameters["config"]["metadata"]
    return Question(where["step"], where["team"], where["agent"], messages, cast("Tools", parameters.get("tools", ())))


@dataclass(frozen=True)
class Played:
    """An ended episode."""

    outcome: Outcome
    events: Sequence[Event]


async def play(condition: Condition, seed: int, hub: PolicyHub) -> Played:
    """Play an episode.

    Raises
    ------
    LabmatesError
        If the engine can't execute the condition.
    """
    experiment, recorder = EXPERIMENTS.get(condition.kind), Recorder(None, None)
    async with unkept_services(experiment, condition, seed, recorder, hub) as services:
        outcome = await experiment.execute(condition, services)
    return Played(outcome, recorder.events)


class _Selector(selectors.DefaultSelector):
    """A selector that reports when its loop has nothing left to do."""

    is_waiting: Callable[[], bool] = staticmethod(lambda: False)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(0 if timeout != 0 and self.is_waiting() else timeout)


class _Inline(ThreadPoolExecutor):
    """Executes work at once: with threads, the clock would decide which questions are open together."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Episode:
    """An episode that is played step by step: it runs until only questions to the policy are left.

    Where seats run code, the clock decides which questions are open together.

    Examples
    --------
    >>> episode = Episode(make_condition("game", {"game": "public-goods", "model": POLICY}), seed=0)  # doctest: +SKIP
    >>> episode.advance({})  # doctest: +SKIP
    """

    def __init__(self, condition: Condition, seed: int) -> None:
        self.condition, self.seed = condition, seed
        self.open: dict[str, Question] = {}
        self.played: Played | None = None
        self._answers: dict[str, asyncio.Future[AIMessage]] = {}
        selector = _Selector()
        selector.is_waiting = self._pause
        self._loop = asyncio.SelectorEventLoop(selector)
        if not EXPERIMENTS.get(condition.kind).needs_sandbox:
            self._loop.set_default_executor(_Inline())
        self._hub = PolicyHub(self._ask)
        self._task = self._loop.create_task(play(condition, seed, self._hub))
        self._task.add_done_callback(lambda _: self._loop.stop())

    def advance(self, replies: Mapping[str, AIMessage]) -> None:
        """Answer open questions by their steps, and play until only questions are left, or to the end.

        Raises
        ------
        LabmatesError
            If the engine can't execute the condition.
        """
        for step, reply in replies.items():
            del self.open[step]
            self._answers.pop(step).set_result(reply)
        self._loop.run_forever()
        if self._task.done():
            self.played = self._task.result()

    def without(self, is_mute: Callable[[Question], bool]) -> Played:
        """The ended episode played again with the same replies, except that one seat has none.

        The engine's fallbacks act for that seat. The others don't react: a question that nobody asked them before has
        no reply either.
        """
        return self._loop.run_until_complete(play(self.condition, self.seed, RecordedHub(self._hub.said, is_mute)))

    def close(self) -> None:
        """End the episode where it is."""
        if self._loop.is_closed():
            return
        self.open.clear()
        self._task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            self._loop.run_until_complete(self._task)
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def _pause(self) -> bool:
        if self.open:
            self._loop.stop()
        return bool(self.open)

    async def _ask(self, question: Question) -> AIMessage:
        self.open[question.step] = question
        self._answers[question.step] = self._loop.create_future()
        return await self._answers[question.step]
