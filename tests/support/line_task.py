"""A small task as a third party writes it, to be broken in tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from labmates.tasks.base import Check, Credit, Dataset, Difficulty, Task
from labmates.tasks.words import says_all


class LineFindings(BaseModel):
    slope: float | None = Field(None, description="slope of y over x")


class LineTruth(BaseModel):
    slope: float


class LineTask(Task[LineTruth, LineFindings]):
    """One number is to be found."""

    name = "line"
    title = "A line"
    brief = "Find the slope of y over x."
    version = "1"
    findings = LineFindings

    def generate(self, seed: int, difficulty: Difficulty = "medium") -> Dataset[LineTruth]:
        rng = np.random.default_rng([seed, len(difficulty)])
        slope = round(float(rng.uniform(100, 999)) + seed * 1000, 2)
        x = np.round(rng.uniform(0, 1, size=1500), 3)
        frame = pd.DataFrame({"x": x, "y": np.round(slope * x, 1)})
        frame.loc[::50, "y"] = np.nan
        return Dataset(frame, LineTruth(slope=slope), "x and y, without unit")

    def oracle(self, truth: LineTruth) -> LineFindings:
        return LineFindings(slope=truth.slope)

    def prior(self, columns: Sequence[str], difficulty: Difficulty) -> LineFindings:
        return LineFindings()

    def score(self, findings: LineFindings, truth: LineTruth) -> tuple[Credit, ...]:
        return (Credit("slope", float(findings.slope == truth.slope), 1.0, "slope"),)

    def checks(self, truth: LineTruth) -> tuple[Check, ...]:
        return (Check("slope told", says_all(r"slope")),)
