"""A report's findings: those that its author stated with the tool, or those in its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel

from labmates.judges.base import Report
from labmates.tasks.findings import ReadFindings, check_findings, read_findings

Source = Literal["tool", "report", "extracted", "none"]


@dataclass(frozen=True)
class Statement:
    """The findings of a report and where they come from.

    Attributes
    ----------
    read
        What could be read.
    source
        The tool, the text of the report, a model that read its prose, or nothing at all.
    repaired
        What was mended before, when they were stated with the tool.
    """

    read: ReadFindings[BaseModel]
    source: Source
    repaired: tuple[Mapping[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The way in which the findings were read, as JSON data."""
        return {
            "source": self.source,
            "readable": self.source != "none",
            "repaired": [*map(dict, self.repaired), *(repair.as_json() for repair in self.read.repaired)],
            "problems": list(self.read.problems),
        }


def read_statement(report: Report) -> Statement:
    """The findings of a report. Those stated with the tool count; a different text is reported."""
    model: type[BaseModel] = report.task.findings
    written = read_findings(report.text or "", model)
    if report.stated is None:
        return Statement(written, "none" if written.findings is None else "report")
    stated = check_findings(report.stated, model)
    if stated.findings is None:
        return Statement(stated, "none")
    differing = [
        f"field '{name}': the report states it otherwise; what was stated with the tool counts"
        for name in model.model_fields
        if (value := getattr(written.findings, name, None)) is not None and value != getattr(stated.findings, name)
    ]
    return Statement(replace(stated, problems=(*stated.problems, *differing)), "tool", report.repaired)
