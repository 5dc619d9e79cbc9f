"""How near tournaments come to what their dependencies allow, with a player whose every call takes a while.

A round's moves wait for the round before, a plan for its draft and its critique, a match for the one before of its
players; nothing else has to wait. The bound is that chain of calls times the latency of one. What is above it is the
time of the processor: the graphs, the prompts and the record in SQLite.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from labmates.agents.players.base import Player
from labmates.models.options import ModelOptions
from labmates.models.scripted import BASELINES
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.runs import new_runs
from labmates.studies.session import Session
from labmates.studies.settings import RunSettings
from labmates.workflows.tournament.condition import TournamentCondition

CHAIN = 157
"""Calls of one player in five matches of 20 rounds, as published: 100 moves, 19 plans of three calls."""
SHORT_CHAIN = 25 + 4 * 3 + 5
"""The same with five rounds a match, and with the questions after each match."""


class Slow(Player):
    """Plays tit-for-tat after a while."""

    baseline: ClassVar[str] = "tit-for-tat"
    description: ClassVar[str] = "Plays tit-for-tat after a while."
    latency: float = 0.1

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: object,
    ) -> ChatResult:
        await asyncio.sleep(self.latency)
        return await super()._agenerate(messages, stop, run_manager, **kwargs)


async def play(latency: float, conditions: list[TournamentCondition], replicates: int) -> tuple[float, float, int]:
    """Play tournaments, all at once; return seconds, seconds of the processor, and calls."""
    BASELINES.register("slow", lambda: Slow(latency=latency))
    settings = RunSettings(models=ModelOptions(max_concurrent_calls=1000), max_concurrent_runs=100)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"sqlite:///{Path(folder) / 'runs.db'}")
        runs = [run for one in conditions for run in new_runs(one, seed=0, replicates=replicates, settings=settings)]
        start, cpu = time.perf_counter(), time.process_time()
        ended: list[RunRecord] = await Session(store, settings).execute(runs)
        seconds, used = time.perf_counter() - start, time.process_time() - cpu
        store.close()
    assert all(run.status == "completed" for run in ended), [run.error for run in ended]
    assert not any(run.metrics["failed_decision_rate"] for run in ended)
    return seconds, used, sum(run.usage.llm_calls for run in ended)


async def main() -> None:
    """Measure both and print them beside their bounds."""
    long = TournamentCondition(structure="sa", model="scripted:slow", rounds_per_player=99)
    short = [
        TournamentCondition(
            structure=structure, model="scripted:slow", rounds=5, rounds_per_player=14 if structure == "gc" else 24
        )
        for structure in ("ri", "gc", "sa")
    ]
    await play(0.0, [long], 1)  # imports
    _, used, calls = await play(0.0, [long], 1)
    print(f"one tournament without latency: {calls} calls, {1000 * used / calls:.1f} ms of the processor a call")
    for latency, conditions, replicates, chain, limit in (
        (0.1, [long], 1, CHAIN, 1.3),
        (0.02, [long], 1, CHAIN, None),
        (0.5, short, 5, SHORT_CHAIN, 1.5),
    ):
        seconds, used, calls = await play(latency, conditions, replicates)
        bound = chain * latency
        aim = f" (at most {limit})" if limit else ""
        print(
            f"{len(conditions) * replicates:2} at once, calls of {1000 * latency:.0f} ms: {calls} calls in "
            f"{seconds:.1f} s, bound {bound:.1f} s, ratio {seconds / bound:.2f}{aim}; processor {used:.1f} s"
        )


if __name__ == "__main__":
    asyncio.run(main())
