"""The tables of `labmates show` for a lab run: its findings, the claims that failed, and its seats."""

from __future__ import annotations

from collections.abc import Iterator

from labmates.budgets.money import show_dollars
from labmates.records.reading import RunReader
from labmates.stats.tables import Column, Table
from labmates.tasks.registry import get_task
from labmates.util.seeds import derive
from labmates.workflows.science.analyses.page import Finding, findings, provenance, verified
from labmates.workflows.science.analyses.team_page import parts_of_seats
from labmates.workflows.science.lab.condition import ScienceCondition, science_condition


def tables(reader: RunReader) -> Iterator[Table]:
    """Findings with their credit, and failed claims, once the run is scored; and the seats."""
    if details := verified(reader):
        columns = [Column("finding"), Column("stated"), Column("true"), Column("credit", form=".2f")]
        columns += [Column("weight", form="g"), Column("reason")]
        yield Table("findings", "Findings", columns, map(_row, findings(details)))
    failed = [
        {"status": status, "claim": claim["claim"], "printed line": claim["in"]}
        for status, claims, _ in (provenance(reader) or {"groups": ()})["groups"]
        for claim in claims
        if status != "computed"
    ]
    if failed:
        yield Table("claims", "Claims of the paper that failed", None, failed)
    if (condition := science_condition(reader.run)) is not None:
        yield _seats(reader, condition)


def _row(finding: Finding) -> dict[str, object]:
    return {
        "finding": finding.name,
        "stated": "; ".join(finding.stated.splitlines()) or None,
        "true": "; ".join(finding.true.splitlines()) or None,
        "credit": finding.credit,
        "weight": finding.weight,
        "reason": finding.reason,
    }


def _seats(reader: RunReader, condition: ScienceCondition) -> Table:
    """The seats with their part of the data and their share of the work."""
    calls, charges = reader.all("llm_call"), reader.all("charge")
    seats = {seat: team.name for team in condition.teams for seat in team.seats}
    seats |= {call.agent: call.team for call in calls if call.agent not in seats}
    parts = parts_of_seats(condition, seats)
    own = {name: seat.outside for name, (_, seat) in condition.organisation.seats.items() if seat.outside}
    rows = [
        {
            "team": team,
            "seat": seat,
            **({"agent": own.get(seat, "model")} if own else {}),
            "model": condition.model_of(seat),
            "part": parts[seat] or "all data",
            "calls": sum(call.agent == seat and not call.is_outside for call in calls),
            "spent": show_dollars(sum(charge.amount for charge in charges if charge.agent == seat)),
        }
        for seat, team in seats.items()
    ]
    notes = []
    if not get_task(condition.task).is_fixed:
        seed = derive(reader.run.seed, "dataset")
        salt = " and a private salt" if reader.run.settings.get("salt") else ""
        notes = [f"{condition.task.capitalize()}, {condition.difficulty}: data set of the seed {seed}{salt}."]
    arm = f", arm {condition.arm}" if condition.arm != "team" else ""
    title = f"Seats: organisation {condition.organisation.name}, evidence {condition.evidence}{arm}"
    return Table("seats", title, None, rows, notes)
