"""The default page of an experiment, made from events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from markupsafe import Markup

from labmates.pages.links import Links
from labmates.pages.rendering import as_text, cut, number, render
from labmates.pages.section import Section
from labmates.pages.svg import line_plot
from labmates.records.reading import RunReader
from labmates.stats.tables import Column, Table
from labmates.workflows.protocol.experiment import EXPERIMENTS

MOST_ROWS: Final = 200
MOST_CHARS: Final = 400
"""Maximum characters of a text in a table."""
MOST_LINES: Final = 12
"""Maximum number of drawn players."""


def default_sections(reader: RunReader, _links: Links) -> Iterator[Section]:
    """Metrics, payoffs as lines, decisions by round and agent, and messages, if present."""
    if reader.run.metrics:
        yield Section("metrics", "Metrics", _metrics(reader))
    if payoffs := reader.all("payoff"):
        yield Section("payoffs", "Payoffs", _payoffs(payoffs))
    if decisions := reader.all("decision"):
        yield _table_section("decisions", "Decisions", _decisions(decisions))
    if messages := reader.all("message"):
        texts = reader.values([message.text for message in messages[:MOST_ROWS]])
        rows = [
            {"from": message.agent or message.team, "to": message.to, "text": cut(as_text(text), MOST_CHARS)}
            for message in messages
            if (text := texts.get(message.text)) is not None
        ]
        yield _table_section("messages", "Messages", rows, len(messages))


def _table_section(anchor: str, title: str, rows: list[dict[str, Any]], total: int | None = None) -> Section:
    left = (len(rows) if total is None else total) - MOST_ROWS
    note = f"{left} more in the story" if left > 0 else ""
    columns = [Column(name) for name in dict.fromkeys(name for row in rows for name in row)]
    return Section(anchor, title, Table(anchor, title, columns, rows[:MOST_ROWS]), note)


def _metrics(reader: RunReader) -> Table:
    kind = reader.run.kind
    declared = {metric.name: metric for metric in EXPERIMENTS.get(kind).metrics} if kind in EXPERIMENTS else {}
    rows = []
    for name, value in reader.run.metrics.items():
        metric = declared.get(name)
        meaning = {"meaning": metric.text, "better": metric.better or ""} if metric else {"meaning": "", "better": ""}
        rows.append({"metric": name, "value": number(value), **meaning})
    return Table("metrics", "Metrics", None, rows)


def _payoffs(payoffs: list[Any]) -> tuple[Markup | Table, ...]:
    lines: dict[str, list[tuple[float, float]]] = {}
    for payoff in payoffs:
        for player, value in payoff.payoffs.items():
            line = lines.setdefault(player, [])
            line.append((len(line) + 1.0, value + (line[-1][1] if line else 0.0)))
    rows = [{"player": player, "payoffs": len(line), "total": number(line[-1][1])} for player, line in lines.items()]
    shown = dict(list(lines.items())[:MOST_LINES])
    drawing = line_plot(shown, "Earnings of each player so far", x_label="payoffs")
    totals = Table("payoffs", "Earnings of each player", None, rows[:MOST_ROWS])
    return render("plot.html", drawing=drawing, names=list(shown)), totals


def _decisions(decisions: list[Any]) -> list[dict[str, Any]]:
    """A row per stage of a round, with a column per agent."""
    rows: dict[tuple[str, int, str], dict[str, Any]] = {}
    for event in decisions:
        match = {"match": event.match} if event.match else {}
        first = {**match, "round": str(event.round), "stage": event.stage}
        row = rows.setdefault((event.match, event.round, event.stage), first)
        agent = event.agent or event.team or "run"
        row[agent] = "; ".join(filter(None, (row.get(agent), _decided(event.decision, failed=event.failed))))
    return list(rows.values())


def _decided(decision: Mapping[str, Any], *, failed: bool) -> str:
    text = ", ".join(f"{name} {value}" for name, value in decision.items())
    return f"failed ({text})" if failed else cut(text, MOST_CHARS)
