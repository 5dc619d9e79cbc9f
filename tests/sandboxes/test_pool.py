"""Places for sandboxes: those that are needed now go before those that are warmed up ahead."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.errors import GraphInterrupt

from labmates.sandboxes.base import CodeResult, Sandbox, SandboxError
from labmates.sandboxes.pool import RunSandboxes, SandboxPool

PATIENCE = 20.0
Member = tuple[int, int]
MEMBER = st.tuples(st.sampled_from([0, 5, 50]), st.integers(0, 2))


@pytest.fixture(autouse=True)
def warming(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warm up, though runs in tests usually don't."""
    monkeypatch.setattr("labmates.sandboxes.pool._TRIALS", 3)


class Counted:
    """A back end that counts what is open, and starts nothing."""

    name = "counted"

    def __init__(self) -> None:
        self.open_now = self.most = self.failures = 0

    async def open(self, data: Path | Awaitable[Path]) -> Sandbox:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise SandboxError("it did not start")
        self.open_now += 1
        self.most = max(self.most, self.open_now)
        return CountedSandbox(self)

    async def libraries(self) -> Mapping[str, str]:
        return {}

    async def close(self) -> None:
        assert self.open_now == 0


class CountedSandbox:
    def __init__(self, backend: Counted) -> None:
        self._backend = backend
        self._ran = 0

    async def run(self, code: str, timeout: float = 30.0) -> CodeResult:
        await asyncio.sleep(0)
        self._ran += 1
        return CodeResult("ok", str(self._ran))

    async def close(self) -> None:
        await asyncio.sleep(0)
        self._backend.open_now -= 1


def bench_of(sandbox_pool: SandboxPool) -> RunSandboxes:
    async def written(agent: str) -> Path:
        return Path("data.csv")

    return sandbox_pool.sandboxes(written)


async def settle() -> None:
    """Let everything happen that waits for nothing."""
    for _ in range(50):
        await asyncio.sleep(0)


async def work(sandboxes: RunSandboxes, agent: str, cells: int, *, thinks: int = 0, after: Sequence[str] = ()) -> None:
    """Run some code, after some time, and warm up for those whose turn comes after, as a member of a team does."""
    async with sandboxes.session(agent, "model", [], 1.0) as session:
        for _ in range(thinks):
            await asyncio.sleep(0)
        for _ in range(cells):
            await session.run("1")
            sandboxes.warm_up(after, "model")


async def test_sandboxes_warmed_up_for_later_make_way_for_one_that_is_needed_now() -> None:
    backend = Counted()
    sandboxes = bench_of(SandboxPool(backend, most=2))
    async with sandboxes.session("data_lead", "model", [], 1.0) as first:
        await first.run("1")
        sandboxes.warm_up(["ml_engineer", "statistician"], "model")
        await settle()
        assert backend.open_now == 2
    # All places are those of agents whose turn comes when this one has ended.
    await asyncio.wait_for(work(sandboxes, "data_engineer", 1), PATIENCE)
    await sandboxes.close()
    await backend.close()


async def test_another_runs_warm_sandboxes_make_way_too() -> None:
    backend = Counted()
    sandbox_pool = SandboxPool(backend, most=2)
    early, late = bench_of(sandbox_pool), bench_of(sandbox_pool)
    early.warm_up(["ml_engineer", "statistician"], "model")
    await settle()
    assert backend.open_now == 2
    await asyncio.wait_for(asyncio.gather(*(work(late, f"agent {n}", 2) for n in range(3))), PATIENCE)
    await asyncio.wait_for(work(early, "ml_engineer", 1), PATIENCE)
    await late.close()
    await early.close()
    await backend.close()


async def test_no_session_of_a_process_warms_up_for_a_model_that_ran_no_code_in_an_earlier_one() -> None:
    backend = Counted()
    for model, cells, warm in [("idle", 0, 0), ("busy", 1, 1)]:
        before = bench_of(SandboxPool(backend, most=2))
        async with before.session("agent", model, [], 1.0) as session:
            for _ in range(cells):
                await session.run("1")
        await before.close()
        assert backend.open_now == 0
        after = bench_of(SandboxPool(backend, most=2))
        after.warm_up(["agent"], model)
        await settle()
        assert backend.open_now == warm
        await after.close()
    await backend.close()


async def test_a_warm_sandbox_that_did_not_start_keeps_no_place() -> None:
    backend = Counted()
    backend.failures = 1
    sandboxes = bench_of(SandboxPool(backend, most=1))
    sandboxes.warm_up(["data_lead"], "model")
    await settle()
    with pytest.raises(SandboxError):
        await work(sandboxes, "data_lead", 1)
    await asyncio.wait_for(work(sandboxes, "data_engineer", 1), PATIENCE)
    await sandboxes.close()
    await backend.close()


async def test_an_interrupted_step_frees_its_place_and_its_code_runs_again_first() -> None:
    backend = Counted()
    sandboxes = bench_of(SandboxPool(backend, 1))

    async def interrupt(earlier: Sequence[str] = ()) -> str:
        with suppress(GraphInterrupt):
            async with sandboxes.session("ana", "model", earlier, 1.0) as session:
                ran = (await session.run("1")).text
                raise GraphInterrupt
        return ran

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(interrupt(), work(sandboxes, "ben", 1))
        assert await interrupt(["1"]) == "2"
    await sandboxes.close()
    await backend.close()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    most=st.integers(1, 3),
    runs=st.lists(st.lists(st.tuples(MEMBER, MEMBER), min_size=1, max_size=4), min_size=1, max_size=3),
)
def test_runs_never_wait_for_each_other_without_end(most: int, runs: list[list[tuple[Member, Member]]]) -> None:
    """`runs` has the two members of each team of each run: how long each thinks first, and how many cells it runs."""

    async def run(sandbox_pool: SandboxPool, teams: list[tuple[Member, Member]]) -> None:
        sandboxes = bench_of(sandbox_pool)
        for number, members in enumerate(teams):
            sandboxes.warm_up([f"{number}/0", f"{number}/1"], "model")
            after = [f"{number + 1}/0", f"{number + 1}/1"]
            await asyncio.gather(
                *(
                    work(sandboxes, f"{number}/{n}", cells, thinks=t, after=after)
                    for n, (t, cells) in enumerate(members)
                )
            )
        await sandboxes.close()

    async def all_runs() -> None:
        backend = Counted()
        sandbox_pool = SandboxPool(backend, most)
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*(run(sandbox_pool, teams) for teams in runs))
        assert backend.most <= most
        await backend.close()

    asyncio.run(all_runs())
