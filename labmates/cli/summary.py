"""Summaries of ended runs: status, budget, scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from labmates.budgets.money import parse_dollars, show_dollars
from labmates.cli.console import say
from labmates.cli.tables import print_grid
from labmates.workflows.protocol.experiment import EXPERIMENTS

if TYPE_CHECKING:
    from labmates.records.events import Event, ScoreEvent
    from labmates.records.run import RunRecord, Usage
    from labmates.records.store import Store
    from labmates.studies.judging import JudgingUsage


_REMEDIES = {
    "cut": "Cut replies need more room: a higher --max-output-tokens, or more money.",
    "no tool call": "Whether a server passes tool calls on: labmates models check MODEL",
}
"""What helps against the commonest faults of replies, by the beginning of the reason."""
_MOST_REASONS, _LONGEST_REASON = 3, 60
_BILL_SOURCES = {"server": "as the server reports", "table": "by the price table"}


def print_summary(store: Store, runs: list[RunRecord]) -> None:
    """Print a table of runs, or a single run with its budget and scores."""
    if len(runs) == 1:
        print_run(store, runs[0])
    else:
        shown = EXPERIMENTS.get(runs[0].kind).headline
        names = (name.replace("_", " ") for name in shown)
        headings = ["run", "seed", "status", *names, "credits", "bill", "seconds"]
        rows = []
        for run in runs:
            metrics = [_number(run.metrics.get(name)) for name in shown]
            spent = show_dollars(parse_dollars(run.budget["spent"])) if run.budget else ""
            rows.append([run.id, str(run.seed), run.standing, *metrics, spent, show_bill(run), f"{run.seconds:.1f}"])
        print_grid(headings, rows, [heading not in ("run", "status") for heading in headings])
        _print_failures(
            event for run in runs if run.usage.failed_replies for event in store.events(run.id, kind="failed_reply")
        )
    hint = runs[0].id if len(runs) == 1 else "RUN"
    say(f"\nThe whole story: labmates show {hint}")
    if EXPERIMENTS.get(runs[0].kind).report:
        say(f"The report alone: labmates show {hint} --report")


def show_bill(run: RunRecord) -> str:
    """The providers' bill for a run, and apart from it what lost attempts may have cost."""
    bill = "unknown" if run.bill is None else show_dollars(parse_dollars(run.bill))
    return f"{bill} + up to {show_dollars(run.usage.uncertain)}" if run.usage.uncertain else bill


def _sources(events: Iterable[Event]) -> str:
    """The sources of a run's bill, in words; empty if no provider charges anything."""
    from labmates.records.events import ChargeEvent

    sources = {
        event.bill_from for event in events if isinstance(event, ChargeEvent) and event.bill and not event.cached
    }
    known = [text for source, text in _BILL_SOURCES.items() if source in sources]
    return f" ({', partly '.join(known)})" if known else ""


def _lost(usage: Usage) -> str:
    """For what a bill is uncertain, in words."""
    return f" for {usage.uncertain_attempts} attempts without a reply" if usage.uncertain else ""


def _parts(usage: Usage) -> str:
    """The cached, cache-written and reasoning tokens, in words."""
    parts = {
        "cached": usage.cached_tokens,
        "cache-written": usage.cache_write_tokens,
        "reasoning": usage.reasoning_tokens,
    }
    parts_text = ", ".join(f"{count:,} {name}" for name, count in parts.items() if count)
    return f" ({parts_text})" if parts_text else ""


