"""What the lab adds to its calls and its code: one run against its own critical path, and 32 runs at once against one.

The model is a scripted baseline that takes 100 ms for each reply. The critical path of a run is what it would take if
nothing but model calls and code took time: in each phase the plan, then the slowest member's calls and code, the
deliberation, and the writing.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Sequence
from typing import Any, ClassVar

from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatResult

from labmates.api import arun
from labmates.errors import LabmatesError
from labmates.models.scripted import BASELINES
from labmates.records.events import LLMCallEvent, ToolCallEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.sandboxes.choose import choose_backend
from labmates.workflows.science.baselines.diligent import Diligent
from labmates.workflows.science.baselines.hasty import Silent

LATENCY, RUNS = 0.1, 32
BACKENDS = ("unsafe-local", "bubblewrap", "docker")


class SlowDiligent(Diligent):
    """Diligent, with 100 ms for each reply."""

    baseline: ClassVar[str] = "slow-diligent"

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        await asyncio.sleep(LATENCY)
        return await super()._agenerate(messages, *args, **kwargs)


class SlowSilent(Silent):
    """Silent, with 100 ms for each reply: no code runs, so all the rest is the lab's own."""

    baseline: ClassVar[str] = "slow-silent"

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        await asyncio.sleep(LATENCY)
        return await super()._agenerate(messages, *args, **kwargs)


def critical_path(store: Store, run: RunRecord) -> float:
    """Return the seconds that the calls and the code of a run take one after the other where they must."""
    work: dict[str, dict[str, float]] = {}
    alone = 0.0
    for event in store.events(run.id):
        if not isinstance(event, LLMCallEvent | ToolCallEvent):
            continue
        team, number, agent, step = event.step.split("/")[:4]
        if step == "work":
            members = work.setdefault(f"{team}/{number}", {})
            members[agent] = members.get(agent, 0.0) + event.seconds
        else:
            alone += event.seconds
    return alone + sum(max(members.values()) for members in work.values())


async def execute(
    store: Store, model: str, runs: int, sandbox: str = "auto"
) -> tuple[float, float, Sequence[RunRecord]]:
    """The wall time and the processor time of so many runs at once, in seconds, and their records."""
    gc.collect()
    start, used = time.perf_counter(), time.process_time()
    settings = {"max_concurrent_runs": runs, "sandbox": sandbox}
    done = await arun("science", store=store.url, settings=settings, replicates=runs, task="anomaly", model=model)
    return time.perf_counter() - start, time.process_time() - used, done


def is_here(sandbox: str) -> bool:
    """Whether this machine has a back end; says why not."""
    try:
        choose_backend(sandbox, trusted_code=True)
    except LabmatesError as error:
        print(f"{sandbox} is left out: {error}")
        return False
    return True


async def main() -> None:
    BASELINES.register("slow-diligent", SlowDiligent)
    BASELINES.register("slow-silent", SlowSilent)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"sqlite:///{folder}/bench.db")
        await execute(store, "scripted:slow-silent", 1)
        coding = [("scripted:slow-diligent", sandbox) for sandbox in BACKENDS if is_here(sandbox)]
        for model, sandbox in [("scripted:slow-silent", "auto"), *coding]:
            *_, [run] = await execute(store, model, 1, sandbox)
            path = critical_path(store, run)
            where = f"{model}, code in {run.sandbox}" if run.sandbox else f"{model}, no code"
            print(f"{where}: one run {run.seconds:.2f} s, critical path {path:.2f} s, ratio {run.seconds / path:.3f}")
        one, *_ = await execute(store, "scripted:slow-silent", 1)
        many, used, done = await execute(store, "scripted:slow-silent", RUNS)
        a_call = used / sum(run.usage.llm_calls for run in done)
        print(
            f"{RUNS} runs at once {many:.2f} s, one {one:.2f} s, ratio {many / one:.2f}; "
            f"{1000 * a_call:.2f} ms of processor time a call"
        )
        store.close()


if __name__ == "__main__":
    asyncio.run(main())
