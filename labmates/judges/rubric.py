"""The judge that asks a model: three ratings by rubrics, with reasons.

Source: cooperative-profiles paper, section 4.1.2 and appendix L: ratings from 1 to 5 with a sentence of reason each,
flags for seven sections, temperature 0, at most 512 tokens of answer, the truth known to the judge. The words and the
defence against orders in a report are our own. A rating x becomes the score (x - 1) / 4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from labmates.judges.answers import read_object
from labmates.judges.base import METRICS, Report, Score
from labmates.judges.fence import Fenced, fenced
from labmates.judges.interview import REPAIR, Interviewer, UnansweredError
from labmates.judges.wording import FORM, MISSING, QUESTION, RUBRICS, SYSTEM, digest
from labmates.models.errors import ModelCallError

PREFIX = "rubric:"
"""The name of such a judge is this and the model's, for instance ``rubric:openai:gpt-5.4-mini``."""
VERSION = f"1.{digest(SYSTEM, RUBRICS, FORM, QUESTION.template, REPAIR)}"
"""Changes with every word that a model is told."""
MOST_OUTPUT_TOKENS = 512
MOST_REASON_CHARS = 500


def _whole(value: object) -> object:
    """Take a rating that is written as text or as a decimal, where it can mean nothing else."""
    if isinstance(value, bool):
        raise ValueError("true and false are no ratings")
    if isinstance(value, str) and re.fullmatch(r"\s*\d\s*", value):
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


Level = Annotated[int, Field(strict=True, ge=1, le=5), BeforeValidator(_whole)]
Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class Flags(BaseModel):
    """Which of the seven sections count."""

    model_config = ConfigDict(frozen=True)

    abstract: bool
    introduction: bool
    dataset: bool
    methods: bool
    results: bool
    evaluation: bool
    conclusion: bool


class Rating(BaseModel):
    """What a model answers."""

    model_config = ConfigDict(frozen=True)

    sections: Flags
    completeness_reason: Reason
    completeness: Level
    quality_reason: Reason
    quality: Level
    accuracy_reason: Reason
    accuracy: Level


class RubricJudge:
    """Completeness, quality and accuracy as a model rates them.

    Parameters
    ----------
    model
        ``provider:name``.
    interviewer
        Makes the calls.
    """

    metrics = METRICS
    version = VERSION

    def __init__(self, model: str, interviewer: Interviewer) -> None:
        self.name = f"{PREFIX}{model}"
        self._model = model
        self._interviewer = interviewer

    async def score(self, report: Report) -> list[Score]:
        """Return the three scores: 0 for a missing report, None where the model gave no usable answer."""
        if report.text is None or report.is_missing:
            return self._all(0.0, MISSING)
        material = fenced(report.text)
        details = {
            "task": {"name": report.task.name, "version": report.task.version},
            "injections": list(material.injections),
        }
        try:
            rating = await self._interviewer.ask(
                self._model,
                [SystemMessage(SYSTEM), HumanMessage(question(report, material))],
                lambda text, _last: read_object(text, Rating),
                name=f"judge {self.name}",
                max_output_tokens=MOST_OUTPUT_TOKENS,
            )
        except UnansweredError as error:
            return self._all(None, str(error), details)
        except ModelCallError as error:
            return self._all(None, str(error), details, failed=True)
        return [self._score(rating, metric, details) for metric in METRICS]

    def _score(self, rating: Rating, metric: str, details: Mapping[str, Any]) -> Score:
        level = int(getattr(rating, metric))
        told = {**details, "rating": level}
        if metric == "completeness":
            told["sections"] = rating.sections.model_dump()
        reason = str(getattr(rating, f"{metric}_reason"))[:MOST_REASON_CHARS]
        return Score(self.name, self.version, metric, (level - 1) / 4, reason, told)

    def _all(
        self, value: float | None, reason: str, details: Mapping[str, Any] | None = None, *, failed: bool = False
    ) -> list[Score]:
        return [Score(self.name, self.version, metric, value, reason, details or {}, failed) for metric in METRICS]


def question(report: Report, material: Fenced) -> str:
    """Return what a model is asked about a report: rubrics, task, truth, the fenced report, the form of the answer."""
    return QUESTION.substitute(
        rubrics=RUBRICS,
        title=report.task.title,
        brief=report.task.brief,
        truth=report.task.summary(report.truth),
        mark=material.mark,
        report=material.text,
        form=FORM,
    )
