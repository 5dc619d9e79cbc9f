"""What a pool buys: 25 pools from $0.02 to $1.00, all tasks, with the reserve for the artifacts and without.

Run by hand::

    python -m benchmarks.pools --seeds 3 --output pools.csv

With the reserve,

1. there is a paper in every run that could afford one: whose pool is at least the price of the smallest paper call (the
   order with its material cut as far as it ever is, and a reply of 256 tokens), which the benchmark measures;
2. no larger pool ends without a paper where a smaller one had one (the same task, model and seed);
3. accuracy does not fall when money rises, beyond noise. For each task and model: in the mean over seeds, the largest
   fall from a pool to a larger one, and the paired differences of that fall over the seeds. It is beyond noise if it
   is more than 0.05 and the one-sided 95 % t-bound of its mean, corrected for the number of pairs of pools
   (Bonferroni), is above 0. Spearman's correlation of pool and mean accuracy stands beside it.

Code runs in plain processes; a session that runs the same cells on the same data again is answered from memory.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import hashlib
import itertools
import math
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from scipy import stats

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
MODELS = ("scripted:diligent", "scripted:talkative")
LEAST_REPLY = 256
FALL = 0.05


@dataclass(frozen=True)
class Bought:
    """What one pool bought; amounts in micro-dollars, lengths in characters."""

    task: str
    model: str
    reserve: str
    seed: int
    pool: int
    spent: int
    paper: bool
    length: int
    partial: int
    cut: int
    accuracy: float
    exhausted: bool = False


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
        task=condition.task,
        model=condition.model,
        reserve="default" if condition.reserve is None else "0",
        seed=seed,
        pool=condition.pool,
        spent=sum(event.amount for event in recorder.events if isinstance(event, ChargeEvent)),
        paper=bool(papers),
        length=len(recorder.bodies.text(papers[-1].content)) if papers else 0,
        partial=sum(event.partial for event in recorder.events if isinstance(event, ArtifactEvent)),
        cut=sum("cut" in event.faults for event in calls),
        accuracy=outcome.metrics.get("accuracy", 0.0),
        exhausted=outcome.status == "exhausted",
    )
    assert bought.spent <= bought.pool, f"overdrawn: {bought}"
    return bought, recorder


def pools(number: int, least: int = 20_000) -> list[int]:
    """Return so many pools from `least`, $0.02, to $1.00, in equal ratios, in micro-dollars."""
    return [round(least * (1_000_000 / least) ** (n / (number - 1))) for n in range(number)]


def sweep(task: str, models: Sequence[str], seeds: Sequence[int], amounts: Sequence[int], plain: int) -> list[Bought]:
    """Execute all runs of one task; those without a reserve for the first `plain` seeds only."""
    return asyncio.run(sweep_task(task, models, seeds, amounts, plain))


async def sweep_task(
    task: str, models: Sequence[str], seeds: Sequence[int], amounts: Sequence[int], plain: int
) -> list[Bought]:
    """Execute all runs of one task, one after the other."""
    backend = Remembering(choose_backend("unsafe-local", trusted_code=True).backend)
    sandbox_pool = SandboxPool(backend, 4)
    bought: list[Bought] = []
    with tempfile.TemporaryDirectory() as folder:
        for seed, model, amount in itertools.product(seeds, models, sorted(amounts, reverse=True)):
            for reserve in (None, "0")[: 2 if seed in seeds[:plain] else 1]:
                condition = ScienceCondition(task=task, model=model, budget=f"{amount / 1e6:.6f}", reserve=reserve)
                place = Path(tempfile.mkdtemp(dir=folder))
                bought.append((await buy(condition, seed, sandbox_pool, place))[0])
        await backend.close()
    return bought


async def smallest_paper(task: str) -> int:
    """Return the price of the smallest paper call of a task, in micro-dollars.

    A run with a pool that just can't pay for more makes it: its input, and a reply of 256 tokens.
    """
    backend = Remembering(choose_backend("unsafe-local", trusted_code=True).backend)
    with tempfile.TemporaryDirectory() as folder:
        for amount in range(1_500, 6_000, 50):
            condition = ScienceCondition(task=task, model=MODELS[0], budget=f"{amount / 1e6:.6f}")
            place = Path(tempfile.mkdtemp(dir=folder))
            bought, recorder = await buy(condition, 0, SandboxPool(backend, 4), place)
            if bought.paper:
                [call] = [event for event in recorder.events if isinstance(event, LLMCallEvent)]
                return condition.prices.of(condition.model).cost(call.input_tokens, LEAST_REPLY)
    raise AssertionError("no paper for $0.006")


@dataclass(frozen=True)
class Verdict:
    """What one task and model came to.

    Attributes
    ----------
    papers
        Number of runs with a paper.
    reversals
        Pairs of pools of one seed of which the larger ended without a paper and the smaller had one.
    fall
        The largest fall of the mean accuracy from a pool to a larger one.
    bound
        Lower end of what the fall is beyond noise.
    """

    runs: int
    papers: int
    reversals: int
    spearman: float
    fall: float
    bound: float

    @property
    def falls(self) -> bool:
        """Whether accuracy falls beyond noise."""
        return self.fall > FALL and self.bound > 0


def judge(bought: Iterable[Bought]) -> Verdict:
    """Judge the runs of one task, model and reserve."""
    series: dict[int, list[Bought]] = defaultdict(list)
    for one in sorted(bought, key=lambda one: one.pool):
        series[one.seed].append(one)
    amounts = [one.pool for one in next(iter(series.values()))]
    rows = [[one.accuracy for one in runs] for runs in series.values()]
    means = [statistics.fmean(column) for column in zip(*rows, strict=True)]
    pairs = list(itertools.combinations(range(len(amounts)), 2))
    low, high = max(pairs, key=lambda pair: means[pair[0]] - means[pair[1]])
    fall = means[low] - means[high]
    return Verdict(
        runs=sum(map(len, rows)),
        papers=sum(one.paper for runs in series.values() for one in runs),
        reversals=sum(a.paper and not b.paper for runs in series.values() for a, b in itertools.combinations(runs, 2)),
        spearman=float(stats.spearmanr(amounts, means).statistic) if len(set(means)) > 1 else 0.0,
        fall=max(0.0, fall),
        bound=_bound([row[low] - row[high] for row in rows], len(pairs)),
    )


def _bound(differences: Sequence[float], pairs: int) -> float:
    """Return the one-sided 95 % bound of the mean, corrected for so many pairs; with one seed, the mean itself."""
    mean = statistics.fmean(differences)
    if len(differences) < 2:
        return mean
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    quantile = float(stats.t.ppf(1 - 0.05 / pairs, len(differences) - 1))
    return mean - quantile * error


def main() -> None:
    """Run the sweep and print its tables."""
    parser = argparse.ArgumentParser(description="What a pool buys, with and without a reserve for the artifacts.")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of each condition")
    parser.add_argument("--plain-seeds", type=int, default=1, help="seeds that also run with a reserve of 0")
    parser.add_argument("--pools", type=int, default=25, help="pools from $0.02 to $1.00")
    parser.add_argument("--output", type=Path, help="CSV file with a row for each run")
    asked = parser.parse_args()
    seeds, amounts = range(asked.seeds), pools(asked.pools)
    prices = {task: asyncio.run(smallest_paper(task)) for task in TASKS}
    print("smallest paper call:", ", ".join(f"{task} ${price / 1e6:.4f}" for task, price in prices.items()))
    with ProcessPoolExecutor(min(len(TASKS), os.cpu_count() or 1)) as executor:
        jobs = [executor.submit(sweep, task, MODELS, seeds, amounts, asked.plain_seeds) for task in TASKS]
        bought = [one for job in jobs for one in job.result()]
    if asked.output:
        with asked.output.open("w", newline="") as file:
            writer = csv.DictWriter(file, [field.name for field in fields(Bought)])
            writer.writeheader()
            writer.writerows(map(asdict, bought))
    sys.exit(0 if report(bought, prices) else 1)


def report(bought: Sequence[Bought], prices: dict[str, int]) -> bool:
    """Print the tables; return whether all that the reserve promises holds."""
    groups: dict[tuple[str, str, str], list[Bought]] = defaultdict(list)
    for one in bought:
        groups[one.task, one.model, one.reserve].append(one)
    holds = True
    print(f"{'task':11}{'model':20}{'reserve':9}papers  could  reversals  cut  partial  spearman   fall  bound")
    for (task, model, reserve), runs in sorted(groups.items()):
        verdict = judge(runs)
        could = sum(one.pool >= prices[task] for one in runs)
        cut, partial = sum(one.cut for one in runs), sum(one.partial for one in runs)
        print(
            f"{task:11}{model:20}{reserve:9}{verdict.papers:6}{could:7}{verdict.reversals:11}{cut:5}{partial:9}"
            f"{verdict.spearman:10.3f}{verdict.fall:7.3f}{verdict.bound:7.3f}{'  FALLS' if verdict.falls else ''}"
        )
        if reserve != "0":
            holds &= verdict.papers == could and not verdict.reversals and not verdict.falls
    print("\nmean accuracy by pool (all tasks and seeds; first seeds where the reserve is 0)")
    for amount in sorted({one.pool for one in bought}):
        cells = [
            (statistics.fmean(one.accuracy for one in here), sum(one.paper for one in here), len(here))
            for model, reserve in itertools.product(MODELS, ("default", "0"))
            if (here := [one for one in bought if (one.pool, one.model, one.reserve) == (amount, model, reserve)])
        ]
        print(f"${amount / 1e6:.4f}  " + "  ".join(f"{mean:.3f} ({papers}/{all_})" for mean, papers, all_ in cells))
    return holds


if __name__ == "__main__":
    main()
