"""The handoff of findings between teams: the share of the paper's claims in earlier work, and where truth was lost.

Source: teams in the science lab of the cooperative-profiles paper hand their work on through artifacts (section 4.1);
this audit is our own. It compares texts by rules, without a model:

- A *claim* is a number in the paper's prose with at least two digits, or an item of its findings. It is *traced* if an
  artifact of an earlier team, or the output of code, holds it: a number to its written digits, a finding with all its
  names and numbers in one row (`judges.rows`). Short numbers also match by chance, so the traced share is an upper
  bound.
- A *true finding* is an item of the task's oracle. A team *has* it if its stated findings or a row of its artifacts and
  summaries would earn at least half of its credit (`judges.findings_rules`); the output of code holds many numbers that
  are equal by chance. It *first* appears at the first team that has it. If the paper lacks it, it was *lost* at the
  team after the last team that handed it on, or at the last team whose earlier version has it, if later. Prose is read
  literally, so a synonym hides a finding.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, Final

from pydantic import BaseModel

from labmates.judges.base import Report, Score, Trace
from labmates.judges.extraction import read_statement
from labmates.judges.findings_rules import LEAST_CREDIT, Finder, is_source, items_of, record_keys
from labmates.judges.prose import read_prose, statements
from labmates.judges.rows import Number, Row, agrees_with_any, read_numbers, rows_of
from labmates.util.grouping import grouped
from labmates.util.loops import in_thread

LEAST_DIGITS: Final = 2
MOST_KEPT: Final = 200
"""Most untraced claims and true findings listed in the details; counts include all."""


@dataclass(frozen=True)
class Passage:
    """The path of one true finding through the teams.

    Attributes
    ----------
    finding, item
        The field, and the item in words.
    first
        The first team that had it; None if none did.
    lost
        The team that lost it; None if the paper has it or no team had it.
    """

    finding: str
    item: str
    first: str | None
    lost: str | None


@dataclass(frozen=True)
class Audit:
    """The result of an audit: the numbers of claims and of traced claims, and the paths of the true findings."""

    claims: int
    traced: int
    untraced: tuple[str, ...]
    passages: tuple[Passage, ...]

    def as_json(self) -> dict[str, Any]:
        """The audit as JSON data, with long lists cut."""
        return {
            "claims": self.claims,
            "traced": self.traced,
            "untraced": list(self.untraced[:MOST_KEPT]),
            "findings": [dict(vars(passage)) for passage in self.passages[:MOST_KEPT]],
        }


def audit(report: Report, findings: BaseModel | None) -> Audit:
    """Follow the findings of a report through its trail.

    Parameters
    ----------
    findings
        The report's readable findings.
    """
    records = record_keys(report.task.findings)
    earlier = [
        (trace, list(rows_of(trace.text, records, prose=trace.kind in ("artifact", "summary"))))
        for trace in report.trail
        if trace.team in report.stages[:-1]
    ]
    rows = [row for _, trace_rows in earlier for row in trace_rows]
    numbers, items = _numbers(report.text or ""), items_of(findings) if findings is not None else []
    sources = sorted((number for row in rows for number in row.numbers), key=attrgetter("value"))
    untraced = [text for text, forms in numbers.items() if not any(agrees_with_any(form, sources) for form in forms)]
    untraced += [f"{item.finding}: {item}" for item in items if not any(is_source(row, item) for row in rows)]
    claims = len(numbers) + len(items)
    paper = list(rows_of(report.text or "", records))
    if report.stated is not None:
        paper += rows_of(json.dumps(report.stated), records)
    return Audit(claims, claims - len(untraced), tuple(untraced), tuple(_passages(report, earlier, paper)))


def is_unseen(details: Mapping[str, Any], finding: str) -> bool:
    """Whether no team had the only true item of a finding, although the paper states another value that earns credit.

    The audit looks for one of several equally right values; `details` are those of a score of the judge ``verified``.
    """
    found = details.get("handoff", {}).get("findings", ())
    passages = [passage for passage in found if passage["finding"] == finding]
    credits = {entry["finding"]: entry["credit"] for entry in details.get("credits", ())}
    return len(passages) == 1 and not passages[0]["first"] and (credits.get(finding) or 0) >= LEAST_CREDIT


def _numbers(text: str) -> dict[str, list[Number]]:
    """The distinct numbers in the prose by their text, each with all its readings."""
    return grouped(
        (number.text, number)
        for statement in statements(read_prose(text).text)
        for number in read_numbers(statement)
        if number.digits >= LEAST_DIGITS
    )


def _passages(report: Report, earlier: Sequence[tuple[Trace, list[Row]]], paper: list[Row]) -> Iterator[Passage]:
    finder = Finder(report.task, report.truth)
    earlier = [(trace, rows) for trace, rows in earlier if trace.kind != "output"]
    newest = {(trace.team, trace.kind, trace.name): trace for trace, _ in earlier}
    handed: dict[str, list[Row]] = {team: [] for team in report.stages}
    shown: dict[str, list[Row]] = {team: [] for team in report.stages}
    for trace, rows in earlier:
        is_handed = newest[trace.team, trace.kind, trace.name] is trace
        (handed if is_handed else shown)[trace.team] += rows
    handed[report.stages[-1]] += paper
    for item in items_of(report.task.oracle(report.truth)):
        handers = [team for team in report.stages if any(finder.holds(row, item) for row in handed[team])]
        seen = [t for t in report.stages if t in handers or any(finder.holds(row, item) for row in shown[t])]
        yield Passage(item.finding, str(item), seen[0] if seen else None, _lost(report.stages, handers, seen))


def _lost(stages: tuple[str, ...], handers: list[str], seen: list[str]) -> str | None:
    if not seen or seen[-1] == stages[-1]:
        return None
    last = seen[-1]
    return stages[stages.index(last) + 1] if last in handers else last


class HandoffJudge:
    """The share of the paper's claims that occur in earlier work."""

    name = "handoff"
    version = "3"
    metrics = ("traced",)

    async def score(self, report: Report) -> list[Score]:
        """The traced share; None for a report without claims or without recorded earlier work."""
        if not report.trail:
            return [self._score(None, "nothing is known of what the teams left behind")]
        findings = read_statement(report).read.findings
        audited = await in_thread(partial(audit, report, findings), unless=report.is_short)
        details = {"task": report.task_facts, **audited.as_json()}
        if not audited.claims:
            return [self._score(None, "the paper states no number and no finding", details)]
        lost = sum(passage.lost is not None for passage in audited.passages)
        reason = f"{audited.traced} of {audited.claims} claims stand in earlier work; {lost} true findings were lost"
        return [self._score(audited.traced / audited.claims, reason, details)]

    def _score(self, value: float | None, reason: str, details: dict[str, Any] | None = None) -> Score:
        return Score(self.name, self.version, "traced", value, reason, details or {})
