"""``labmates tasks new`` and ``labmates tasks check``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from labmates.errors import UsageError
from labmates.tasks.registry import TASKS
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command
from labmates_author.commands.shown import NewParams, verdict, written
from labmates_author.scaffold import new_package

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab


class NewTaskParams(NewParams):
    """A package with a task."""

    csv: Path | None = Field(None, description="CSV file with the data of a task without code; needs --answers.")
    answers: Path | None = Field(None, description="YAML file with the questions and answers for --csv.")


def new(_lab: Lab, params: NewTaskParams) -> Iterator[Result]:
    """Write a small working package with a task, for you to change.

    With --csv and --answers the task needs no code: it asks the questions in the YAML file about the table.
    """
    from labmates.tasks.table import ANSWERS, DATA, read_answers, read_table

    folder, model = Path(params.folder or params.name), "scripted:diligent"
    if params.csv is not None and params.answers is not None:
        model = "openai:gpt-5.4-mini"  # baselines have no analysis for this table
        read_table(params.csv)
        made, table = read_answers(params.answers), params.csv.read_bytes()
        text = params.answers.read_bytes()
        if made.content is None:
            text = text.rstrip() + f"\ncontent: {made.versioned(table)}\n".encode()
        data = {DATA: table, ANSWERS: text}
        paths = new_package(TASKS, params.name, folder, "table_task", data)
    elif params.csv is not None or params.answers is not None:
        raise UsageError(f"--{'csv' if params.answers else 'answers'} is missing: --csv and --answers go together")
    else:
        paths = new_package(TASKS, params.name, folder)
    check = f"labmates tasks check {params.name}"
    yield written(folder, paths, check, f"labmates run science --task {params.name} --model {model}")


class CheckParams(Params):
    """The parameters of checking a task."""

    task: str = Field(json_schema_extra={"argument": True})
    seeds: int = Field(3, ge=2, le=1000, description="Number of seeds to try.")
    step_timeout: float = Field(
        60.0,
        gt=0,
        description="Time limit per rule and data set, in seconds; a slower rule is reported as hanging.",
    )


def check(lab: Lab, params: CheckParams) -> Iterator[Result]:
    """Check a task against the rules: the conformance test.

    TASK is a name, or path/to/file.py:Class or module:Class for a task that is not installed. The check tries several
    seeds at every difficulty, also in other processes. The exit code is 1 if there are errors, else 0.
    """
    from labmates_author.tasks.examine import try_task

    trial = try_task(params.task, range(params.seeds), step_seconds=params.step_timeout, watch=lab.step)
    yield verdict(params.task, trial, head=f"{params.task}: {params.seeds} seeds at every difficulty", task=params.task)


NEW = Command(new, NewTaskParams, example="labmates tasks new soil_moisture")
CHECK = Command(check, CheckParams, example="labmates tasks check labmates_soil/task.py:SoilTask --seeds 5", objects="")
