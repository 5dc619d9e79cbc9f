"""Environments of verifiers (0.4): a trace for each seat, with its rewards.

    vf-eval labmates-gym --env.taskset.python /path/of/labmates/bin/python --env.taskset.split train

verifiers and labmates need different versions of openai. This module needs verifiers alone, and plays through a process
of the Python environment that has labmates (`labmates_gym.serve`).
"""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Iterator
from typing import Any, Literal
from uuid import uuid4

import verifiers.v1 as vf
from openai import AsyncOpenAI
from pydantic import Field

Json = dict[str, Any]
_LONGEST_LINE = 1 << 26
_SERVE = ("-m", "labmates_gym.serve")


class EpisodeData(vf.TaskData):
    """One episode, or a seat of it.

    Attributes
    ----------
    seat, table
        For a seat: its name, and the key of the open episode.
    """

    kind: str
    condition: Json
    split: str
    seed: int
    seat: str = ""
    table: str = ""


class EpisodeTask(vf.Task[EpisodeData]):
    """An episode as a task; its environment records the rewards."""


class GymTasksetConfig(vf.TasksetConfig):
    """Which episodes to play.

    Attributes
    ----------
    python
        The Python of the environment that has labmates.
    kinds
        Kinds of experiments; by default all.
    seeds
        Episodes of each environment.
    """

    python: str = "python"
    split: Literal["train", "framing", "game"] = "train"
    kinds: list[str] = Field(default_factory=list)
    seeds: int = 1


class GymTaskset(vf.Taskset[EpisodeTask, GymTasksetConfig]):
    """The environments of a split of `labmates_gym.catalog`."""

    def load(self) -> Iterator[EpisodeTask]:
        """The episodes, by environment and seed."""
        request = json.dumps({"do": "list", "split": self.config.split})
        command = [self.config.python, *_SERVE]
        done = subprocess.run(command, input=request, capture_output=True, text=True)  # noqa: S603
        if done.returncode:
            raise RuntimeError(f"python: {self.config.python} can't serve environments: {done.stderr.strip()[-500:]}")
        for listed in json.loads(done.stdout)["environments"]:
            if self.config.kinds and listed["kind"] not in self.config.kinds:
                continue
            for seed in range(self.config.seeds):
                yield EpisodeTask(EpisodeData(**listed, seed=seed, prompt=_PROMPT), self.config.task)


_PROMPT = "A seat of an environment of labmates, which sends a prompt for each decision."
"""Of an episode; models are sent the prompts of the engine."""


class Table:
    """An open episode in a separate process.

    It goes on when all seats that are asked have replied. A seat that has left replies nothing, and the engine's
    fallbacks act for it.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._changed = asyncio.Condition()
        self._left: set[str] = set()
        self._asked: Json = {}
        self._replies: Json = {}
        self.seats: list[str] = []
        self.end: Json | None = None

    async def send(self, **request: Any) -> None:
        """Send a request and take its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        await self._process.stdin.drain()
        line = await self._process.stdout.readline()
        answer: Json = json.loads(line) if line else {"error": "the process of labmates has ended"}
        if "error" in answer:
            raise RuntimeError(answer["error"])
        self.seats = answer.get("seats", self.seats)
        self._asked, self._replies = answer.get("asked", {}), {}
        self.end = answer if "rewards" in answer else None

    async def question(self, seat: str) -> Json | None:
        """The seat's next question; None at the end."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.end or (seat in self._asked and seat not in self._replies))
            return None if self.end else self._asked[seat]

    async def reply(self, seat: str, message: Json) -> None:
        """Answer a seat's question."""
        async with self._changed:
            self._replies[seat] = message
            await self._go_on()

    async def leave(self, seat: str) -> None:
        """Take no further part."""
        async with self._changed:
            self._left.add(seat)
            if self.end is None:
                await self._go_on()

    async def _go_on(self) -> None:
        while self.end is None:
            self._replies |= {seat: {} for seat in self._left & self._asked.keys()}
            if self._replies.keys() != self._asked.keys():
                break
            await self.send(do="step", replies=self._replies)
        self._changed.notify_all()


_OPEN: dict[str, Table] = {}
"""The open episodes of this process, by the key in the data of their seats."""


class SeatHarness(vf.Harness[vf.HarnessConfig]):
    """Asks the model for the decisions of one seat, with the engine's prompts."""

    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """See `verifiers.v1.Harness.launch`."""
        assert isinstance(data, EpisodeData)
        table = _OPEN[data.table]
        try:
            async with AsyncOpenAI(base_url=endpoint, api_key=secret) as client:
                while (question := await table.question(data.seat)) is not None:
                    tools = {"tools": question["tools"]} if question["tools"] else {}
                    completion = await client.chat.completions.create(
                        model=ctx.model, messages=question["messages"], **tools
                    )
                    await table.reply(data.seat, completion.choices[0].message.model_dump(exclude_none=True))
        finally:
            await table.leave(data.seat)
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


class GymEnvConfig(vf.EnvConfig):
    """How episodes are played.

    Attributes
    ----------
    player
        The agent on every seat.
    reward
        The reward of a trace: ``own``, ``welfare`` or ``difference``; the others are its metrics.
    max_concurrent_agents
        All seats play at the same time.
    """

    player: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())
    reward: Literal["own", "welfare", "difference"] = "own"
    max_concurrent_agents: int | None = None


class GymEnv(vf.Env[GymEnvConfig]):
    """An episode with a trace for each seat."""

    async def start(self) -> None:
        """Begin without processes; each serves one episode at a time."""
        self._idle: list[asyncio.subprocess.Process] = []
        self._ends: dict[str, Json] = {}

    async def stop(self) -> None:
        """End the processes."""
        for process in self._idle:
            await _end(process)

    async def run(self, task: vf.Task, agents: vf.Agents) -> None:
        """Play the episode: all seats at the same time."""
        process = self._idle.pop() if self._idle else await _process(self.taskset.config.python)
        key, table = uuid4().hex, Table(process)
        _OPEN[key] = table
        try:
            data = task.data
            await table.send(do="reset", kind=data.kind, condition=data.condition, seed=data.seed)
            seats = [data.model_copy(update={"seat": seat, "table": key}) for seat in table.seats]
            await asyncio.gather(*(agents.player.run(EpisodeTask(seat, task.config)) for seat in seats))
            if table.end is None:
                raise RuntimeError("the episode did not end")
            self._ends[key] = table.end
            self._idle.append(process)
        except BaseException:
            await _end(process)
            raise
        finally:
            del _OPEN[key]

    async def finalize(self, task: vf.Task, episode: vf.Episode) -> None:
        """Record each seat's rewards, and the metrics of the experiment."""
        end = self._ends.pop(episode.traces[0].task.data.table)
        for trace in episode.traces:
            for name, values in end["rewards"].items():
                record = trace.record_reward if name == self.config.reward else trace.record_metric
                record(name, values[trace.task.data.seat])
            trace.record_metrics(end["metrics"])


async def _process(python: str) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(python, *_SERVE, stdin=pipe, stdout=pipe, limit=_LONGEST_LINE)


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()


__all__ = ["GymEnv", "GymTaskset", "SeatHarness"]
