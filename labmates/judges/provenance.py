"""Provenance of a report: the share of its stated findings that the run's code computed.

Source: the papers rate the quality of a text by its words; this audit is our own. It uses rules, without a model.

- A *claim* is what one stated finding says: its value, an entry of a list, or a number of an entry. The value of a
  finding is the mean over its claims, and that of the report the mean over its findings.
- A claim is *computed* if code printed its value where the words beside it (of the line, of the column, of the lines
  above) name the same subject and the same statistic. A subject is named by a word of its name, an unambiguous prefix
  of three letters or more, or a variable to which the code assigns something of that name; a statistic by a word of
  the finding's name or description. A column or line that names another statistic (an error, a p-value, a count) names
  another one. A number beside a group, or in brackets with one, belongs to that group.
- A name is computed if the brackets, the column or the part of a line that hold it name its finding, or if printed
  values select it: those of the finding's names are the largest or smallest of their statistic. Where an output lists
  the finding under its whole name, no other output does. A yes or no needs a test that says so. An arrow, or source
  before target, says which of two names changes the other. A sign beside a name or a size has to be the stated one.
- Values agree when rounded to the digits of the coarser one; whole numbers of counts agree exactly. The mean of two
  values printed for the same subject and statistic counts as printed, as does the number of entries of a list. The
  numbers of an entry without a name count if one row has all of them and names one.
- Where so many values were printed for each subject of a list that one may agree by chance (of whole numbers: a tenth
  of those of its size), these claims need one output that has most of them, or all if one digit is stated. A key, an
  entry of a ranking, or one of several tries with their fits counts if it is among as many first as the list has.
- A claim is *contradicted* if its subject and statistic were printed with other values and never with this one.
  Otherwise, and in lists whose entries have no name, it is *not found*. Both earn nothing.
- Numbers outside the findings are only counted, as printed somewhere or nowhere.

Numbers and names that the code itself states, also under a variable that it prints, rows of the data and the numbers of
rows are not computed. Limits: code that calculates something else than it says deceives the audit, and so does a number
that is right by chance under the right name; labels that only their writer understands are not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final

from pydantic import BaseModel

from labmates.judges.base import Report
from labmates.judges.lookup import MOST_SHOWN, STATUSES, Book, Claim, Status
from labmates.judges.printed import Printed, read_outputs
from labmates.judges.prose import read_prose, statements
from labmates.judges.rows import agrees_with_any, read_numbers
from labmates.judges.stated import claims_of

METRIC: Final = "provenance"
MOST_TOLD: Final = 60
"""Most claims of each status in the details; counts include all."""


@dataclass(frozen=True)
class Provenance:
    """The result of an audit; `printed` and `nowhere` count the numbers of the text outside the findings."""

    value: float
    reason: str
    claims: tuple[Claim, ...] = ()
    printed: int = 0
    nowhere: int = 0

    def count(self, status: Status) -> int:
        """The number of claims with a status."""
        return sum(claim.status == status for claim in self.claims)

    def as_json(self) -> dict[str, Any]:
        """The audit as JSON data: counts of all claims, and the first claims of each status."""
        return {
            "claims": {status: self.count(status) for status in STATUSES},
            "findings": shares(self.claims),
            "numbers": {"printed": self.printed, "nowhere": self.nowhere},
            **{
                status.replace(" ", "_"): [
                    {"claim": f"{claim.finding}: {claim.text}", "in": claim.line[:MOST_SHOWN]}
                    for claim in self.claims
                    if claim.status == status
                ][:MOST_TOLD]
                for status in STATUSES
            },
        }


def audit(report: Report, findings: BaseModel | None) -> Provenance:
    """Look up the stated findings of a report in the outputs of the run's code."""
    if report.is_missing:
        return Provenance(0.0, "there is no report")
    outputs = [(trace.text, trace.code) for trace in report.trail if trace.kind == "output" and trace.text.strip()]
    if not outputs:
        return Provenance(0.0, "the run printed nothing that could support the paper")
    printed = read_outputs(outputs, report.columns)
    numbers = _counted(report.text or "", printed)
    if findings is None or not (asked := claims_of(findings)):
        return Provenance(0.0, "the paper states no finding that could be looked up", (), *numbers)
    book = Book(printed, findings, report.columns)
    claims = tuple(_of_one_source([book.judge(one) for one in asked]))
    by_finding = shares(claims)
    value = sum(by_finding.values()) / len(by_finding)
    at_odds = sum(claim.status == "contradicted" for claim in claims)
    reason = (
        f"{sum(claim.status == 'computed' for claim in claims)} of {len(claims)} claims in {len(by_finding)} findings "
        f"were computed, {at_odds} contradicted; other numbers: {numbers[0]} printed, {numbers[1]} nowhere"
    )
    return Provenance(value, reason, claims, *numbers)


def _of_one_source(claims: Sequence[Claim]) -> Iterator[Claim]:
    """Claims, without those of a list whose subjects have many values each, unless one output has most of the list."""
    lists = dict[str, list[Claim]]()
    for claim in claims:
        if claim.is_of_many:
            lists.setdefault(claim.finding, []).append(claim)
    sources = {name: Counter(output for one in of for output in one.outputs) for name, of in lists.items()}
    lacking = {name for name, of in lists.items() if max(sources[name].values(), default=0) < _needed(of)}
    for claim in claims:
        is_chance = claim.status == "computed" and claim.is_of_many and claim.finding in lacking
        yield replace(claim, status="not found", line="") if is_chance else claim


def _needed(of: Sequence[Claim]) -> int:
    """How many claims of a list one output has to have: all of those with few digits, else most."""
    return len(of) if all(claim.is_coarse for claim in of if claim.status == "computed") else len(of) // 2 + 1


def shares(claims: Iterable[Claim]) -> dict[str, float]:
    """The share of computed claims, by finding."""
    of = dict[str, list[bool]]()
    for claim in claims:
        of.setdefault(claim.finding, []).append(claim.status == "computed")
    return {name: sum(found) / len(found) for name, found in of.items()}


def _counted(text: str, printed: Printed) -> tuple[int, int]:
    """How many numbers of a text with a decimal point or three digits were printed, and how many were not."""
    sources = sorted((cell.number for cell in printed.cells if not cell.is_size), key=attrgetter("value"))
    numbers = {n.text: n for said in statements(read_prose(text).text) for n in read_numbers(said)}
    told = [n for n in numbers.values() if n.half > 0 or n.value >= 100]
    found = sum(agrees_with_any(number, sources) for number in told)
    return found, len(told) - found
