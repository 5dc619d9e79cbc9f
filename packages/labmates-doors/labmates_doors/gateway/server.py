"""The gateway's HTTP server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router

from labmates.util.garbage import rare_collection
from labmates_doors.gateway.asking import ask
from labmates_doors.gateway.calls import LEFT, Call
from labmates_doors.gateway.connections import Connection
from labmates_doors.gateway.passing import pass_on
from labmates_doors.gateway.state import Gateway
from labmates_doors.protocols import PROTOCOLS
from labmates_doors.protocols.base import Json, Protocol, RefusedRequestError, shown_key
from labmates_doors.protocols.responses import RESPONSES

_STOP_SECONDS = 3


def make_app(gateway: Gateway) -> Router:
    """The application: the protocols' paths, ``/v1/models`` and ``/budget``."""

    def page(content: Callable[[], Json]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            # A page of the web that has rebound its name to this machine has no key, and sends its own name.
            if gateway.seats.of_key(shown_key(request.headers)) is None and not _is_plain(request.url.hostname):
                return JSONResponse(PROTOCOLS[0].error(403, "without a key, ask by an IP address or localhost"), 403)
            return JSONResponse(content())

        return answer

    def models() -> Json:
        listed = [{"id": name, "object": "model", "type": "model"} for name in gateway.models]
        return {"object": "list", "data": listed}

    async def unknown(request: Request) -> Response:
        paths = ", ".join(protocol.path for protocol in PROTOCOLS)
        message = f"'{request.url.path}' is not a path of this gateway; POST {paths}; GET /budget"
        return JSONResponse(PROTOCOLS[0].error(404, message), 404)

    @asynccontextmanager
    async def lifespan(_app: Any) -> AsyncIterator[None]:
        with rare_collection():
            async with gateway.record.opened(gateway.budget, gateway.is_empty), gateway.client, gateway.hub:
                gateway.prepare()
                yield

    routes = [Route(protocol.path, _handler(gateway, protocol), methods=["POST"]) for protocol in PROTOCOLS]
    routes += [
        Route("/budget", page(gateway.budget)),
        Route("/v1/models", page(models)),
        Route("/{path:path}", unknown, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
    ]
    return Router(routes=routes, lifespan=lifespan)


def make_server(gateway: Gateway) -> uvicorn.Server:
    """A uvicorn server for the gateway."""
    config = uvicorn.Config(
        make_app(gateway),
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        lifespan="on",
        http=Connection,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    return uvicorn.Server(config)


def _is_plain(host: str | None) -> bool:
    """Whether a host is an IP address or localhost."""
    try:
        return host == "localhost" or bool(ip_address(host or ""))
    except ValueError:
        return False


def _handler(gateway: Gateway, protocol: Protocol) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        seat = gateway.seats.of_key(shown_key(request.headers))
        if seat is None:
            message = "the key belongs to no seat of this gateway"
            return JSONResponse(protocol.error(401, message), 401)
        if gateway.record.fault:
            return JSONResponse(protocol.error(503, gateway.record.fault), 503)
        call = Call(gateway, protocol, seat)
        try:
            await call.read(request)
            lacks = protocol is RESPONSES and call.upstream.name in gateway.without_responses
            return await (pass_on(call, request) if call.upstream.speaks(protocol) and not lacks else ask(call))
        except RefusedRequestError as error:
            return call.refused(error.status, str(error))
        except ClientDisconnect:
            return Response(status_code=LEFT)

    return handle
