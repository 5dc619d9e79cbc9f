"""Ended runs with a report of our choice, put into a store without executing the lab."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent, Event, LLMCallEvent
from labmates.records.run import RunRecord, RunStatus, Usage
from labmates.records.store import Store
from labmates.studies.runs import new_runs
from labmates.studies.settings import RunSettings
from labmates.tasks.registry import get_task
from labmates.util.seeds import derive
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates_author.tasks.report import oracle_report


@cache
def right_report(task: str = "anomaly", seed: int = 0) -> str:
    """Return the report that states the truth of a run's data set."""
    generated = get_task(task).generate(derive(seed, "dataset"), "easy")
    return oracle_report(get_task(task), generated.truth)


def fresh_run(*, seed: int = 0, task: str = "anomaly", study: str | None = None, **condition: Any) -> RunRecord:
    """Return a run that stands in no store yet."""
    wanted = ScienceCondition(**{"task": task, "model": "scripted:hasty", "difficulty": "easy", **condition})
    [run] = new_runs(wanted, seed=seed, replicates=1, settings=RunSettings(), study=study)
    return run


def ended_run(
    store: Store,
    text: str | None = None,
    *,
    seed: int = 0,
    task: str = "anomaly",
    status: RunStatus = "completed",
    study: str | None = None,
    more: Sequence[Event] = (),
    **condition: Any,
) -> RunRecord:
    """Put a run that has ended into the store; by default its paper states the truth.

    Parameters
    ----------
    text
        The paper; an empty one is not written at all.
    more
        Further events.
    """
    run = replace(
        fresh_run(seed=seed, task=task, study=study, **condition),
        replicate=seed,
        status=status,
        usage=Usage(llm_calls=1, input_tokens=10, output_tokens=5),
        metrics={"phases": 4.0},
    )
    bodies = Bodies()
    paper = right_report(task, seed) if text is None else text
    call = LLMCallEvent(
        model="scripted:hasty",
        messages=[],
        reply=bodies.keep({"role": "assistant", "content": "said"}),
        finish="stop",
        input_tokens=10,
        output_tokens=5,
        seed=0,
    )
    events: list[Event] = [call]
    if paper:
        written = bodies.keep(paper)
        events.append(
            ArtifactEvent(team="writing", agent="lead_author", name="final_paper", version=1, content=written)
        )
    store.create(run)
    store.add(run.id, list(enumerate([*events, *more])), bodies.take_new())
    return run
