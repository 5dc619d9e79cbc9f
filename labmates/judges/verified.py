"""The verified judge: a comparison, by code, of a report with the truth and with the output of the run's code."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from labmates.judges import provenance
from labmates.judges.base import SKILL, Report, Score
from labmates.judges.contradictions import contradictions
from labmates.judges.extraction import QUESTION, SYSTEM, Extractor, Statement, read_statement
from labmates.judges.injection import find_injections
from labmates.models.error_bodies import one_line
from labmates.models.errors import ModelCallError
from labmates.models.objects import UnusableAnswerError
from labmates.tasks.base import Credit, accuracy, skill
from labmates.tasks.findings import check_findings
from labmates.util.loops import in_thread

MOST_TOLD = 5
"""Most problems in the reason; the details list all."""
_LONGEST_PROBLEM = 300


class VerifiedJudge:
    """Accuracy and skill of the findings of a report (stated with the tool, or in its text), and their provenance.

    What the paper's own text contradicts earns nothing (`judges.contradictions`).

    Missing or unreadable findings earn 0; only failures of the judge itself are unscored. The details hold the source
    of the findings (``source``, ``readable``), their repairs and omissions (``repaired``, ``problems``), the credit of
    every finding, the true findings (``truth``), and the teams' earlier findings with their scores (``teams``). Skill
    is accuracy beyond the task's prior on the same data; its details hold the prior's accuracy, and that of an ideal
    analysis.

    Parameters
    ----------
    extractor
        Extracts the findings of a report without readable ones. Its model is then part of the score's version and
        details.
    """

    name = "verified"
    version = "11"
    metrics = ("accuracy", SKILL, provenance.METRIC)
    prompts = MappingProxyType({"system": SYSTEM, "question": QUESTION.template})

    def __init__(self, extractor: Extractor | None = None) -> None:
        self._extractor = extractor
        if extractor is not None:
            self.version = f"{VerifiedJudge.version}+{extractor.version}"

    async def score(self, report: Report) -> list[Score]:
        """Accuracy, skill and provenance (`judges.provenance`).

        The accuracy is 0 without readable findings, None if the extractor's answers are unusable.
        """
        statement = read_statement(report)
        earned = await self._accuracy(report, statement)
        skill_score = await in_thread(partial(_skill, earned, report), unless=report.ideal is None)
        return [earned, skill_score, await self._provenance(report, statement)]

    async def _provenance(self, report: Report, statement: Statement) -> Score:
        audited = await in_thread(partial(provenance.audit, report, statement.read.findings), unless=report.is_short)
        details = {"task": report.task_facts, **audited.as_json()}
        return Score(self.name, VerifiedJudge.version, provenance.METRIC, audited.value, audited.reason, details)

    async def _accuracy(self, report: Report, statement: Statement) -> Score:
        version, details = VerifiedJudge.version, dict[str, Any]()
        if statement.source == "none" and self._extractor is not None and not report.is_missing:
            details["extracted"] = {"model": self._extractor.model, "because": list(statement.read.problems)}
            version = self.version
            try:
                read = await self._extractor.read(report.text or "", report.task)
            except UnusableAnswerError as error:
                why = f"findings could not be extracted: {error}"
                return self._score(None, why, report, statement, details, version)
            except ModelCallError as error:
                return self._score(None, str(error), report, statement, details, version, failed=True)
            statement = Statement(read, "extracted")
        return self._of(statement, report, details, version)

    def _of(self, statement: Statement, report: Report, details: dict[str, Any], version: str) -> Score:
        findings, problems = statement.read.findings, statement.read.problems
        if findings is None:
            reason = "there is no report" if report.is_missing else _problems_text(problems)
            return self._score(0.0, reason, report, statement, details, version)
        fields = type(findings).model_fields
        at_odds = {} if statement.source == "extracted" else contradictions(report.text or "", findings)
        credits = [_withheld(credit, at_odds) for credit in report.task.score(findings, report.truth)]
        told = (f"field '{name}': the paper's text says otherwise: {place}" for name, (_, place) in at_odds.items())
        problems = (*problems, *told)
        statement = replace(statement, read=replace(statement.read, problems=problems))
        value = accuracy(credits)
        stated = len(findings.model_dump(exclude_none=True))
        reason = f"{stated} of {len(fields)} findings stated, {value:.2f} of the credit earned"
        if "extracted" in details:
            reason = f"extracted by {details['extracted']['model']}: {reason}"
        if problems:
            reason += "; problems: " + _problems_text(problems)
        details = {
            **details,
            "findings": findings.model_dump(mode="json", exclude_none=True),
            "credits": list(map(asdict, credits)),
        }
        return self._score(value, reason, report, statement, details, version)

    def _score(
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
            **_known(report),
        }
        return Score(self.name, version, "accuracy", value, reason, whole, failed)


def _withheld(credit: Credit, at_odds: Mapping[str, tuple[float, str]]) -> Credit:
    """A credit without the share that the paper's own text contradicts."""
    if credit.finding not in at_odds:
        return credit
    share, place = at_odds[credit.finding]
    reason = f"{credit.reason}; withheld, since the paper's text says: {place}"
    return replace(credit, credit=credit.credit * (1 - share), reason=one_line(reason, _LONGEST_PROBLEM))


