"""What the gateway adds to a call: calls through it beside calls to the bare server, in turns.

Translated calls come by Anthropic's messages; the bare server gets them as chat completions.

The server, the gateway and the program each have a process; the gateway's processor time is its own.

With ``--attacks``: how long a call of one seat takes while a seat without money, or somebody without a key, attacks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

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
TURNS = 5
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
    """Print how long alice's calls take alone and during each attack, in turns, and what the gateway works meanwhile.

    Each attacker has a process. The gateway's processor time during a call is the wait that no further core shortens.
    """
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
        url = f"http://127.0.0.1:{port}{CHAT}"
        attackers: dict[str, tuple[Callable[..., None], tuple[object, ...]]] = {
            "28 MB": (_post, (url, poor, b'{"model":"m","messages":[],"x":[' + b"{}," * 9_300_000 + b"{}]}")),
            "echo": (_post, (url, key, json.dumps(BODY | {"tool_choice": "a" * 40_000}).encode())),
            "idle": (_connect, (port,)),
        }
        for name, (attack, given) in attackers.items():
            waits: dict[str, list[tuple[float, float]]] = {"alone": [], name: []}
            for turn in range(2 * TURNS):
                attacker = context.Process(target=attack, args=given, daemon=True)
                if turn % 2:
                    attacker.start()
                    time.sleep(0.5)
                for _ in range(calls // TURNS):
                    began, before = time.perf_counter(), _nanoseconds(serving.pid)
                    reply = httpx2.post(url, json=BODY, headers={"authorization": f"Bearer {key}"}, timeout=600)
                    assert reply.status_code == 200
                    worked = _nanoseconds(serving.pid) - before
                    waits[name if turn % 2 else "alone"].append((time.perf_counter() - began, worked / 1e9))
                if turn % 2:
                    attacker.kill()
                    attacker.join()
            for at, what in enumerate(("a call", "of the gateway's processor")):
                usual, attacked = (1000 * median(wait[at] for wait in waits[key]) for key in waits)
                most = 1000 * max(wait[at] for wait in waits[name])
                ratio = f"{attacked / usual:.2f} x"
                print(f"{name}: {usual:.1f} ms {what} alone, {attacked:.1f} attacked ({ratio}), at most {most:.1f}")
        serving.terminate()


def _post(url: str, key: str, body: bytes) -> None:
    while True:
        with suppress(httpx2.TransportError):  # the answer may come before the request has ended
            httpx2.post(url, content=body, headers={"authorization": f"Bearer {key}"}, timeout=600)


def _connect(port: int) -> None:
    connections = []
    while True:
        with suppress(OSError):  # no more descriptors
            connections.append(socket.create_connection(("127.0.0.1", port), timeout=1))


def _nanoseconds(pid: int | None) -> int:
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks)


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
