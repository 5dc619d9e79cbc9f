"""The judge that compares the findings a team states in its report with the truth, by code."""

from __future__ import annotations

from dataclasses import asdict

from labmates.judges.base import Report, Score
from labmates.judges.injection import find_injections
from labmates.tasks.base import accuracy
from labmates.tasks.findings import read_findings

MOST_TOLD = 5
"""The reason names so many problems; the details name them all."""


class VerifiedJudge:
    """Accuracy of the findings block of a report; its details give the credit of every finding."""

    name = "verified"
    version = "1"

    async def score(self, report: Report) -> list[Score]:
        """Return the accuracy: 0 for a missing report, None for one without a findings block that can be read."""
        return [self._accuracy(report)]

    def _accuracy(self, report: Report) -> Score:
        if report.text is None or report.is_missing:
            return Score(self.name, self.version, "accuracy", 0.0, "there is no report")
        read = read_findings(report.text, report.task.findings)
        details = {
            "task": {"name": report.task.name, "version": report.task.version},
            "problems": list(read.problems),
            "injections": list(find_injections(report.text)),
        }
        if read.findings is None:
            return Score(self.name, self.version, "accuracy", None, _told(read.problems), details)
        credits = report.task.score(read.findings, report.truth)
        value = accuracy(credits)
        stated = sum(getattr(read.findings, name) is not None for name in type(read.findings).model_fields)
        reason = (
            f"{stated} of {len(type(read.findings).model_fields)} findings stated, {value:.2f} of the credit earned"
        )
        if read.problems:
            reason += "; left out: " + _told(read.problems)
        return Score(
            self.name, self.version, "accuracy", value, reason, {**details, "credits": [asdict(one) for one in credits]}
        )


def _told(problems: tuple[str, ...]) -> str:
    more = len(problems) - MOST_TOLD
    return "; ".join(problems[:MOST_TOLD]) + (f"; and {more} more" if more > 0 else "")
