from __future__ import annotations

import asyncio

import pytest

from labmates.judges.base import Report
from labmates.tasks.registry import get_task
from labmates_my_judge.judge import MyJudge


@pytest.mark.parametrize(
    ("text", "value"),
    [("The slope is 2.5. It is steep.", 0.5), ("It is steep.", 0.0), ("```\ncode\n```", None), (None, 0.0)],
)
def test_the_score_is_the_share_of_statements_with_a_number(text: str | None, value: float | None) -> None:
    task = get_task("ecology")
    [score] = asyncio.run(MyJudge().score(Report(text, task, task.generate(0, "easy").truth)))
    assert score.value == value
