"""One run of the science lab, from its condition to its scores."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig

from labmates.agents.roles import REPORT, TEAMS
from labmates.budgets.ledger import Ledger
from labmates.budgets.money import format_dollars
from labmates.judges.base import Report, Score
from labmates.judges.registry import JUDGES
from labmates.records.events import ArtifactEvent, ChargeEvent, PhaseEvent, ScoreEvent, ToolCallEvent
from labmates.records.recorder import Recorder
from labmates.seeds import derive
from labmates.tasks.base import Dataset, Task
from labmates.tasks.registry import get_task
from labmates.tasks.schema import findings_schema_text
from labmates.workflows.calls import Caller
from labmates.workflows.kinds import Outcome
from labmates.workflows.science.condition import ScienceCondition
from labmates.workflows.science.context import LabContext
from labmates.workflows.science.lab import lab_graph
from labmates.workflows.science.state import first_state
from labmates.workflows.services import Services

JUDGES_OF_A_RUN = ("heuristic", "verified")
"""The judges that score every run when it ends; others can judge it later."""


async def execute(condition: ScienceCondition, services: Services) -> Outcome:
    """Execute one run of the lab and score it.

    Raises
    ------
    EndpointError, SandboxError
        If a model or a sandbox could not be had; what was done so far is recorded and can be gone on with.
    """
    async with opened(condition, services) as ctx:
        config = _config(condition, services)
        saver = services.saver
        begun = saver is not None and await saver.aget_tuple(config) is not None
        state = await lab_graph(saver).ainvoke(None if begun else first_state(), config, context=ctx)
        return await scored(ctx, exhausted=state["exhausted"])


@asynccontextmanager
async def opened(condition: ScienceCondition, services: Services) -> AsyncIterator[LabContext]:
    """Make the data set and open what the lab's nodes work with."""
    assert services.workshop is not None
    task = get_task(condition.task)
    dataset = await asyncio.to_thread(task.generate, derive(services.seed, "dataset"), condition.difficulty)
    # Written while the first model call goes on: only sandboxes wait for it.
    data = asyncio.create_task(asyncio.to_thread(_write_csv, dataset, services.folder / "data.csv"))
    ledger = Ledger(condition.budget)
    for event in services.recorder.events:
        if isinstance(event, ChargeEvent):
            ledger.restore(event.amount, call=event.step, team=event.team)
    caller = Caller(
        services.hub,
        services.recorder,
        seed=services.seed,
        prices=condition.prices,
        max_output_tokens=condition.max_output_tokens,
        temperature=condition.temperature,
    )
    bench = services.workshop.bench(data)
    try:
        findings = findings_schema_text(task)
        yield LabContext(condition, task, findings, dataset, ledger, caller, services.recorder, bench)
    finally:
        await asyncio.shield(bench.close())


def _write_csv(dataset: Dataset[Any], path: Path) -> Path:
    path.write_bytes(dataset.csv())
    return path


async def scored(ctx: LabContext, *, exhausted: bool) -> Outcome:
    """Let the judges score what the lab has made, and return how the run ended."""
    scores = await judge(ctx.recorder, ctx.task, ctx.dataset)
    return Outcome("exhausted" if exhausted else "completed", _metrics(ctx.recorder, scores))


async def judge(recorder: Recorder, task: Task[Any, Any], dataset: Dataset[Any]) -> list[Score]:
    """Let the judges score the run's newest report, and record what they say."""
    artifacts = newest_artifacts(recorder)
    text = artifacts.pop(REPORT, None)
    report = Report(text=text, task=task, truth=dataset.truth, artifacts=artifacts)
    scores = [score for name in JUDGES_OF_A_RUN for score in await JUDGES.get(name)().score(report)]
    for score in scores:
        recorder.emit(
            ScoreEvent(
                judge=score.judge,
                version=score.version,
                metric=score.metric,
                value=score.value,
                reason=score.reason,
                details=dict(score.details),
            )
        )
    return scores


def newest_artifacts(recorder: Recorder) -> dict[str, str]:
    """Return the newest content of every artifact of a run by name."""
    return {
        event.name: recorder.bodies.text(event.content) for event in recorder.events if isinstance(event, ArtifactEvent)
    }


def _config(condition: ScienceCondition, services: Services) -> RunnableConfig:
    """Return the graph's configuration: the thread of its checkpoints, and what a trace is called and tagged with."""
    return {
        "configurable": {"thread_id": services.run_id},
        "run_name": f"science {condition.task} {condition.model} {services.run_id}",
        "tags": ["labmates", "science", condition.task, condition.visibility],
        "metadata": {
            "run": services.run_id,
            "condition": services.key,
            "task": condition.task,
            "model": condition.model,
            "team_size": condition.team_size,
            "visibility": condition.visibility,
            "budget": format_dollars(condition.budget),
            "seed": services.seed,
        },
    }


def _metrics(recorder: Recorder, scores: list[Score]) -> Mapping[str, float]:
    values = {(score.judge, score.metric): score.value for score in scores}
    judged = {
        "completeness": values.get(("heuristic", "completeness")),
        "quality": values.get(("heuristic", "quality")),
        "accuracy": values.get(("verified", "accuracy")),
    }
    written = {event.name for event in recorder.events if isinstance(event, ArtifactEvent)}
    usage = recorder.usage()
    counted: dict[str, float] = {
        "artifacts_missing": sum(team.artifact not in written for team in TEAMS.values()),
        "phases": sum(isinstance(e, PhaseEvent) and e.status == "ended" for e in recorder.events),
        "requests": sum(e.type == "request" for e in recorder.events),
        "tool_errors": sum(isinstance(e, ToolCallEvent) and not e.ok for e in recorder.events),
        "failed_reply_rate": round(usage.failed_replies / usage.llm_calls, 6) if usage.llm_calls else 0.0,
    }
    return {**{name: value for name, value in judged.items() if value is not None}, **counted}
