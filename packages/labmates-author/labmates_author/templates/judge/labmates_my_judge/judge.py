"""The judge my_judge: does a report give numbers?"""

from __future__ import annotations

import re

from labmates.judges.base import Report, Score
from labmates.judges.prose import read_prose, statements

METRIC = "my_judge"
MOST_SHOWN = 10

_NUMBER = re.compile(r"\d")


class MyJudge:
    """The share of a report's statements that hold a number."""

    name = "my_judge"
    # Change it whenever the same report could get another score.
    version = "1"
    metrics = (METRIC,)

    async def score(self, report: Report) -> list[Score]:
        """The share; 0 for a missing report, None for one without a statement."""
        if report.text is None or report.is_missing:
            return [self._score(0.0, "there is no report")]
        # Without code blocks and comments. A rule can't be moved by an order, so the text counts as written.
        stated = list(statements(read_prose(report.text).text))
        if not stated:
            return [self._score(None, "the report has no statement")]
        bare = [statement for statement in stated if not _NUMBER.search(statement)]
        reason = f"{len(stated) - len(bare)} of {len(stated)} statements hold a number"
        return [self._score(1 - len(bare) / len(stated), reason, bare)]

    def _score(self, value: float | None, reason: str, bare: list[str] | None = None) -> Score:
        return Score(self.name, self.version, METRIC, value, reason, {"bare": (bare or [])[:MOST_SHOWN]})
