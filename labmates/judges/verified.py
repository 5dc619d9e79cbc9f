"""The judge that compares the findings a team states in its report with the truth, by code."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel

from labmates.judges.base import Report, Score
from labmates.judges.extraction import Extractor
from labmates.judges.handoff import audit
from labmates.judges.injection import find_injections
from labmates.judges.interview import UnansweredError
from labmates.models.bodies import one_line
from labmates.models.errors import ModelCallError
from labmates.tasks.base import accuracy
from labmates.tasks.findings import ReadFindings, read_findings

MOST_TOLD = 5
"""The reason names so many problems; the details name them all."""
_LONGEST_PROBLEM = 300


class VerifiedJudge:
    """Accuracy of the findings block of a report.

    The details give the credit of every finding, and how the findings came through the teams' hands (`judges.handoff`).

    Parameters
    ----------
    extractor
        Reads the findings of a report that has no block that can be read. Such a score has the extractor's model in
        its version and its details.
    """

    name = "verified"
    version = "1"
    metrics = ("accuracy",)

    def __init__(self, extractor: Extractor | None = None) -> None:
        self._extractor = extractor
        if extractor is not None:
            self.version = f"{VerifiedJudge.version}+{extractor.version}"

    async def score(self, report: Report) -> list[Score]:
        """Return the accuracy: 0 for a missing report, None for one whose findings can't be read."""
        if report.text is None or report.is_missing:
            return [self._score(0.0, "there is no report", await _handoff(report, None), VerifiedJudge.version)]
        read = read_findings(report.text, report.task.findings)
        details: dict[str, Any] = {
            "task": {"name": report.task.name, "version": report.task.version},
            "problems": list(read.problems),
            "injections": list(find_injections(report.text)),
        }
        if read.findings is not None or self._extractor is None:
            return [await self._of(read, report, details, VerifiedJudge.version)]
        details["extracted"] = {"model": self._extractor.model, "because": list(read.problems)}
        try:
            read = await self._extractor.read(report.text, report.task)
        except UnansweredError as error:
            details |= await _handoff(report, None)
            return [self._score(None, f"findings could not be extracted: {error}", details)]
        except ModelCallError as error:
            return [self._score(None, str(error), details, failed=True)]
        return [await self._of(read, report, {**details, "problems": list(read.problems)}, self.version)]

    async def _of(self, read: ReadFindings[BaseModel], report: Report, details: dict[str, Any], version: str) -> Score:
        details |= await _handoff(report, read.findings)
        if read.findings is None:
            return self._score(None, _told(read.problems), details, version)
        fields = type(read.findings).model_fields
        credits = report.task.score(read.findings, report.truth)
        value = accuracy(credits)
        stated = sum(getattr(read.findings, name) is not None for name in fields)
        reason = f"{stated} of {len(fields)} findings stated, {value:.2f} of the credit earned"
        if "extracted" in details:
            reason = f"extracted by {details['extracted']['model']}: {reason}"
        if read.problems:
            reason += "; left out: " + _told(read.problems)
        return self._score(value, reason, {**details, "credits": [asdict(one) for one in credits]}, version)

    def _score(
        self,
        value: float | None,
        reason: str,
        details: Mapping[str, Any],
        version: str | None = None,
        *,
        failed: bool = False,
    ) -> Score:
        return Score(self.name, version or self.version, "accuracy", value, reason, details, failed)


async def _handoff(report: Report, findings: BaseModel | None) -> dict[str, Any]:
    if not report.trail:
        return {}
    try:
        return {"handoff": (await asyncio.to_thread(audit, report, findings)).as_json()}
    except Exception as error:  # A plug-in's task may fail on partial findings; the accuracy stands without the audit.
        return {"handoff": {"problem": one_line(f"{type(error).__name__}: {error}", _LONGEST_PROBLEM)}}


def _told(problems: tuple[str, ...]) -> str:
    more = len(problems) - MOST_TOLD
    return "; ".join(problems[:MOST_TOLD]) + (f"; and {more} more" if more > 0 else "")
