"""Skill: accuracy beyond what guessing earns on the same data, beside the accuracy that it belongs to."""

from __future__ import annotations

import math
from typing import Any

import pytest

from labmates.judges.base import Report, Score
from labmates.judges.verified import VerifiedJudge
from labmates.tasks.base import accuracy
from labmates.tasks.registry import get_task
from labmates_author.tasks.report import oracle_report, prior_report
from tests.support.line_task import LineFindings, LineTask

TASK = get_task("anomaly")
DATA = TASK.generate(3, "hard")
COLUMNS = tuple(DATA.frame.columns)


async def scored(text: str | None, task: Any = TASK, truth: Any = DATA.truth) -> dict[str, Score]:
    report = Report(text, task, truth, columns=COLUMNS, difficulty="hard")
    return {score.metric: score for score in await VerifiedJudge().score(report)}


async def test_the_oracle_has_all_skill_the_prior_none_and_silence_less_than_none() -> None:
    guessed = accuracy(TASK.score(TASK.prior(COLUMNS, "hard"), DATA.truth))
    assert guessed > 0
    perfect = await scored(oracle_report(TASK, DATA.truth))
    assert perfect["skill"].value == pytest.approx(1.0)
    assert perfect["skill"].details == {"prior": guessed}
    guess = await scored(prior_report(TASK, COLUMNS, "hard"))
    assert guess["accuracy"].value == pytest.approx(guessed)
    assert guess["skill"].value == 0.0
    for nothing in (None, "", "Words.", "```findings\n{}\n```"):
        silent = await scored(nothing)
        assert silent["accuracy"].value == 0
        assert silent["skill"].value == pytest.approx(-guessed / (1 - guessed))


async def test_a_failing_prior_leaves_the_accuracy_and_a_perfect_one_no_skill() -> None:
    class Failing(LineTask):
        def prior(self, columns: Any, difficulty: Any) -> LineFindings:
            raise KeyError("x")

    class Knowing(LineTask):
        def prior(self, columns: Any, difficulty: Any) -> LineFindings:
            return LineFindings(slope=truth.slope)

    truth = LineTask().generate(0).truth
    text = f'```findings\n{{"slope": {truth.slope}}}\n```'
    failing, knowing = await scored(text, Failing(), truth), await scored(text, Knowing(), truth)
    assert failing["accuracy"].value == knowing["accuracy"].value == 1.0
    assert (failing["skill"].value, failing["skill"].failed) == (None, True)
    assert "prior of the task 'line' failed: KeyError" in failing["skill"].reason
    assert (knowing["skill"].value, knowing["skill"].failed) == (None, False)


def test_skill_alone_may_be_negative_and_nothing_may_be_infinite() -> None:
    assert Score("j", "1", "skill", -3.5, "").value == -3.5
    for metric, value in (("accuracy", -0.1), ("skill", 1.1), ("skill", -math.inf), ("skill", math.nan)):
        with pytest.raises(ValueError, match=f"{metric}: a score must lie"):
            Score("j", "1", metric, value, "")
