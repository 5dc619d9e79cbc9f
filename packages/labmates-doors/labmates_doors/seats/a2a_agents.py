"""A2A agents: each step is a message with the address of the seat's tools and model."""

from __future__ import annotations

from typing import Any

from labmates.models.error_bodies import one_line
from labmates_doors.seats.endpoint import served
from labmates_doors.seats.session import SeatError, SeatSession

_FAILED = ("TASK_STATE_FAILED", "TASK_STATE_REJECTED", "TASK_STATE_CANCELED")
_MOST_REASON_CHARS = 300


async def run_a2a(session: SeatSession, url: str) -> str:
    """Send an agent its order; returns its last text.

    Raises
    ------
    SeatError
        If the agent is unreachable, or its task fails.
    """
    import httpx
    from a2a.client import A2AClientError, ClientConfig, create_client
    from a2a.helpers import get_stream_response_text, new_data_part, new_message, new_text_part
    from a2a.types import Role, SendMessageRequest, TaskState

    text = ""
    try:
        # The session limits the time of each reply.
        async with served(session) as address, httpx.AsyncClient(timeout=None) as http:  # noqa: S113
            parts = [new_text_part(session.order), new_data_part({"labmates": _way(session, address)})]
            message = new_message(parts, role=Role.ROLE_USER)
            client = await create_client(url, ClientConfig(httpx_client=http))
            async for response in client.send_message(SendMessageRequest(message=message)):
                text = get_stream_response_text(response) or text
                status = response.status_update.status or response.task.status
                if TaskState.Name(status.state) in _FAILED:
                    raise SeatError(f"the agent at {url} ended its task: {text or TaskState.Name(status.state)}")
    except (A2AClientError, httpx.HTTPError, ValueError, OSError) as error:  # the client reads the environment itself
        reason = one_line(f"{type(error).__name__}: {error}", _MOST_REASON_CHARS)
        raise SeatError(f"the agent at {url} failed: {reason}") from error
    return text


def _way(session: SeatSession, address: str) -> dict[str, Any]:
    """The address and the key of the seat's server, named like a program's variables."""
    return {
        "seat": session.speaker.agent,
        "url": address,
        "key": session.key,
        "mcp_url": f"{address}/mcp",
        "openai_base_url": f"{address}/v1",
        "anthropic_base_url": address,
        "model": session.speaker.model,
    }
