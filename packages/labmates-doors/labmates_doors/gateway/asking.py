"""Requests for models with another protocol, answered through LangChain."""

from __future__ import annotations

from starlette.responses import Response

from labmates.budgets.budget import LostAttempt, free_meter
from labmates.errors import UsageError
from labmates.models.errors import ContextOverflowError, ModelCallError
from labmates.models.reply import Reply
from labmates_doors.gateway.calls import Call
from labmates_doors.protocols.answering import answer
from labmates_doors.protocols.base import Prompt, RefusedRequestError


class FailedCallError(RefusedRequestError):
    """A recorded call without a reply."""


async def ask(call: Call) -> Response:
    """Answer a request in its protocol."""
    prompt = call.protocol.prompt(call.body)

    async def asking() -> Reply:
        try:
            return await _paid_by_pool(call, prompt)
        except ModelCallError as error:
            status = 400 if isinstance(error, ContextOverflowError) else error.status or 502
            raise FailedCallError(call.gateway.redact(str(error)), status) from error
        except UsageError as error:  # the model can't be set up, for instance without its provider's package
            raise FailedCallError(call.gateway.redact(str(error)), 501) from error

    try:
        return await answer(call.protocol, call.body, prompt, call.body["model"], asking)
    except FailedCallError as error:
        return call.error(error.status, str(error))


async def _paid_by_pool(call: Call, prompt: Prompt) -> Reply:
    """A model's reply, paid by the gateway's pool; never retried, since programs retry themselves."""
    payment = await call.hold()
    memory = call.gateway.memory[call.seat.member]
    lost: list[LostAttempt] = []
    try:
        reply = await call.gateway.hub.call(
            call.upstream.full_name,
            memory.joined(prompt.messages),
            tools=prompt.tools,
            seed=prompt.seed,
            max_output_tokens=payment.limit,
            temperature=prompt.temperature,
            insist=False,
            response_format=prompt.response_format,
            tool_choice=prompt.tool_choice,
            meter=free_meter(lost.append),
        )
    except BaseException as error:
        if lost:
            payment.lost(504, lost[-1].reason)
        else:
            payment.free(getattr(error, "status", None) or 502, call.gateway.redact(str(error)))
        raise
    memory.keep(reply.message)
    bill = reply.bill if reply.bill_from == "server" else None
    payment.settle(reply.usage, call.protocol.reply(reply, call.upstream.name), "; ".join(reply.notes), bill)
    return reply
