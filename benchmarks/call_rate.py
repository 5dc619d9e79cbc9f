"""How many model calls a second a study makes, beside what latency and runs at once, or the client alone, allow.

Once with a model in the process that takes 100 ms, which no cap holds, and once over HTTP with a server of this machine
that does; the server takes a part of the machine's processors too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection

from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI

from benchmarks.duels import LATENCY_SECONDS, a_study
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.records.store import Store
from labmates.records.studies import study_counts
from labmates.studies.study import enter, stored_spec, work_on

CAP = 64
AT_ONCE = 128
"""Runs at once, each with one call in flight: more than the cap, which holds for calls over HTTP."""
ROUNDS = 10
CALLS_PER_RUN = 2 * ROUNDS
_MESSAGE = {"role": "assistant", "content": "I cooperate."}
_USAGE = {"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24}
_CHOICE = {"index": 0, "message": _MESSAGE, "finish_reason": "stop"}
_REPLY = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [_CHOICE], "usage": _USAGE}


class Answering(asyncio.Protocol):
    """Answers each request of a connection with the same completion, 100 ms later; nothing but fast."""

    _BODY = json.dumps(_REPLY).encode()
    _ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(_BODY), _BODY)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._heard = transport, b""

    def data_received(self, data: bytes) -> None:
        """Answer when a request is there whole."""
        self._heard += data
        head, end, body = self._heard.partition(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        if end and len(body) >= length:
            self._heard = body[length:]
            asyncio.get_running_loop().call_later(LATENCY_SECONDS, self._transport.write, self._ANSWER)


def serve(tell: Connection) -> None:
    """Be the server; tells its port."""

    async def forever() -> None:
        server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
        tell.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(forever())


def work(url: str) -> None:
    """Be a worker."""
    store = Store(url)
    asyncio.run(work_on(store, stored_spec(store, None)))
    store.close()


def rate(model: str, runs: int, processes: int, base_url: str | None = None) -> float:
    """Return the calls a second of a study, from its first recorded call to its last."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"sqlite:///{folder}/runs.db")
        more = {"connection": {"base_url": base_url}} if base_url else {}
        enter(store, a_study(runs, rounds=ROUNDS, models=[model], at_once=AT_ONCE, **more))
        command = [sys.executable, "-m", "benchmarks.call_rate", "--work", store.url]
        workers = [subprocess.Popen(command) for _ in range(processes)]
        assert [worker.wait() for worker in workers] == [0] * processes
        assert study_counts(store.database, "duels").runs == {"completed": runs}
        first = min(run.started for run in store.runs())
        last = max(run.started + run.seconds for run in store.runs())
        store.close()
    return runs * CALLS_PER_RUN / (last - first)


async def clients(base_url: str, calls: int) -> list[float]:
    """Return the calls a second of LangChain's client, and of our hub around it, and nothing else."""
    model = ChatOpenAI(model="m", base_url=base_url, api_key="none", max_tokens=64)
    said = [HumanMessage("Cooperate or defect?")]
    async with ModelHub(ModelOptions(base_url=base_url, max_concurrent_calls=CAP)) as hub:

        async def client(number: int) -> None:
            await model.ainvoke(said, seed=number)

        async def through_hub(number: int) -> None:
            await hub.call("openai:m", said, seed=number, max_output_tokens=64)

        return [await _rate_of(ask, calls) for ask in (client, through_hub)]


async def _rate_of(ask: Callable[[int], Awaitable[None]], calls: int) -> float:
    left = iter(range(calls))

    async def ask_on() -> None:
        for number in left:
            await ask(number)

    await ask(0)  # imports and connects
    started = time.perf_counter()
    await asyncio.gather(*(ask_on() for _ in range(CAP)))
    return calls / (time.perf_counter() - started)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", metavar="URL", help="be a worker")
    parser.add_argument("--runs", type=int, default=500)
    chosen = parser.parse_args()
    if chosen.work:
        return work(chosen.work)
    os.environ["OPENAI_API_KEY"] = "none"
    most = AT_ONCE / LATENCY_SECONDS
    got = rate("scripted:waiting", chosen.runs, 1)
    print(f"a model in the process: {got:.0f} calls/s, {got / most:.2f} of runs at once / latency = {most:.0f} calls/s")
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    base_url = f"http://127.0.0.1:{here.recv()}/v1"
    calls = chosen.runs * CALLS_PER_RUN // 3
    alone, hub = asyncio.run(clients(base_url, calls))
    one, two = (rate("openai:m", chosen.runs, processes, base_url) for processes in (1, 2))
    print(
        f"over HTTP: {alone:.0f} calls/s by ChatOpenAI alone, {hub:.0f} by the hub, a study {one:.0f} in one process "
        f"({one / alone:.2f} of the client alone) and {two:.0f} in two"
    )
    server.terminate()
    return None


if __name__ == "__main__":
    main()
