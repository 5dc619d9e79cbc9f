"""What the gateway adds to a call: calls through it beside calls to the bare server, in turns.

Translated calls come by Anthropic's messages; the bare server gets them as chat completions.

The server, the gateway and the program each have a process; the gateway's processor time is its own.

With ``--attacks``: how long a call of one seat takes while a seat without money, or somebody without a key, attacks.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import socket
import tempfile
import threading
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import httpx2

from labmates.budgets.prices import Price
from labmates.models.entries import Access
from labmates.records.store import Store
from labmates.util.loopback import open_socket
from labmates_doors.gateway.recording import GatewayCondition, RunOfGateway
from labmates_doors.gateway.seats import Seats
from labmates_doors.gateway.server import make_server
from labmates_doors.gateway.state import Gateway
from labmates_doors.gateway.upstream import Upstream
from tests.support.openai_server import Answer, OpenAIServer, fault

AT_ONCE = 32
CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
BODY = {"model": "m", "messages": [{"role": "user", "content": "What is a pool? " * 40}], "max_tokens": 500}
PRICE = Price.model_validate({"input": "0.1", "output": "1"})


def main(calls: int, rounds: int) -> None:
    """Print calls per second through the gateway and without it, and the gateway's processor time per call."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    with OpenAIServer(Answer(text="A pool is money. " * 10)) as server, tempfile.TemporaryDirectory() as folder:
        serving = context.Process(target=_serve, args=(server.port, folder, theirs), daemon=True)
        serving.start()
        port, key, _ = ours.recv()
        for path, stream in ((CHAT, False), (CHAT, True), (MESSAGES, False), (MESSAGES, True)):
            found = []
            for _ in range(rounds):
                bare = asyncio.run(_rate(f"http://127.0.0.1:{server.port}{CHAT}", "none", calls, stream=stream))
                before = _processor_time(serving.pid)
                through = asyncio.run(_rate(f"http://127.0.0.1:{port}{path}", key, calls, stream=stream))
                found.append((bare, through, (_processor_time(serving.pid) - before) / calls * 1000))
            bare, through, cost = (median(column) for column in zip(*found, strict=True))
            what = f"{'translated ' if path == MESSAGES else ''}{'streams' if stream else 'whole replies'}"
            print(
                f"{what}: bare {bare:.0f} calls/s, through the gateway {through:.0f} calls/s ({bare / through:.2f} x); "
                f"gateway {cost:.2f} CPU ms a call, which is {1000 / cost:.0f} calls/s on a core of its own"
            )
        serving.terminate()


def attacks(calls: int) -> None:
    """Print the median time of alice's calls alone, and during each attack, and the gateway's processor time."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    echo = fault(400, {"error": {"message": f"invalid value: {'a' * 40_000}"}})
    with (
        OpenAIServer(lambda sent, _: echo if sent.get("tool_choice") else Answer(text="A pool is money.")) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        serving = context.Process(target=_serve, args=(server.port, folder, theirs), daemon=True)
        serving.start()
        port, key, poor = ours.recv()
        url, large = (
            f"http://127.0.0.1:{port}{CHAT}",
            b'{"model":"m","messages":[],"x":[' + b"{}," * 9_300_000 + b"{}]}",
        )

        def flood() -> None:
            with suppress(httpx2.TransportError):  # the answer may come before the request has ended
                httpx2.post(url, content=large, headers={"authorization": f"Bearer {poor}"}, timeout=600)

        def echoed() -> None:
            body = BODY | {"tool_choice": "a" * 40_000}
            httpx2.post(url, json=body, headers={"authorization": f"Bearer {key}"}, timeout=600)

        idle: list[socket.socket] = []

        def connect() -> None:
            idle.append(socket.create_connection(("127.0.0.1", port)))

        for name, attack, times in (
            ("alone", None, 0),
            ("28 MB", flood, 1),
            ("echo", echoed, 1),
            ("idle", connect, 1_000),
        ):
            before, stop = _processor_time(serving.pid), threading.Event()

            def attacking(attack: Any = attack, times: int = times, stop: threading.Event = stop) -> None:
                while attack and not stop.is_set():
                    for _ in range(times):
                        with suppress(OSError):
                            attack()

            thread = threading.Thread(target=attacking, daemon=True)
            thread.start()
            spans = []
            for _ in range(calls):
                began = time.perf_counter()
                reply = httpx2.post(url, json=BODY, headers={"authorization": f"Bearer {key}"}, timeout=600)
                assert reply.status_code == 200
                spans.append(time.perf_counter() - began)
            stop.set()
            thread.join()
            cost = _processor_time(serving.pid) - before
            middle, most = 1000 * median(spans), 1000 * max(spans)
            print(f"{name}: {middle:.0f} ms a call, at most {most:.0f}; gateway {cost:.2f} CPU s")
        serving.terminate()


def _serve(port: int, folder: str, pipe: Connection) -> None:
    seats = Seats(10**12, {"alice": None, "poor": 1})
    listening = open_socket("127.0.0.1", 0, what="gateway", usual=0)
    pipe.send((listening.getsockname()[1], seats.by_name["alice"].key, seats.by_name["poor"].key))
    access = Access(base_url=f"http://127.0.0.1:{port}/v1")
    upstream = Upstream("openai:m", "openai", "m", f"http://127.0.0.1:{port}", "key-of-the-server", PRICE, access)
    options = {"budget": "1000000", "seats": {"alice": None}, "upstreams": ["openai:m"], "max_output_tokens": 4096}
    condition = GatewayCondition.model_validate(options)
    with Store(f"sqlite:///{folder}/runs.db") as store:
        gateway = Gateway(seats, [upstream], record=RunOfGateway(store, condition))
        make_server(gateway).run(sockets=[listening])


async def _rate(url: str, key: str, calls: int, *, stream: bool) -> float:
    left = iter(range(calls))
    async with httpx2.AsyncClient(timeout=60, headers={"authorization": f"Bearer {key}"}) as client:

        async def ask() -> None:
            for _ in left:
                async with client.stream("POST", url, json=BODY | {"stream": stream}) as reply:
                    assert reply.status_code == 200
                    await reply.aread()

        start = time.perf_counter()
        await asyncio.gather(*(ask() for _ in range(AT_ONCE)))
        return calls / (time.perf_counter() - start)


def _processor_time(pid: int | None) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--attacks", action="store_true")
    options = parser.parse_args()
    if options.attacks:
        attacks(options.calls)
    else:
        main(options.calls, options.rounds)
