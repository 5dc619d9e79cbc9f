"""Asking a model on behalf of a judge: with its own error shown to it until the answer can be used, or given up.

These calls are no part of a run's budget, though the bound of a study's run pays for them. Each is handed to a log, so
that what judging took can be told apart from what the teams used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel

from labmates.models.hub import ModelHub
from labmates.models.metering import Meter, NoMeter
from labmates.models.names import parse_model
from labmates.models.normalise import NO_TEXT, resendable
from labmates.models.objects import UnusableAnswerError
from labmates.models.reply import Reply, Usage
from labmates.models.structured import format_of
from labmates.models.tokens import estimate_messages, most_tokens
from labmates.models.window import reply_limit
from labmates.seeds import derive

T = TypeVar("T")

REPAIR_TURNS = 2
TEMPERATURE = 0.0
REASONING_TOKENS = 8_192
"""What a model that reasons gets on top of the limit on its answer, once its reasoning has used that limit up."""
MOST_SENT_BACK = 4_000
"""So much of an unusable answer is shown to the model again, in characters."""

REPAIR = """Your answer can't be used: {problem}.
Answer once more with nothing but what was asked for, in the form that was asked for."""


class UnansweredError(Exception):
    """A model gave no usable answer, however often it was asked; the text says what was wrong with the last one."""


NO_REPLY = Reply("", (), ("empty",), resendable("", ()), "unknown", Usage(0, 0), attempts=0)
"""Stands for the reply to a call that brought none."""
Meters = Callable[[str, int, int, int], Meter]
"""Makes what pays for a call of a model: input tokens as estimated, the most that there can be, and output limit."""


@dataclass(frozen=True)
class JudgeCall:
    """One model call that a judge made; `reply` is `NO_REPLY` for one that failed and may be billed nevertheless.

    `cost`, `uncertain` and `excess` are in micro-dollars, as in `labmates.models.metering.Meter`.
    """

    model: str
    messages: tuple[BaseMessage, ...]
    reply: Reply
    seed: int
    cost: int = 0
    uncertain: int = 0
    excess: int = 0


class Interviewer:
    """Asks models for one judge of one report.

    Parameters
    ----------
    seed
        The seeds of the calls derive from it.
    log
        Told each call that brought a reply.
    thinkers
        Models that are known to use up their limit by reasoning; shared, so that it is found out once.
    meters
        Makes what pays for calls; by default nothing does.
    """

    def __init__(
        self,
        hub: ModelHub,
        *,
        seed: int,
        log: Callable[[JudgeCall], None],
        thinkers: set[str],
        meters: Meters | None = None,
    ) -> None:
        self._hub = hub
        self._meters = meters or _unpaid
        self._seed = seed
        self._log = log
        self._thinkers = thinkers

    async def ask(
        self,
        model: str,
        messages: Sequence[BaseMessage],
        read: Callable[[str, bool], T],
        *,
        name: str,
        max_output_tokens: int,
        form: type[BaseModel],
    ) -> T:
        """Ask until `read` can use the answer, at most `REPAIR_TURNS` more times.

        Parameters
        ----------
        read
            Takes the answer's text, and whether it is the last that will be asked for; raises `UnusableAnswerError` if
            it can't use it.
        name
            Readable name of the calls in a trace; their seeds derive from it too.
        form
            What an answer holds; the server is told where the model is ``structured``.

        Raises
        ------
        UnansweredError
            If no answer could be used.
        ModelCallError
            If the model can't be asked, the call can't be paid, or the prompt is too long for the model.
        """
        transcript = list(messages)
        held = format_of(form) if parse_model(model).settings.structured else None
        calls = repairs = 0
        while True:
            room = REASONING_TOKENS if model in self._thinkers else 0
            reply = await self._call(model, transcript, f"{name} {calls}", max_output_tokens + room, held)
            calls += 1
            try:
                return read(reply.text, repairs == REPAIR_TURNS)
            except UnusableAnswerError as error:
                if not room and _reasoned_it_away(reply):
                    self._thinkers.add(model)
                    continue
                problem = _told(reply, error)
            if repairs == REPAIR_TURNS:
                raise UnansweredError(f"no usable answer after {repairs} repair turns: {problem}")
            repairs += 1
            said = AIMessage(reply.text[:MOST_SENT_BACK] or NO_TEXT)
            transcript += [said, HumanMessage(REPAIR.format(problem=problem))]

    async def _call(
        self, model: str, messages: list[BaseMessage], name: str, limit: int, held: Mapping[str, Any] | None
    ) -> Reply:
        seed = derive(self._seed, name)
        inputs = estimate_messages(messages)
        limit = reply_limit(limit, inputs, self._hub.context(model), model)
        meter = self._meters(model, inputs, most_tokens(messages), limit)
        reply = NO_REPLY
        try:
            reply = await self._hub.call(
                model,
                messages,
                seed=seed,
                max_output_tokens=limit,
                temperature=TEMPERATURE,
                insist=False,
                response_format=held,
                config={"run_name": name, "tags": ["judge"], "metadata": {"model": model}},
                meter=meter,
            )
            meter.settle(reply.usage.cost(meter.price) if reply.bill is None else reply.bill, reply.bill)
        finally:
            meter.spare()
            if reply is not NO_REPLY or meter.uncertain:
                self._log(JudgeCall(model, tuple(messages), reply, seed, meter.cost, meter.uncertain, meter.excess))
        return reply


def _unpaid(model: str, input_tokens: int, most_tokens: int, output_tokens: int) -> Meter:
    del model, input_tokens, most_tokens, output_tokens
    return NoMeter()


def _reasoned_it_away(reply: Reply) -> bool:
    """Whether reasoning left no room for the answer."""
    return "cut" in reply.faults and bool(reply.usage.reasoning_tokens or reply.reasoning)


def _told(reply: Reply, error: UnusableAnswerError) -> str:
    if "cut" in reply.faults:
        return "it was cut off by the limit on its length before it was whole; be shorter"
    if not reply.text:
        return "it has no text"
    return str(error)
