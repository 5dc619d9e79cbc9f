"""What is printed of ended runs: status, budget, scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labmates.budgets.money import parse_dollars, show_dollars
from labmates.cli.console import out
from labmates.records.events import ChargeEvent, Event, ScoreEvent
from labmates.workflows.kinds import KINDS

if TYPE_CHECKING:
    from rich.table import Table

    from labmates.records.run import RunRecord
    from labmates.records.store import Store
    from labmates.studies.judging import JudgingUsage


def print_summary(store: Store, runs: list[RunRecord]) -> None:
    """Print a table of runs; for a single one also its budget and all scores."""
    from rich.table import Table

    if len(runs) == 1:
        print_run(store, runs[0])
    else:
        table = Table(box=None, pad_edge=False)
        shown = KINDS.get(runs[0].kind).shown
        for heading in ("run", "seed", "status", *(name.replace("_", " ") for name in shown), "spent", "seconds"):
            table.add_column(heading, justify="left" if heading in ("run", "status") else "right")
        for run in runs:
            metrics = [_number(run.metrics.get(name)) for name in shown]
            spent = show_dollars(parse_dollars(run.budget["spent"])) if run.budget else ""
            table.add_row(run.id, str(run.seed), run.status, *metrics, spent, f"{run.seconds:.1f}")
        out().print(table)
    hint = runs[0].id if len(runs) == 1 else "RUN"
    report = f"      the report: labmates show {hint} --report" if KINDS.get(runs[0].kind).report else ""
    out().print(f"\nThe whole story: labmates show {hint}{report}", markup=False)


def print_run(store: Store, run: RunRecord) -> None:
    """Print one run's status, budget and scores."""
    from labmates.studies.judging import judging_usage

    usage = run.usage
    kind = f"{run.kind}, one agent alone" if run.condition.get("solo") else run.kind
    code = ""
    if KINDS.get(run.kind).uses_code:
        code = f", {usage.tool_calls} tool calls; code ran in: {run.sandbox or 'no sandbox'}"
    out().print(
        f"\nRun {run.id} ({kind}, {', '.join(run.models)}, seed {run.seed}): {run.status} in {run.seconds:.1f} s, "
        f"{usage.llm_calls} calls, {usage.input_tokens + usage.output_tokens:,} tokens, "
        f"{usage.failed_replies} failed replies{code}",
        markup=False,
    )
    if run.origin is not None:
        origin, _, number = run.origin.partition("@")
        out().print(f"Forked from the run {origin} at event {number}.", markup=False)
    events = store.events(run.id)
    if run.budget is not None:
        out().print(budget_table(run, events))
    scores = [event for event in events if isinstance(event, ScoreEvent)]
    if scores:
        out().print(score_table(scores))
        if orders := {text for score in scores for text in score.details.get("injections", ())}:
            out().print(f"{len(orders)} sentences of the report address the judge; they were left out.", style="red")
    if used := judging_usage(events):
        out().print(judging_table(used))
    if not scores and run.metrics:
        shown = (f"  {name.replace('_', ' '):<24} {value:.3f}" for name, value in run.metrics.items())
        out().print("\n".join(["Metrics", *shown]), markup=False)


def budget_table(run: RunRecord, events: list[Event]) -> Table:
    """Return what each team spent."""
    from rich.table import Table

    assert run.budget is not None
    spent: dict[str, list[int]] = {}
    for event in events:
        if isinstance(event, ChargeEvent):
            row = spent.setdefault(event.team, [0, 0, 0, 0])
            for i, amount in enumerate((1, event.input_tokens, event.output_tokens, event.amount)):
                row[i] += amount
    table = Table(title="Budget", title_justify="left", box=None, pad_edge=False)
    for heading in ("team", "charges", "tokens in", "tokens out", "spent"):
        table.add_column(heading, justify="left" if heading == "team" else "right")
    for team, (charges, inputs, outputs, amount) in spent.items():
        table.add_row(team, str(charges), f"{inputs:,}", f"{outputs:,}", show_dollars(amount))
    table.add_row("all", "", "", "", show_dollars(parse_dollars(run.budget["spent"])), style="bold")
    table.add_row(
        f"left of {show_dollars(parse_dollars(run.budget['total']))}",
        "",
        "",
        "",
        show_dollars(parse_dollars(run.budget["remaining"])),
    )
    return table


def score_table(scores: list[ScoreEvent]) -> Table:
    """Return all scores with their reasons."""
    from rich.table import Table
    from rich.text import Text

    from labmates.cli.console import clean

    table = Table(title="Scores", title_justify="left", box=None, pad_edge=False)
    for heading in ("judge", "metric", "score", "reason"):
        table.add_column(heading, justify="right" if heading == "score" else "left")
    for score in scores:
        reason = Text(clean(score.reason))
        table.add_row(f"{score.judge} {score.version}", score.metric, _number(score.value), reason)
    return table


def judging_table(used: list[JudgingUsage]) -> Table:
    """Return what judges used; no part of the budget."""
    from rich.table import Table

    table = Table(title="Judging (no part of the budget)", title_justify="left", box=None, pad_edge=False)
    for heading in ("judge", "calls", "tokens in", "tokens out", "cost"):
        table.add_column(heading, justify="left" if heading == "judge" else "right")
    for one in used:
        table.add_row(
            one.judge, str(one.calls), f"{one.input_tokens:,}", f"{one.output_tokens:,}", show_dollars(one.cost)
        )
    return table


def handoff_table(scores: list[ScoreEvent]) -> Table | None:
    """Return how true findings came through the teams' hands, by finding; None if that is not known."""
    from collections import Counter

    from rich.table import Table

    found = [score.details["handoff"] for score in scores if "findings" in score.details.get("handoff", {})]
    if not found:
        return None
    audit = found[-1]
    title = f"Handoff: {audit['traced']} of {audit['claims']} claims of the paper stand in earlier work"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for heading in ("finding", "true", "first at", "lost at"):
        table.add_column(heading, justify="right" if heading == "true" else "left")
    findings = Counter((one["finding"], one["first"], one["lost"]) for one in audit["findings"])
    for (finding, first, lost), number in findings.items():
        table.add_row(finding, str(number), first or "never found", lost or "")
    return table


def _number(value: float | None) -> str:
    return "unscored" if value is None else f"{value:.3f}"


def team_title(name: str) -> str:
    """Return what to call a team in a text for people."""
    from labmates.agents.roles import SOLO

    return "one agent alone" if name == SOLO.name else f"{name} team"
