"""A server of an A2A agent that does its work by the tools and the model of its seat, with the official SDK."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from a2a.helpers import get_data_parts, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface
from starlette.applications import Starlette

from labmates.util.loopback import address_of, open_socket
from labmates_doors.seats.endpoint import Server
from tests.doors.seat_agent import Seat, work


class Worker(AgentExecutor):
    """Works where a message says that its seat is."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        [data] = get_data_parts(context.message.parts)
        way = data["labmates"]
        text = await work(Seat(way["url"], way["key"]))
        await event_queue.enqueue_event(new_text_message(text or "Done."))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


@asynccontextmanager
async def a2a_agent() -> AsyncIterator[str]:
    """The address of a running agent."""
    listening = open_socket("127.0.0.1", 0, what="agent", usual=0)
    url = address_of(listening)
    interface = AgentInterface(url=f"{url}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")
    card = AgentCard(
        name="worker",
        description="Works in the lab.",
        version="1",
        supported_interfaces=[interface],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
    )
    handler = DefaultRequestHandler(agent_executor=Worker(), task_store=InMemoryTaskStore(), agent_card=card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/rpc")]
    server = Server(uvicorn.Config(Starlette(routes=routes), log_level="error", lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    await server.ready.wait()
    try:
        yield url
    finally:
        server.should_exit = True
        await serving
        listening.close()
