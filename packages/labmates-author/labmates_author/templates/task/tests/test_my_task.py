from __future__ import annotations

from labmates.tasks.base import accuracy
from labmates_author.tasks import check_task
from labmates_my_task.task import MyFindings, MyTask


def test_the_task_conforms() -> None:
    assert check_task(MyTask()) == []


def test_a_report_on_half_of_the_springs_earns_part_of_the_credit() -> None:
    task = MyTask()
    truth = task.generate(0).truth
    half = MyFindings(stiffness=truth.stiffness[: len(truth.stiffness) // 2])
    assert 0.2 < accuracy(task.score(half, truth)) < 0.8
