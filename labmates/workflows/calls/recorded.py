"""Recorded replies in place of a model: those of a rerun's own record, or of another run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count, takewhile
from typing import cast

from labmates.agents.transcript import message_from_data
from labmates.errors import UsageError
from labmates.models.reply import Reply
from labmates.records.events import LLMCallEvent
from labmates.records.recorder import Recorder
from labmates.workflows.calls.call import Call, CallOptions, inner_step, recorded_reply
from labmates.workflows.calls.caller import Caller


@dataclass(frozen=True)
class RecordedOutsider:
    """Recorded answers of a person or an external agent, whose model calls are replayed, for reruns."""

    caller: Caller
    past: Recorder

    async def reply(self, call: Call) -> Reply:
        """The recorded reply. Raises `NewStepError` if it is not recorded."""
        numbered = (self.past.done("llm_call", inner_step(call.step, number)) for number in count())
        for event in cast(Iterator[LLMCallEvent], takewhile(lambda event: event is not None, numbered)):
            sent = [message_from_data(self.past.bodies[number]) for number in event.messages]
            speaker = replace(call.speaker, model=event.model)
            limit = event.output_limit or 0
            await self.caller.call(event.step, speaker, sent, call.purse, name=event.step, limit=limit)
        event = cast(LLMCallEvent, self.past.recorded("llm_call", call.step))
        return replace(recorded_reply(event, self.past.bodies), bill=0)


@dataclass(frozen=True)
class FromRun:
    """What a seat replied in another run of the same data; where it replied nothing, its model there is asked."""

    caller: Caller
    other: Recorder

    async def reply(self, call: Call) -> Reply:
        """The reply of the same step, which costs nothing, or a new one."""
        event = cast(LLMCallEvent | None, self.other.done("llm_call", call.step))
        if event is not None:
            return replace(recorded_reply(event, self.other.bodies), bill=0)
        theirs = (e for e in self.other.events if isinstance(e, LLMCallEvent) and e.type == "llm_call")
        if (first := next((e for e in theirs if e.agent == call.speaker.agent), None)) is None:
            raise UsageError(f"model '{call.speaker.model}': the seat {call.speaker.agent} did nothing in that run")
        options: CallOptions = {
            "tools": call.tools,
            "response_format": call.response_format,
            "tool_choice": call.tool_choice,
            "state_limit": call.state_limit,
        }
        if call.usable is not None:
            options["usable"] = call.usable
        speaker, step = replace(call.speaker, model=first.model), inner_step(call.step, 0)
        made = await self.caller.call(step, speaker, call.messages, call.purse, name=step, **options)
        return replace(made.reply, bill=0)


def from_run(caller: Caller, model: str, record_of: Callable[[str], Recorder] | None) -> FromRun:
    """The answerer named ``recorded:RUN``.

    Raises `UsageError` if there is no such run, or none can be read here.
    """
    if record_of is None:
        raise UsageError(f"model '{model}': no other run can be read here")
    return FromRun(caller, record_of(model.partition(":")[2]))
