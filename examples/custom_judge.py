"""A judge of one's own.

How careful is a report with its numbers? This judge counts those that come with an uncertainty, an interval or a p
value beside them, and scores runs that are in the store already: nothing is executed again.
"""

import re

import pandas as pd

import labmates
from labmates.judges.base import Report, Score
from labmates.judges.prose import read_prose
from labmates.judges.registry import JUDGES

NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+")
CAREFUL = re.compile(r"±|\bp\s?[<=]|\bCI\b|interval|standard error|uncertain", re.IGNORECASE)


class CareJudge:
    """The share of sentences with measured numbers that say how sure they are."""

    name = "care"
    version = "1"
    metrics = ("care",)

    async def score(self, report: Report) -> list[Score]:
        """Return the share, or why there is none."""
        if report.text is None or report.is_missing:
            return [self._said(None, "there is no report")]
        sentences = re.split(r"(?<=[.!?])\s+|\n", read_prose(report.text).text)
        measured = [one for one in sentences if NUMBER.search(one)]
        if not measured:
            return [self._said(None, "no sentence has a measured number")]
        careful = sum(CAREFUL.search(one) is not None for one in measured)
        return [self._said(careful / len(measured), f"{careful} of {len(measured)} sentences say how sure they are")]

    def _said(self, value: float | None, reason: str) -> Score:
        return Score(self.name, self.version, "care", value, reason)


JUDGES.register("care", CareJudge)
STORE = "sqlite:///judged.db"
runs = [
    run
    for model in ("scripted:diligent", "scripted:silent")
    for run in labmates.run("science", task="ecology", difficulty="easy", model=model, store=STORE)
]
labmates.judge([run.id for run in runs], ["care"], store=STORE)

scores = labmates.load("scores", store=STORE)
for run in runs:
    [own] = scores[(scores.run == run.id) & (scores.judge == "care")].to_dict("records")
    value = "unscored" if pd.isna(own["value"]) else f"{own['value']:.2f}"
    print(f"{run.models[0]:<20} care {value:<9} {own['reason']}")
