"""Sandboxes for the agents of many runs: a bounded number at once, warmed up ahead, restored when an agent comes back.

An agent's sandbox lives as long as its step of work. When the agent works again (its team was asked for more, a person
has answered, or the run was resumed), its earlier code runs again in a new sandbox, which restores its variables.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labmates.sandboxes.base import CodeResult, Sandbox, SandboxBackend

_log = logging.getLogger(__name__)

SANDBOX_BYTES = 2 * 1024**3
"""Memory that one sandbox may use."""


def default_sandboxes() -> int:
    """The number of sandboxes this machine's memory holds if each uses all that it may; at least 3."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(3, memory // SANDBOX_BYTES)


_TRIALS = 3
"""How many sandboxes are warmed up for a model of which nothing is known yet: those of one team."""


@dataclass
class _Habit:
    """How often agents of one model ran code in this process."""

    steps: int = 0
    with_code: int = 0
    warmed: int = 0
    seen: bool = False

    @property
    def is_worth_a_sandbox(self) -> bool:
        if self.steps:
            return self.with_code * 2 >= self.steps
        return self.seen or self.warmed < _TRIALS


_HABITS: dict[str, _Habit] = {}
"""By model, in all sessions of this process."""


class SandboxPool:
    """The sandboxes that all runs of a session share.

    Parameters
    ----------
    backend
        Where they come from.
    most
        How many may be open at once.
    """

    def __init__(self, backend: SandboxBackend, most: int) -> None:
        self.backend = backend
        self._places = asyncio.Semaphore(most)
        self.benches: list[RunSandboxes] = []

    def sandboxes(self, write: Callable[[str], Coroutine[Any, Any, Path]]) -> RunSandboxes:
        """The sandboxes of one run, in which an agent's data are the CSV file that `write` makes for it."""
        sandboxes = RunSandboxes(self, write)
        self.benches.append(sandboxes)
        return sandboxes

    @property
    def has_place(self) -> bool:
        """Whether a sandbox could be opened without waiting."""
        return not self._places.locked()

    async def open(self, data: Path | Awaitable[Path]) -> Sandbox:
        """Open a sandbox that is needed now, when there is a place for it.

        One that was warmed up for later makes way for it. Else agents could wait without end for places that are kept
        for those whose turn comes after theirs.
        """
        if not self.has_place:
            any(sandboxes.make_way() for sandboxes in reversed(self.benches))
        await self._places.acquire()
        try:
            return await self.backend.open(data)
        except BaseException:
            self._places.release()
            raise

    async def close(self, sandbox: Sandbox) -> None:
        """Close a sandbox and free its place."""
        try:
            await sandbox.close()
        finally:
            self._places.release()


@dataclass(eq=False)
class _Warm:
    """A sandbox that is warmed up, for which there may be no place when its turn comes."""

    opening: asyncio.Task[Sandbox | None] = field(init=False)
    has_place: bool = False  # it is being opened, or open


class RunSandboxes:
    """The sandboxes of one run, by agent."""

    def __init__(self, pool: SandboxPool, write: Callable[[str], Coroutine[Any, Any, Path]]) -> None:
        self.pool = pool
        self._write = write
        self._data: dict[str, asyncio.Task[Path]] = {}
        self._warm: dict[str, _Warm] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def warm_up(self, agents: Sequence[str], model: str) -> None:
        """Start sandboxes ahead of the agents' first code, if there is a place and their model tends to run code.

        They start when those that were asked for earlier have: starts that compete for processors end late together.
        """
        habit = _HABITS.setdefault(model, _Habit())
        earlier = [warm.opening for warm in self._warm.values()]
        for agent in agents:
            if agent not in self._warm and self.pool.has_place and habit.is_worth_a_sandbox:
                habit.warmed += 1
                warm = self._warm[agent] = _Warm()
                warm.opening = asyncio.create_task(self._open_after(earlier, agent, warm))

    def make_way(self) -> bool:
        """Close the sandbox that was warmed up last to make room; False if there is none."""
        for agent, warm in reversed(self._warm.items()):
            if warm.has_place:
                del self._warm[agent]
                self._closing.add(asyncio.create_task(self._discard(warm)))
                return True
        return False

    async def _open(self, agent: str) -> Sandbox:
        if agent not in self._data:
            self._data[agent] = asyncio.create_task(self._write(agent))
        return await self.pool.open(asyncio.shield(self._data[agent]))

    async def _open_after(
        self, earlier: Sequence[asyncio.Task[Sandbox | None]], agent: str, warm: _Warm
    ) -> Sandbox | None:
        if earlier:
            await asyncio.wait(earlier)
        if not self.pool.has_place:
            return None
        warm.has_place = True
        return await self._open(agent)

    @asynccontextmanager
    async def session(self, agent: str, model: str, earlier: Sequence[str], timeout: float) -> AsyncIterator[Session]:
        """Give an agent a session for one step of work.

        Parameters
        ----------
        earlier
            Code that the agent ran in earlier steps and that has to run again first.
        timeout
            Time limit of one piece of code, in seconds.
        """
        habit = _HABITS.setdefault(model, _Habit())
        session = Session(self, agent, earlier, timeout, habit)
        try:
            yield session
        finally:
            habit.steps += 1
            habit.with_code += session.used
            # Only the end of the run waits for it.
            self._closing.add(asyncio.create_task(self._end(agent, session)))

    async def take(self, agent: str) -> Sandbox:
        """The agent's warm sandbox, or open one."""
        warm = self._warm.pop(agent, None)
        if warm is None:
            return await self._open(agent)
        try:
            return await warm.opening or await self._open(agent)
        except asyncio.CancelledError:
            self._warm[agent] = warm
            raise

    async def close(self) -> None:
        """Close the sandboxes that were warmed up and never taken."""
        for agent in list(self._warm):
            await self._cool_down(agent)
        for closed in await asyncio.gather(*self._closing, return_exceptions=True):
            if isinstance(closed, BaseException):
                _log.warning("a sandbox could not be closed: %s", closed)
        self.pool.benches.remove(self)
        # The opener of a sandbox got the error if the data could not be written; nothing else needs them.
        await asyncio.gather(*self._data.values(), return_exceptions=True)

    async def _end(self, agent: str, session: Session) -> None:
        await session.close()
        await self._cool_down(agent)

    async def _cool_down(self, agent: str) -> None:
        if (warm := self._warm.pop(agent, None)) is not None:
            await self._discard(warm)

    async def _discard(self, warm: _Warm) -> None:
        warm.opening.cancel()
        with suppress(asyncio.CancelledError, Exception):
            if (sandbox := await warm.opening) is not None:
                await self.pool.close(sandbox)


@dataclass(eq=False)
class Session:
    """One agent's session in one step of work; its sandbox is taken with the first code."""

    bench: RunSandboxes
    agent: str
    earlier: Sequence[str]  # code of earlier steps
    timeout: float
    habit: _Habit
    _sandbox: Sandbox | None = field(default=None, init=False)

    @property
    def used(self) -> bool:
        """Whether any code was run."""
        return self._sandbox is not None

    async def run(self, code: str) -> CodeResult:
        """Run code, in a sandbox in which the agent's earlier code has run."""
        if self._sandbox is None:
            self.habit.seen = True
            self._sandbox = await self.bench.take(self.agent)
            for cell in self.earlier:
                await self._sandbox.run(cell, self.timeout)
        return await self._sandbox.run(code, self.timeout)

    async def close(self) -> None:
        """Close the sandbox."""
        if self._sandbox is not None:
            await self.bench.pool.close(self._sandbox)
