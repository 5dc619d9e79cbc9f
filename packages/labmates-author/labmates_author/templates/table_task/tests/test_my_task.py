from __future__ import annotations

from labmates_author.tasks import check_task
from labmates_my_task.task import MyTask


def test_the_task_conforms() -> None:
    assert not [problem for problem in check_task(MyTask()) if problem.severity == "error"]
