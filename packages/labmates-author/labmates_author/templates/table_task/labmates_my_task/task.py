"""The task my_task; its table and answers are beside this file."""

from __future__ import annotations

from pathlib import Path

from labmates.tasks.table import TableTask


class MyTask(TableTask):
    """The questions of answers.yaml about data.csv."""

    name = "my_task"
    folder = Path(__file__).parent
