"""What a pool buys: runs of the lab in memory, whose code runs in plain processes and once for the same data."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from pathlib import Path

import tests.support.wasteful  # noqa: F401 - registers two baselines
from labmates.agents.organisation_parts import REPORT
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.records.events import ArtifactEvent, ChargeEvent, LLMCallEvent
from labmates.records.recorder import Recorder
from labmates.sandboxes.base import CodeResult, Sandbox, SandboxBackend
from labmates.sandboxes.choose import choose_backend
from labmates.sandboxes.pool import SandboxPool
from labmates.workflows.protocol.services import Services
from labmates.workflows.science.experiment import SCIENCE
from labmates.workflows.science.lab.condition import ScienceCondition

TASKS = ("anomaly", "biomarker", "ecology", "geospatial")
LEAST_REPLY = 256


@dataclass(frozen=True)
class Bought:
    """What one pool bought; amounts in micro-dollars."""

    pool: int
    spent: int
    paper: bool
    cut: int
    accuracy: float
    exhausted: bool


class Remembering:
    """A back end that runs each sequence of cells on the same data once."""

    name = "unsafe-local"

    def __init__(self, backend: SandboxBackend) -> None:
        self.backend = backend
        self.known: dict[str, CodeResult] = {}

    async def open(self, data: Path | Awaitable[Path]) -> Sandbox:
        """Return a session that starts a process when it is given cells that are not known."""
        path = data if isinstance(data, Path) else await data
        return _Session(self, path)

    async def libraries(self) -> Mapping[str, str]:
        """Return the versions of the libraries."""
        return await self.backend.libraries()

    async def close(self) -> None:
        """Close the back end."""
        await self.backend.close()


class _Session:
    def __init__(self, memory: Remembering, data: Path) -> None:
        self.memory = memory
        self.data = data
        self.cells: list[str] = []
        self.key = hashlib.sha256(data.read_bytes()).hexdigest()
        self.real: Sandbox | None = None

    async def run(self, code: str, timeout: float = 30.0) -> CodeResult:
        """Run code, or tell what came of it before."""
        self.key = hashlib.sha256(f"{self.key}{code}".encode()).hexdigest()
        if self.key not in self.memory.known:
            if self.real is None:
                self.real = await self.memory.backend.open(self.data)
                for cell in self.cells:
                    await self.real.run(cell, timeout)
            self.memory.known[self.key] = await self.real.run(code, timeout)
        elif self.real is not None:
            await self.real.run(code, timeout)
        self.cells.append(code)
        return self.memory.known[self.key]

    async def close(self) -> None:
        """End the process."""
        if self.real is not None:
            await self.real.close()


async def buy(
    condition: ScienceCondition,
    seed: int,
    sandbox_pool: SandboxPool,
    folder: Path,
    options: ModelOptions = ModelOptions(),  # noqa: B008 - frozen
) -> tuple[Bought, Recorder]:
    """Execute one run in memory and return what it came to."""
    recorder = Recorder(None, None)
    async with ModelHub(options) as hub:
        services = Services(
            hub=hub,
            sandbox_pool=sandbox_pool,
            run_id="pools",
            key=condition.key,
            seed=seed,
            reply_seed=seed,
            recorder=recorder,
            folder=lambda: folder,
        )
        outcome = await SCIENCE.execute(condition, services)
    papers = [event for event in recorder.events if isinstance(event, ArtifactEvent) and event.name == REPORT]
    calls = [event for event in recorder.events if isinstance(event, LLMCallEvent)]
    bought = Bought(
        pool=condition.pool,
        spent=sum(event.amount for event in recorder.events if isinstance(event, ChargeEvent)),
        paper=bool(papers),
        cut=sum("cut" in event.faults for event in calls),
        accuracy=outcome.metrics.get("accuracy", 0.0),
        exhausted=outcome.status == "exhausted",
    )
    assert bought.spent <= bought.pool, f"overdrawn: {bought}"
    return bought, recorder


def pools(number: int, least: int = 20_000) -> list[int]:
    """Return so many pools from `least`, $0.02, to $1.00, in equal ratios, in micro-dollars."""
    return [round(least * (1_000_000 / least) ** (n / (number - 1))) for n in range(number)]


async def smallest_paper(task: str) -> int:
    """Return the price of the smallest paper call of a task, in micro-dollars.

    A run with a pool that just can't pay for more makes it: its input, and a reply of 256 tokens.
    """
    backend = Remembering(choose_backend("unsafe-local", trusted_code=True).backend)
    with tempfile.TemporaryDirectory() as folder:
        for amount in range(1_500, 6_000, 50):
            condition = ScienceCondition(task=task, model="scripted:diligent", budget=f"{amount / 1e6:.6f}")
            place = Path(tempfile.mkdtemp(dir=folder))
            bought, recorder = await buy(condition, 0, SandboxPool(backend, 4), place)
            if bought.paper:
                [call] = [event for event in recorder.events if isinstance(event, LLMCallEvent)]
                return condition.prices.of(condition.model).cost(call.input_tokens, LEAST_REPLY)
    raise AssertionError("no paper for $0.006")
