"""The check of a judge: good ones pass, and each fault is named by its rule."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from labmates.judges.base import Report, Score
from labmates.judges.registry import JUDGES
from labmates_author.judges import JudgeTrial, sample_cases, try_judge
from tests.support.line_task import LineTask

CASES = sample_cases(LineTask(), 0, "easy")
ONE = dict([*CASES.items()][:1])
CALLS = itertools.count(1)


def judged(reference: str, cases: Any = None, seconds: float = 20) -> JudgeTrial:
    return asyncio.run(try_judge(reference, cases or CASES, seconds=seconds))


class Judge:
    """Scores the share of the letter e, or what a test wants."""

    name = "tried"
    version = "1"
    metrics: Any = ("e",)

    def __init__(self, scores: Callable[[Judge, str], Any] | None = None) -> None:
        self._scores = scores or (lambda judge, text: [judge.of(text.count("e") / max(1, len(text)))])

    def of(self, value: float | None, metric: str = "e", reason: str = "counted", **more: Any) -> Score:
        return Score(self.name, self.version, metric, value, reason, **more)

    async def score(self, report: Report) -> Any:
        await asyncio.sleep(0)
        return self._scores(self, report.text or "")


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Callable[..., JudgeTrial]:
    """Tries a judge under the name ``tried``."""
    monkeypatch.setattr(JUDGES, "_loaded", dict(JUDGES._loaded))
    monkeypatch.setattr(JUDGES, "_replaced", set(JUDGES._replaced))

    def run(judge: Callable[[], Any], **more: Any) -> JudgeTrial:
        JUDGES.register("tried", judge)
        return judged("tried", **more)

    return run


def texts(trial: JudgeTrial, rule: str) -> str:
    return "\n".join(f"{problem.severity} {problem.text}" for problem in trial.problems if problem.rule == rule)


@pytest.mark.parametrize("name", ["heuristic", "verified"])
def test_built_in_judges_pass(name: str) -> None:
    trial = judged(name)
    assert trial.passed
    assert not trial.problems
    assert set(trial.scores) == set(CASES)


def fail(_judge: Judge, text: str) -> Any:
    raise KeyError(len(text))


@pytest.mark.parametrize(
    ("make", "rule", "said"),
    [
        (fail, "scores", "error raised KeyError: "),
        (lambda judge, _: judge.of(0.5), "scores", "error it returned Score instead of a list of Score"),
        (lambda _judge, _: [], "scores", "error it returned no score"),
        (lambda judge, _: [judge.of(7)], "scores", "a score must lie in [0, 1]"),
        (lambda judge, _: [judge.of(0.5, reason=" ")], "scores", "error e has no reason"),
        (lambda judge, _: [judge.of(None, failed=True)], "scores", "error e failed: counted"),
        (lambda judge, _: [judge.of(0.5, details={"all": {1}})], "scores", "is not JSON serializable"),
        (lambda judge, _: [judge.of(0.5, "mood")], "metrics", "error mood is not among its metrics (e)"),
        (lambda judge, _: [judge.of(0.5, "mood")], "metrics", "error e is missing; give it the value None"),
        (lambda judge, _: [judge.of(0.5)] * 2, "metrics", "error e is scored more than once"),
        (lambda judge, _: [judge.of(1 / next(CALLS))], "repeats", "error the second time, e differs"),
    ],
)
def test_a_fault_in_scores_is_named_by_its_rule(
    tried: Callable[..., JudgeTrial], make: Callable[[Judge, str], Any], rule: str, said: str
) -> None:
    trial = tried(lambda: Judge(make))
    assert said in texts(trial, rule)
    assert not trial.passed


@pytest.mark.parametrize("blocks", [False, True])
def test_a_judge_that_hangs_is_stopped(tried: Callable[..., JudgeTrial], blocks: bool) -> None:
    class Slow(Judge):
        async def score(self, report: Report) -> list[Score]:
            if blocks:
                time.sleep(60)  # noqa: ASYNC251
            await asyncio.sleep(60)
            return []

    assert "error hangs: it did not end within 0.05 s" in texts(tried(Slow, cases=ONE, seconds=0.05), "scores")


class Nameless(Judge):
    name = ""


class Mute:
    name = version = "tried"


class Silent(Judge):
    metrics = ()


class Other(Judge):
    name = "other"


class Bare(Judge):
    def __init__(self, model: str) -> None:
        super().__init__()
        self.model = model


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (Nameless, "error its name must be a text, not ''"),
        (Mute, "error it has no method 'score'"),
        (Silent, "warning it names no metrics"),
        (Other, "error its name is 'other', but it is registered as 'tried'"),
        (Bare, "missing 1 required positional argument: 'model'"),
    ],
)
def test_what_is_no_judge_is_told_at_once(tried: Callable[..., JudgeTrial], judge: Any, said: str) -> None:
    trial = tried(judge, cases=ONE)
    assert said in texts(trial, "load")
    assert trial.passed == (judge is Silent)


def test_a_judge_in_a_file_needs_no_package(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from labmates.judges.base import Score\n"
        "class Mine:\n"
        "    name, version, metrics = 'mine', '1', ('length',)\n"
        "    async def score(self, report):\n"
        "        return [Score('mine', '1', 'length', min(1, len(report.text or '') / 1e4), 'counted')]\n"
    )
    for reference in (str(file), f"{file}:Mine"):
        assert judged(reference).passed
