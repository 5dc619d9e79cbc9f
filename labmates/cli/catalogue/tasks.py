"""``labmates tasks``: list and show science tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pydantic import Field

from labmates.tasks.base import Difficulty, accuracy
from labmates.tasks.registry import TASKS, get_task
from labmates.tasks.salt import data_seed
from labmates.workflows.protocol.analysis import Result
from labmates.workflows.protocol.catalogue import Facts, Named, catalogue
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.tasks.base import Dataset, Task
    from labmates.workflows.protocol.command import Lab


class ShowParams(Named):
    """A task with a sample of its data."""

    seed: int = Field(0, ge=0, description="Seed of the sample shown.")
    difficulty: Difficulty = Field("medium", description="Difficulty of the sample.")


def show(_lab: Lab, params: ShowParams) -> Iterator[Result]:
    """Show a task: the agents' brief, the findings to state, the first rows of a sample, and the score of a guess."""
    from labmates.tasks.schema import findings_schema_text

    task = get_task(params.name)
    with TASKS.guarded(params.name, "can't be shown"):
        sample = task.generate(data_seed(params.seed), params.difficulty)
        parts = {
            f"{task.title} ({task.name}, version {task.version})": task.brief,
            "The data": sample.description,
            "Findings to state": findings_schema_text(task),
            f"A sample (seed {params.seed}, {params.difficulty}): {len(sample.frame)} rows": (
                sample.frame.head(8).to_string()
            ),
            "Score of a guess": _guessing(task, sample, params.difficulty),
        }
    yield Result((), verdict=[f"{title}\n{text}\n" for title, text in parts.items()])


def _guessing(task: Task[Any, Any], sample: Dataset[Any], difficulty: Difficulty) -> str:
    """The prior's statement, and its score on a sample."""
    stated = task.prior(sample.columns, difficulty)
    earned = accuracy(task.score(stated, sample.truth))
    block = stated.model_dump_json(exclude_none=True)
    return f"A guess without the data: {block}\nIt earns {earned:.3f} on the sample, which is a skill of 0."


def _facts(name: str) -> Facts:
    task = get_task(name)
    return {"title": task.title, "version": task.version}


TASKS_COMMAND = catalogue(
    "List the science tasks, or show one.",
    TASKS,
    _facts,
    {
        "show": Command(show, ShowParams, example="labmates tasks show ecology --seed 3"),
    },
    example="labmates tasks show ecology",
    objects="per task",
)