def _skill(earned: Score, report: Report) -> Score:
    """The skill for an accuracy."""
    task = report.task
    if earned.value is None:
        return replace(earned, metric=SKILL, details={})
    try:
        guessed = accuracy(task.score(task.prior(report.columns, report.difficulty), report.truth))
        ideal = {} if report.ideal is None else {"ideal": accuracy(task.score(report.ideal(), report.truth))}
    except Exception as error:  # A plug-in's code may fail; the accuracy remains.
        reason = one_line(
            f"the ideal analysis or prior of the task '{task.name}' failed: {type(error).__name__}: {error}",
            _LONGEST_PROBLEM,
        )
        return replace(earned, metric=SKILL, value=None, reason=reason, details={}, failed=True)
    value = skill(earned.value, guessed)
    if math.isnan(value):
        return replace(earned, metric=SKILL, value=None, reason="guessing without data earns all there is", details={})
    reason = f"accuracy {earned.value:.2f}, where guessing without data earns {guessed:.2f}"
    if ideal:
        reason += f" and an ideal analysis {ideal['ideal']:.2f}"
    return replace(earned, metric=SKILL, value=value, reason=reason, details={"prior": guessed, **ideal})


def _of_teams(report: Report) -> dict[str, Any]:
    """Each team's last findings stated with the tool, with their scores."""
    newest = {trace.team: trace.text for trace in report.trail if trace.kind == "findings"}
    details: dict[str, Any] = {}
    for team, text in newest.items():
        read = check_findings(json.loads(text), report.task.findings)
        if read.findings is not None:
            credits = report.task.score(read.findings, report.truth)
            details[team] = {
                "findings": read.findings.model_dump(mode="json", exclude_none=True),
                "accuracy": accuracy(credits),
                "credits": {credit.finding: credit.credit for credit in credits},
            }
    return details


def _known(report: Report) -> dict[str, Any]:
    """The true findings of a run, and the teams' earlier ones."""
    if not report.trail:
        return {}
    try:
        truth = report.task.oracle(report.truth).model_dump(mode="json", exclude_none=True)
        teams = _of_teams(report)
    except Exception as error:  # A plug-in's task may fail on partial findings; the accuracy remains without them.
        return {"problem": one_line(f"{type(error).__name__}: {error}", _LONGEST_PROBLEM)}
    return {"truth": truth, **({"teams": teams} if teams else {})}


def _problems_text(problems: tuple[str, ...]) -> str:
    more = len(problems) - MOST_TOLD
    return "; ".join(problems[:MOST_TOLD]) + (f"; and {more} more" if more > 0 else "")
