"""How many model calls a second the behavioural games make, beside what latency and cap, or the client alone, allow.

Six games of 10 players, at most 64 calls at a time: with a model in the process that takes 100 ms, and over HTTP with a
server of this machine that does; the server takes a part of the machine's processors too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import tempfile
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from typing import Any, ClassVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI

from labmates.budgets.tokens import text_of
from labmates.games.registry import own_games
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import Draft, Heard, ScriptedModel
from labmates.records.store import Store
from labmates.studies.runs import new_runs
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.protocol.experiment import make_condition

CAP, AT_ONCE = 64, 32
"""Calls and runs at once."""
LATENCY_SECONDS = 0.1
_KEY = re.compile(r'"(\w+)": …')
_MOST = re.compile(r'^- "(\w+)": \d+ to (\d+)', re.MULTILINE)
_USED = UsageMetadata(input_tokens=400, output_tokens=10, total_tokens=410)
_MESSAGE = {"role": "assistant", "content": "I cooperate."}
_USAGE = {"prompt_tokens": 20, "completion_tokens": 4, "total_tokens": 24}
_CHOICE = {"index": 0, "message": _MESSAGE, "finish_reason": "stop"}
_REPLY = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [_CHOICE], "usage": _USAGE}


class Deciding(ScriptedModel):
    """Takes 100 ms for a decision: all it has on the first thing, nothing on the others.

    It takes no processor time to speak of, as a server far away does not: neither counts tokens nor cuts its reply.
    """

    baseline: ClassVar[str] = "deciding"

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        await asyncio.sleep(LATENCY_SECONDS)
        text = str(self.compose(Heard(tuple(messages))).content)
        message = AIMessage(text, usage_metadata=_USED, response_metadata={"finish_reason": "stop"})
        return ChatResult(generations=[ChatGeneration(message=message)])

    def compose(self, heard: Heard) -> Draft:
        """Decide by the keys alone."""
        rules, order = (text_of(message.content) for message in heard.messages)
        most = dict(_MOST.findall(rules))
        keys = _KEY.findall(order)
        return Draft(json.dumps({name: int(most.get(name, 0)) * (name == keys[0]) for name in keys}))


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


def rate(model: str, simulations: int, base_url: str | None = None) -> tuple[float, float]:
    """Return calls a second, and seconds of processor time a call, of the simulations of all games."""
    settings = RunSettings(
        models=ModelOptions(base_url=base_url, max_concurrent_calls=CAP), max_concurrent_runs=AT_ONCE
    )
    conditions = [make_condition("game", {"game": name, "model": model}) for name in own_games()]
    # Long games first, as a profile has them: what is left at the end is short.
    runs = [run for one in conditions for run in new_runs(one, seed=0, replicates=simulations, settings=settings)]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"sqlite:///{folder}/runs.db")
        started, used = time.perf_counter(), time.process_time()
        ended = asyncio.run(Session(store, settings).execute(runs))
        seconds, cpu = time.perf_counter() - started, time.process_time() - used
        store.close()
    assert all(run.status == "completed" for run in ended)
    calls = sum(run.usage.llm_calls for run in ended)
    return calls / seconds, cpu / calls


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
    parser.add_argument("--simulations", type=int, default=50)
    chosen = parser.parse_args()
    os.environ["OPENAI_API_KEY"] = "none"
    BASELINES.register("deciding", Deciding)
    most = CAP / LATENCY_SECONDS
    got, cpu = rate("scripted:deciding", chosen.simulations)
    # No cap holds for a model in the process.
    print(f"a model in the process: {got:.0f} calls/s; {cpu * 1000:.2f} ms of processor time a call")
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    base_url = f"http://127.0.0.1:{here.recv()}/v1"
    alone, hub = asyncio.run(clients(base_url, 2000))
    got, _ = rate("openai:m", max(1, chosen.simulations // 5), base_url)
    print(
        f"over HTTP: at most cap / latency = {most:.0f} calls/s, {alone:.0f} by ChatOpenAI alone, {hub:.0f} by the "
        f"hub, the games {got:.0f} ({got / alone:.2f} of the client alone)"
    )
    server.terminate()


if __name__ == "__main__":
    main()
