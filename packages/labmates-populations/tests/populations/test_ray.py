"""Evolution on a Ray cluster of two nodes, one of which is killed under way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from labmates.api import arun, resume
from labmates.errors import UsageError
from labmates.records.events import PayoffEvent
from labmates.records.store import Store
from labmates.studies.settings import RunSettings
from labmates_populations import evolution
from labmates_populations.engine import ray_workers
from labmates_populations.engine.crew import Crew
from labmates_populations.engine.evolution import Evolution, Generation
from labmates_populations.engine.ray_workers import RayWorkers
from labmates_populations.engine.reference import reference_source
from labmates_populations.engine.workers import Batch, WorkersError
from labmates_populations.repeated import make_repeated
from tests.support.strategies import library

pytestmark = [pytest.mark.needs("ray"), pytest.mark.xdist_group("ray")]
SLOW = pytest.mark.slow("packages/labmates-populations/tests")

BODIES = {
    "collective": "return C if random.random() < 0.8 else D",
    "exploitative": "return D if history.round_number == 0 or history.opponent_cooperators[-1] > 1 else C",
}
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
EVOLUTION: dict[str, Any] = {
    "game": "public-goods", "population": 64, "elite": 16, "games": 64, "rounds": 5, "generations": 40, "threshold": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster(ray_environment: None) -> Iterator[Any]:
    """A cluster of one node, with this process connected to it."""
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args=NODE)
    ray.init(made.address, log_to_driver=False, logging_level="CRITICAL")
    yield made
    ray.shutdown()
    made.shutdown()


async def until_events(store: Store, number: int, going: asyncio.Task[Any]) -> str:
    """Wait until a run has so many generations; its id."""
    while not going.done():
        for run in store.runs():
            if sum(isinstance(event, PayoffEvent) for event in store.events(run.id)) >= number:
                return run.id
        await asyncio.sleep(0.05)
    raise AssertionError(f"the run ended: {going.result()}")


def events(store: Store, run: str) -> list[Any]:
    found = [event for event in store.events(run) if isinstance(event, PayoffEvent)]
    return [(event.step, event.payoffs, event.details) for event in found]


@SLOW
async def test_a_lost_node_changes_nothing_and_an_interrupted_evolution_resumes(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategies = str(library(tmp_path / "library", "public-goods", one=BODIES, two=BODIES))
    settings = RunSettings(executor=f"ray:{cluster.address}")
    with Store(f"sqlite:///{tmp_path}/local.db") as here, Store(f"sqlite:///{tmp_path}/ray.db") as there:
        [local] = await arun("evolution", store=here.url, settings={"processes": 1}, strategies=strategies, **EVOLUTION)
        removed, cancelled = threading.Event(), threading.Event()

        def held(self: Evolution, number: int, *others: Any, play: Any = Evolution.played) -> Generation:
            for at, happened in ((3, removed), (10, cancelled)):
                assert number != at or happened.wait(300)
            return cast("Generation", play(self, number, *others))

        monkeypatch.setattr(Evolution, "played", held)
        monkeypatch.setattr(evolution, "_FLUSH_SECONDS", 0.0)
        lost = cluster.add_node(**NODE)
        going = asyncio.create_task(
            arun("evolution", store=there.url, settings=settings, strategies=strategies, **EVOLUTION)
        )
        await until_events(there, 2, going)
        await asyncio.to_thread(cluster.remove_node, lost, allow_graceful=False)
        removed.set()
        run = await until_events(there, 5, going)
        going.cancel()
        cancelled.set()
        with pytest.raises(asyncio.CancelledError):
            await going
        assert 5 <= len(events(there, run)) < EVOLUTION["generations"]
        [resumed] = await asyncio.to_thread(resume, [run], store=there.url)
        assert resumed.status == "completed", resumed.error
        assert events(there, run) == events(here, local.id)
        assert resumed.metrics == local.metrics


@SLOW
def test_without_a_free_processor_the_reason_is_said(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    game = make_repeated("collective-risk", 2, 1)
    with RayWorkers(ray) as first, RayWorkers(ray) as second:
        for workers in (first, second):
            workers.load("reference", reference_source(["cooperate"]))
        batch = Batch(game, np.zeros((1, 2), np.int64), seed=0)
        assert first.play([batch])[0].actions.all()
        monkeypatch.setattr(ray_workers, "_PLACE_SECONDS", 1.0)
        with pytest.raises(WorkersError, match="no processor of the Ray cluster was free"):
            second.play([batch])


def test_strategies_are_checked_on_this_machine() -> None:
    with pytest.raises(UsageError, match="checked on this machine"):
        Crew(executor="ray").workers()
