"""The judge ``uncertainty``: does a report say how sure it is of its numbers?"""

from __future__ import annotations

import re

from labmates.judges.base import Report, Score
from labmates.judges.prose import read_prose, statements

_RESULT = re.compile(r"\d\.\d|\d\s?%")
"""A measured number, told from a count by its decimals or its percent sign."""
_SURE = re.compile(
    r"±|\+/-|\bconfidence\b|\bcredible\b|\bstandard (?:error|deviation)|\bp\s?[<=]|\bbetween \S{1,20} and \S{1,20}\d",
    re.IGNORECASE,
)
MOST_SHOWN = 10


class UncertaintyJudge:
    """The share of the statements with measured numbers that also say how sure the number is."""

    name = "uncertainty"
    version = "1"
    metrics = ("uncertainty",)

    async def score(self, report: Report) -> list[Score]:
        """Return the share; 0 for a missing report, None for one that states no measured number."""
        if report.text is None or report.is_missing:
            return [self._score(0.0, "there is no report")]
        # Without blocks and comments. An order to the judge can't move a rule, so the text counts as written.
        prose = read_prose(report.text).text
        measured = [said for said in statements(prose) if _RESULT.search(said)]
        bare = [said for said in measured if not _SURE.search(said)]
        if not measured:
            return [self._score(None, "no statement has a measured number")]
        reason = f"{len(measured) - len(bare)} of {len(measured)} statements with a measured number say how sure it is"
        return [self._score(1 - len(bare) / len(measured), reason, bare)]

    def _score(self, value: float | None, reason: str, bare: list[str] | None = None) -> Score:
        return Score(self.name, self.version, "uncertainty", value, reason, {"bare": (bare or [])[:MOST_SHOWN]})
