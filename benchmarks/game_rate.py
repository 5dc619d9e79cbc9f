"""How many model calls a second the behavioural games make, beside what latency and cap, or the client alone, allow.

Six games, 50 simulations each, 10 players, at most 64 calls at a time: with a model in the process that takes 100 ms,
and over HTTP with a server of this machine that does; the server takes a part of the machine's processors too.
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
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult

from benchmarks.call_rate import CAP, clients, serve
from benchmarks.duels import LATENCY_SECONDS, Waiting
from labmates.budgets.tokens import text_of
from labmates.games.registry import own_games
from labmates.models.options import ModelOptions
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import Draft, Heard
from labmates.records.store import Store
from labmates.studies.runs import new_runs
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.protocol.experiment import make_condition

_KEY = re.compile(r'"(\w+)": …')
_MOST = re.compile(r'^- "(\w+)": \d+ to (\d+)', re.MULTILINE)
_USED = UsageMetadata(input_tokens=400, output_tokens=10, total_tokens=410)
AT_ONCE = 32


class Deciding(Waiting):
    """Takes 100 ms for a decision: all it has on the first thing, nothing on the others.

    It takes no processor time to speak of, as a server far away does not: neither counts tokens nor cuts its reply.
    """

    baseline = "deciding"

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **more: Any,
    ) -> ChatResult:
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


BASELINES.register("deciding", Deciding)


def rate(model: str, simulations: int, base_url: str | None = None) -> tuple[float, float]:
    """Return calls a second, and seconds of processor time a call, of the simulations of all games."""
    options = ModelOptions(base_url=base_url, max_concurrent_calls=CAP)
    settings = RunSettings(models=options, max_concurrent_runs=AT_ONCE)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=50)
    parser.add_argument("--http", action="store_true", help="over HTTP too")
    chosen = parser.parse_args()
    os.environ["OPENAI_API_KEY"] = "none"
    most = CAP / LATENCY_SECONDS
    got, cpu = rate("scripted:deciding", chosen.simulations)
    print(
        f"a model in the process: {got:.0f} calls/s, {got / most:.2f} of cap / latency = {most:.0f} calls/s; "
        f"{cpu * 1000:.2f} ms of processor time a call"
    )
    if not chosen.http:
        return
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    base_url = f"http://127.0.0.1:{here.recv()}/v1"
    alone, hub = asyncio.run(clients(base_url, 2000))
    got, cpu = rate("openai:m", max(1, chosen.simulations // 5), base_url)
    print(
        f"over HTTP: {alone:.0f} calls/s by ChatOpenAI alone, {hub:.0f} by the hub, the games {got:.0f} "
        f"({got / alone:.2f} of the client alone)"
    )
    server.terminate()


if __name__ == "__main__":
    main()
