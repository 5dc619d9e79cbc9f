"""The judge that compares what a report states with the truth, and with what the run's code printed, by code."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from labmates.judges import provenance
from labmates.judges.base import SKILL, Report, Score
from labmates.judges.extraction import QUESTION, SYSTEM, Extractor, Statement, read_statement
from labmates.judges.handoff import audit
from labmates.judges.injection import find_injections
from labmates.models.errors import ModelCallError
from labmates.models.failures import one_line
from labmates.models.objects import UnusableAnswerError
from labmates.tasks.base import accuracy, skill
from labmates.tasks.findings import check_findings

MOST_TOLD = 5
"""Number of problems that the reason names; the details name them all."""
_LONGEST_PROBLEM = 300


class VerifiedJudge:
    """Accuracy and skill of the findings of a report (stated with the tool, or in its text), provenance of its numbers.

    Findings that are absent or can't be read are worth 0; unscored is only what the judge itself fails on. The details
    say where the findings come from (``source``), whether they could be read (``readable``), what was mended
    (``repaired``) and left out (``problems``), the credit of every finding, what each team stated on the way and what
    that was worth (``teams``), and how the findings came through the teams' hands (`judges.handoff`). Skill is
    accuracy beyond what the task's prior earns on the same data; its details give the prior's accuracy.

    Parameters
    ----------
    extractor
        Reads the findings of a report that states none that can be read. Such a score has the extractor's model in
        its version and its details.
    """

    name = "verified"
    version = "2"
    metrics = ("accuracy", SKILL, provenance.METRIC)
    prompts = MappingProxyType({"system": SYSTEM, "question": QUESTION.template})

    def __init__(self, extractor: Extractor | None = None) -> None:
        self._extractor = extractor
        if extractor is not None:
            self.version = f"{VerifiedJudge.version}+{extractor.version}"

    async def score(self, report: Report) -> list[Score]:
        """Accuracy, skill and provenance; see `judges.provenance` for the latter.

        The accuracy is 0 where no findings can be read, None if the extractor gave no usable answer.
        """
        earned = await self._accuracy(report)
        return [earned, _skill(earned, report), await self._provenance(report)]

    async def _provenance(self, report: Report) -> Score:
        stated = read_statement(report).read.findings
        findings = {} if stated is None else stated.model_dump(mode="json", exclude_none=True)
        audited = await asyncio.to_thread(provenance.audit, report, findings)
        details = {"task": report.task_facts, **audited.as_json()}
        return Score(self.name, VerifiedJudge.version, provenance.METRIC, audited.value, audited.reason, details)

    async def _accuracy(self, report: Report) -> Score:
        statement, version, details = read_statement(report), VerifiedJudge.version, dict[str, Any]()
        if statement.source == "none" and self._extractor is not None and not report.is_missing:
            details["extracted"] = {"model": self._extractor.model, "because": list(statement.read.problems)}
            version = self.version
            try:
                read = await self._extractor.read(report.text or "", report.task)
            except UnusableAnswerError as error:
                why = f"findings could not be extracted: {error}"
                return await self._score(None, why, report, statement, details, version)
            except ModelCallError as error:
                return await self._score(None, str(error), report, statement, details, version, failed=True)
            statement = Statement(read, "extracted")
        return await self._of(statement, report, details, version)

    async def _of(self, statement: Statement, report: Report, details: dict[str, Any], version: str) -> Score:
        read = statement.read
        if read.findings is None:
            reason = "there is no report" if report.is_missing else _problems_text(read.problems)
            return await self._score(0.0, reason, report, statement, details, version)
        fields = type(read.findings).model_fields
        credits = report.task.score(read.findings, report.truth)
        value = accuracy(credits)
        stated = sum(getattr(read.findings, name) is not None for name in fields)
        reason = f"{stated} of {len(fields)} findings stated, {value:.2f} of the credit earned"
        if "extracted" in details:
            reason = f"extracted by {details['extracted']['model']}: {reason}"
        if read.problems:
            reason += "; problems: " + _problems_text(read.problems)
        details = {
            **details,
            "findings": read.findings.model_dump(mode="json", exclude_none=True),
            "credits": [asdict(one) for one in credits],
        }
        return await self._score(value, reason, report, statement, details, version)

    async def _score(
        self,
        value: float | None,
        reason: str,
        report: Report,
        statement: Statement,
        details: Mapping[str, Any],
        version: str,
        *,
        failed: bool = False,
    ) -> Score:
        whole = {
            "task": report.task_facts,
            **statement.as_json(),
            "injections": list(find_injections(report.text or "")),
            **details,
            **await _on_the_way(report, statement.read.findings),
        }
        return Score(self.name, version, "accuracy", value, reason, whole, failed)


def _skill(earned: Score, report: Report) -> Score:
    """The skill that belongs to an accuracy."""
    task = report.task
    if earned.value is None:
        return replace(earned, metric=SKILL, details={})
    try:
        guessed = accuracy(task.score(task.prior(report.columns, report.difficulty), report.truth))
    except Exception as error:  # A plug-in's prior may fail; the accuracy remains.
        reason = one_line(
            f"the prior of the task '{task.name}' failed: {type(error).__name__}: {error}", _LONGEST_PROBLEM
        )
        return replace(earned, metric=SKILL, value=None, reason=reason, details={}, failed=True)
    value = skill(earned.value, guessed)
    if math.isnan(value):
        return replace(earned, metric=SKILL, value=None, reason="guessing without data earns all there is", details={})
    reason = f"accuracy {earned.value:.2f}, where guessing without data earns {guessed:.2f}"
    return replace(earned, metric=SKILL, value=value, reason=reason, details={"prior": guessed})


def _of_teams(report: Report) -> dict[str, Any]:
    """Each team's last findings from the tool, with their score."""
    newest = {trace.team: trace.text for trace in report.trail if trace.kind == "findings"}
    details: dict[str, Any] = {}
    for team, text in newest.items():
        read = check_findings(json.loads(text), report.task.findings)
        if read.findings is not None:
            credits = report.task.score(read.findings, report.truth)
            details[team] = {
                "findings": read.findings.model_dump(mode="json", exclude_none=True),
                "accuracy": accuracy(credits),
                "credits": {one.finding: one.credit for one in credits},
            }
    return details


async def _on_the_way(report: Report, findings: BaseModel | None) -> dict[str, Any]:
    """The teams' findings on the way to the report, and how each finding fared."""
    if not report.trail:
        return {}
    details: dict[str, Any] = {}
    try:
        if teams := _of_teams(report):
            details["teams"] = teams
        details["handoff"] = (await asyncio.to_thread(audit, report, findings)).as_json()
    except Exception as error:  # A plug-in's task may fail on partial findings; the accuracy remains without the audit.
        details["handoff"] = {"problem": one_line(f"{type(error).__name__}: {error}", _LONGEST_PROBLEM)}
    return details


def _problems_text(problems: tuple[str, ...]) -> str:
    more = len(problems) - MOST_TOLD
    return "; ".join(problems[:MOST_TOLD]) + (f"; and {more} more" if more > 0 else "")
