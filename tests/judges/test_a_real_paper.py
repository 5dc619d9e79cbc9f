"""The judges on a paper that a team of a strong language model wrote, about the data of the task's version 2.

Its scores here are those against the truth of the present version for the same seed: the same species in other numbers.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labmates.judges.base import Report
from labmates.judges.heuristic import HeuristicJudge
from labmates.judges.verified import VerifiedJudge
from labmates.tasks.registry import get_task
from labmates.util.seeds import derive


async def test_a_real_paper_keeps_its_scores() -> None:
    run = json.loads(Path(__file__).with_name("data").joinpath("strong_ecology_paper.json").read_text())
    task = get_task(run["task"])
    data = task.generate(derive(run["seed"], "dataset"), run["difficulty"])
    report = Report(
        run["paper"], task, data.truth, stated=run["findings"], columns=data.columns, difficulty=run["difficulty"]
    )
    scores = {score.metric: score for score in await VerifiedJudge().score(report)}
    assert scores["accuracy"].value == pytest.approx(run["scores"]["accuracy"])
    assert scores["skill"].value == pytest.approx(run["scores"]["skill"])
    credits = {credit["finding"]: credit["credit"] for credit in scores["accuracy"].details["credits"]}
    assert credits == pytest.approx(run["credits"])
    [completeness, *_] = await HeuristicJudge().score(report)
    assert completeness.value == run["scores"]["completeness"]
