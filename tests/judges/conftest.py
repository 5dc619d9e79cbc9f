"""What tests of model judges share: reports of the anomaly task, and a judge that asks a real server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from labmates.budgets.ledger import UNLIMITED, Ledger
from labmates.budgets.prices import PriceList
from labmates.judges.base import Report, Score
from labmates.judges.interview import JudgeCalls
from labmates.judges.rubric import RubricJudge
from labmates.models.connection import Backoff
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.tasks.base import Dataset
from labmates.tasks.registry import get_task
from labmates.workflows.calls.assessing import NO_REPLY, JudgeCall, JudgeCaller
from labmates_author.tasks.report import oracle_report
from tests.support.openai_server import Answer, Behaviour, OpenAIServer

QUICK = Backoff(first=0.001, longest=0.005, longest_asked=0.01)
MODEL = "openai:judge-model"


@cache
def plant(seed: int = 0) -> Dataset[Any]:
    """Return a data set of the anomaly task."""
    return get_task("anomaly").generate(seed, "easy")


def report_of(text: str | None = None, seed: int = 0) -> Report:
    """Return a report on the anomaly task; by default the right one."""
    task = get_task("anomaly")
    return Report(oracle_report(task, plant(seed).truth) if text is None else text, task, plant(seed).truth)


def rating(**changes: Any) -> dict[str, Any]:
    """Return a valid answer of a judge with some changes; a key that is None stays, `...` takes it out."""
    names = ("abstract", "introduction", "dataset", "methods", "results", "evaluation", "conclusion")
    whole = {
        "sections": dict.fromkeys(names, True),
        "completeness_reason": "All sections are there.",
        "completeness": 5,
        "quality_reason": "Tests are missing.",
        "quality": 3,
        "accuracy_reason": "Half of it is right.",
        "accuracy": 2,
        **changes,
    }
    return {key: value for key, value in whole.items() if value is not ...}


def answer(**changes: Any) -> str:
    """Return a judge's answer as JSON."""
    return json.dumps(rating(**changes))


@dataclass
class Asked:
    """What came of asking a judge: its scores by metric, its calls, and what the server got."""

    scores: dict[str, Score]
    calls: list[JudgeCall]
    server: OpenAIServer
    values: tuple[float | None, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.values = tuple(score.value for score in self.scores.values())

    @property
    def prompt(self) -> str:
        """The last message of the first request."""
        return str(self.server.requests[0].body["messages"][-1]["content"])


Judged = Callable[..., Awaitable[Asked]]


@asynccontextmanager
async def interviewing(
    server: OpenAIServer, log: list[JudgeCall], thinkers: set[str] | None = None, **options: Any
) -> AsyncIterator[tuple[JudgeCalls, set[str]]]:
    """Yield the calls of models asked at `server`, and the thinkers; calls with a reply end in `log`."""
    settings = ModelOptions(**{"base_url": server.base_url, "max_retries": 1, "call_timeout": 20, **options})
    async with ModelHub(settings, backoff=QUICK) as hub:
        caller = JudgeCaller(hub, seed=7, ledger=Ledger(UNLIMITED), prices=PriceList())
        yield caller.ask, set() if thinkers is None else thinkers
        log += [made for made in caller.calls if made.reply is not NO_REPLY]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """A fake key, and no server address from outside."""
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdefGHIJ")
    return "sk-test-0123456789abcdefGHIJ"


@pytest.fixture
def judged() -> Judged:
    """Asks a rubric judge about a report through a server that behaves as told."""

    async def ask(
        behaviour: Behaviour | Answer | Sequence[Answer] | str, report: Report | None = None, **options: Any
    ) -> Asked:
        behave = Answer(text=behaviour) if isinstance(behaviour, str) else behaviour
        log: list[JudgeCall] = []
        with OpenAIServer(behave) as server:
            async with interviewing(server, log, **options) as interviewer:
                scores = await RubricJudge(MODEL, *interviewer).score(report or report_of())
        return Asked({score.metric: score for score in scores}, log, server)

    return ask