def print_run(store: Store, run: RunRecord) -> None:
    """Print one run's status, budget and scores."""
    from labmates.records.events import ScoreEvent
    from labmates.studies.judging import judging_usage

    usage = run.usage
    code = ""
    # A plug-in's run is summarised even if the plug-in is not installed.
    if run.kind in EXPERIMENTS and EXPERIMENTS.get(run.kind).needs_sandbox:
        code = f", {usage.tool_calls} tool calls; code ran in: {run.sandbox or 'no sandbox'}"
    events = store.events(run.id)
    settings = ", ".join([run.kind, *run.models, f"seed {run.seed}"])
    say(
        f"\nRun {run.id} ({settings}): {run.standing} in {run.seconds:.1f} s, "
        f"{usage.llm_calls} calls, {usage.input_tokens + usage.output_tokens:,} tokens{_parts(usage)}, "
        f"bill {show_bill(run)}{_sources(events)}{_lost(usage)}, "
        f"{usage.failed_replies} failed replies{code}",
    )
    if run.invalid:
        say(f"Invalid: {run.invalid}", style="red")
    _print_failures(events)
    if run.origin is not None:
        origin, _, number = run.fork_point.partition("@")
        which = f", continuation {run.continuation}" if run.continuation else ""
        say(f"Forked from the run {origin} at event {number}{which}.")
    if run.digest is not None:
        say(f"Digest: {run.digest}", style="dim")
    if run.budget is not None:
        _print_budget(run, events)
    scores = [event for event in events if isinstance(event, ScoreEvent)]
    if scores:
        _print_scores(scores)
        if orders := {text for score in scores for text in score.details.get("injections", ())}:
            warning = "passages of the report may address the judge; each score's details give their effect."
            say(f"{len(orders)} {warning}", style="red")
    if used := judging_usage(events):
        _print_judging(used)
    if not scores and run.metrics:
        shown = (f"  {name.replace('_', ' '):<24} {value:.3f}" for name, value in run.metrics.items())
        say("\n".join(["Metrics", *shown]))


def _print_failures(events: Iterable[Event]) -> None:
    from labmates.records.events import FailedReplyEvent

    reasons = Counter(event.reason for event in events if isinstance(event, FailedReplyEvent))
    print_unusable(reasons.most_common(_MOST_REASONS))


def print_unusable(commonest: Sequence[tuple[str, int]]) -> None:
    """Print the commonest reasons why replies could not be used, each with its number, and what helps."""
    from labmates.models.error_bodies import one_line

    if commonest:
        told = (f"{one_line(reason, _LONGEST_REASON)} ({number})" for reason, number in commonest)
        say(f"Failed replies: {'; '.join(told)}")
    for beginning, remedy in _REMEDIES.items():
        if any(reason.startswith(beginning) for reason, _ in commonest):
            say(remedy)


def _print_budget(run: RunRecord, events: list[Event]) -> None:
    from labmates.records.events import ChargeEvent

    assert run.budget is not None
    spent: dict[str, list[int]] = {}
    for event in events:
        if isinstance(event, ChargeEvent):
            row = spent.setdefault(event.team, [0, 0, 0, 0])
            for i, amount in enumerate((1, event.input_tokens, event.output_tokens, event.amount)):
                row[i] += amount
    rows = [
        (team, str(charges), f"{inputs:,}", f"{outputs:,}", show_dollars(amount))
        for team, (charges, inputs, outputs, amount) in spent.items()
    ]
    whole, all_spent, left = (show_dollars(parse_dollars(run.budget[name])) for name in ("total", "spent", "remaining"))
    rows += [("all", "", "", "", all_spent), (f"left of {whole}", "", "", "", left)]
    print_grid(
        ["team", "charges", "tokens in", "tokens out", "spent"], rows, [False, True, True, True, True], title="Budget"
    )


def _print_scores(scores: list[ScoreEvent]) -> None:
    rows = [(f"{score.judge} {score.version}", score.metric, _number(score.value), score.reason) for score in scores]
    print_grid(["judge", "metric", "score", "reason"], rows, [False, False, True, False], title="Scores")


def _print_judging(used: list[JudgingUsage]) -> None:
    rows = [
        (usage.judge, str(usage.calls), f"{usage.input_tokens:,}", f"{usage.output_tokens:,}", show_dollars(usage.cost))
        for usage in used
    ]
    print_grid(
        ["judge", "calls", "tokens in", "tokens out", "cost"],
        rows,
        [False, True, True, True, True],
        title="Judging (outside the budget)",
    )


def _number(value: float | None) -> str:
    return "unscored" if value is None else f"{value:.3f}"
