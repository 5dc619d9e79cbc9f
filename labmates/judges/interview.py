"""Model calls of judges, with repair turns for unusable answers.

A run's budget does not pay these calls; the bound of a study's run does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel

from labmates.models.conversation import Conversation, Exchange
from labmates.models.names import parse_model
from labmates.models.normalise import NO_TEXT
from labmates.models.objects import UnusableAnswerError
from labmates.models.reply import Reply
from labmates.models.structured import format_of

T = TypeVar("T")

REPAIR_TURNS = 2
TEMPERATURE = 0.0
REASONING_TOKENS = 8_192
"""Additional output tokens for a model once its reasoning has used up the limit on its answer."""
MOST_SENT_BACK = 4_000
"""Most characters of an unusable answer in a repair turn."""

REPAIR = """Your answer can't be used: {problem}.
{form}"""
AGAIN = "Answer once more with nothing but what was asked for, in the form that was asked for."


JudgeCalls = Callable[[str, list[BaseMessage], str, int, Mapping[str, Any] | None], Awaitable[Exchange]]
"""Calls a model with messages, a name from which the seed derives, a limit on output tokens, and a response format."""


class ModelJudge:
    """Base of judges that ask a model, ``provider:name``.

    Parameters
    ----------
    thinkers
        Models known to use up their limit by reasoning; shared between judges.

    Attributes
    ----------
    prefix
        Prefix of the model's name in the judge's name.
    system
        System prompt.
    most_output_tokens
        Limit on an answer.
    """

    prefix: ClassVar[str] = ""
    system: ClassVar[str]
    most_output_tokens: ClassVar[int]

    def __init__(self, model: str, call: JudgeCalls, thinkers: set[str] | None = None) -> None:
        self.name = f"{self.prefix}{model}"
        self.model = model
        self._call = call
        self._thinkers = set() if thinkers is None else thinkers

    async def ask(
        self, question: BaseMessage, read: Callable[[str, bool], T], form: type[BaseModel], *, name: str
    ) -> T:
        """The model's parsed answer to a question, after at most `REPAIR_TURNS` repair turns.

        Parameters
        ----------
        read
            Parses the answer's text; its second argument is true in the last turn. Raises
            `UnusableAnswerError` for an unusable answer.
        form
            Schema of the answer, sent to the server if the model is ``structured``.
        name
            Name of the calls in a trace; their seeds derive from it.

        Raises
        ------
        UnusableAnswerError
            If all answers are unusable.
        ModelCallError
            If the model fails, the call can't be paid, or the prompt is too long for the model.
        """
        response_format = format_of(form) if parse_model(self.model).settings.structured else None
        extra = 0

        def read_reply(reply: Reply, last: bool) -> T:
            try:
                return read(reply.text, last)
            except UnusableAnswerError as error:
                raise UnusableAnswerError(_fault_text(reply, error), form=error.form) from error

        def is_usable(reply: Reply) -> bool:
            try:
                read(reply.text, False)
            except UnusableAnswerError:
                return False
            return True

        async def call(transcript: list[BaseMessage], number: int) -> Exchange:
            nonlocal extra
            room = REASONING_TOKENS if self.model in self._thinkers else 0
            limit = self.most_output_tokens + room
            exchange = await self._call(self.model, transcript, f"{name} {number + extra}", limit, response_format)
            if room or not _is_used_up_by_reasoning(exchange.reply) or is_usable(exchange.reply):
                return exchange
            self._thinkers.add(self.model)
            extra += 1
            return await call(transcript, number)

        talk = Conversation(call, [SystemMessage(self.system), question], send_back=_sent_back)
        try:
            return await talk.ask(read_reply, repair_turns=REPAIR_TURNS)
        except UnusableAnswerError as problem:
            raise UnusableAnswerError(f"no usable answer after {REPAIR_TURNS} repair turns: {problem}") from problem


def _sent_back(messages: list[BaseMessage], reply: Reply, problem: UnusableAnswerError) -> list[BaseMessage]:
    reply_sent = AIMessage(reply.text[:MOST_SENT_BACK] or NO_TEXT)
    return [*messages, reply_sent, HumanMessage(REPAIR.format(problem=problem, form=problem.form or AGAIN))]


def _is_used_up_by_reasoning(reply: Reply) -> bool:
    """Whether reasoning left no room for the answer."""
    return "cut" in reply.faults and bool(reply.usage.reasoning_tokens or reply.reasoning)


def _fault_text(reply: Reply, error: UnusableAnswerError) -> str:
    if "cut" in reply.faults:
        return "it was cut off by the limit on its length before it was whole; be shorter"
    if not reply.text:
        return "it has no text"
    return str(error)


def digest(*texts: str) -> str:
    """A hash of texts in eight hexadecimal digits, for a judge's version."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=4).hexdigest()
