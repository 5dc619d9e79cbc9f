"""``labmates show RUN``: a run's events in the terminal."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from labmates.cli.common import store_option
from labmates.cli.console import clean, out, print_json, quote, say
from labmates.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from labmates.records.bodies import Bodies
    from labmates.records.events import Event, LLMCallEvent
    from labmates.records.run import RunRecord
    from labmates.records.store import Store
    from labmates.stats.tables import Table
    from labmates.viewer.event_items import Text

MOST_CHARS = 100
_STYLES = {
    **dict.fromkeys(("llm_call", "judge_call", "environment"), "cyan"),
    **dict.fromkeys(("tool_call", "decision"), "green"),
    **dict.fromkeys(("message", "request", "approval"), "yellow"),
    **dict.fromkeys(("artifact", "findings"), "magenta"),
    **dict.fromkeys(("phase", "payoff"), "bold"),
    **dict.fromkeys(("failed_reply", "warning", "error"), "red"),
}
_SUMMED_UP = ("charge", "score", "label")
"""Types that are shown at the end of the run."""
_ASIDE = ("reasoning", "the text as sent")


def list_events(store: Store, run: RunRecord, *, as_json: bool) -> None:
    """Print the events of a run: number, seconds since its first one, team, agent, type, step, and a few words."""
    from labmates.records.bodies import Bodies

    events = store.events(run.id)
    bodies = Bodies(store.bodies(run.id))
    start = events[0].at if events else 0.0
    for number, event in enumerate(events):
        seconds, words = event.at - start, _words(event, bodies)
        if as_json:
            where = {"team": event.team, "agent": event.agent, "type": event.type, "step": event.step}
            print_json({"number": number, "seconds": round(seconds, 3), **where, "text": words})
        else:
            line = f"{number:>5} {seconds:>9.2f} s  {_who(event):<24} {event.type:<12} {event.step:<36} {words}"
            out().print(clean(line).rstrip(), soft_wrap=True)


def _words(event: Event, bodies: Bodies) -> str:
    from labmates.budgets.money import show_dollars
    from labmates.viewer.event_items import title_of

    title = title_of(event, bodies)
    texts = [text.body for text in _texts(event, bodies)] if event.type in ("llm_call", "message", "request") else []
    line = show_dollars(event.amount) if event.type == "charge" else " ".join(": ".join([title, *texts[:1]]).split())
    short = line if len(line) <= MOST_CHARS else f"{line[:MOST_CHARS]} …"
    return f"[cached] {short}" if getattr(event, "cached", False) else short


def _texts(event: Event, bodies: Bodies) -> list[Text]:
    """The texts of an event, without those of other events and what the model thought."""
    from labmates.viewer.event_items import texts_of

    texts = texts_of(event, bodies, whole=False)
    return [text for text in texts if text.body.strip() and text.label not in _ASIDE]


def _who(event: Event) -> str:
    return "/".join(filter(None, (event.team, event.agent)))


def _speaker(event: Event) -> str:
    """Who acts; with the step if that alone tells the seat, as where a model plays against itself."""
    if event.agent and event.agent not in event.step and event.step.startswith(event.team):
        return f"{event.agent} at {event.step}"
    return _who(event)


SHORT_CHARS = 400


@click.command(epilog="Example: labmates show 3f9a2c41d7 --report")
@click.argument("run_id", metavar="RUN")
@store_option
@click.option("--report", is_flag=True, help="Print only the report.")
@click.option("--artifact", metavar="NAME", help="Print only the newest version of one artifact.")
@click.option("--events", "as_events", is_flag=True, help="List the events, one a line, with their numbers.")
@click.option("--full", is_flag=True, help="Print all texts in full.")
@click.option("--prompts", is_flag=True, help="Also print the messages sent to models, each once.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the run as one JSON object; with --events, each event as one."
)
def show(
    run_id: str,
    store: str | None,
    report: bool,
    artifact: str | None,
    as_events: bool,
    full: bool,
    prompts: bool,
    as_json: bool,
) -> int:
    """Show a run: phases, messages, code and its output, artifacts, findings and credit, seats, budget, scores."""
    from labmates.agents.organisation_parts import REPORT
    from labmates.budgets.money import format_dollars
    from labmates.cli.summary import print_run
    from labmates.cli.tables import print_tables
    from labmates.records.bodies import Bodies
    from labmates.records.events import LLMCallEvent
    from labmates.records.reading import newest_artifact
    from labmates.records.store import Store
    from labmates.records.view import run_json
    from labmates.studies.judging import judging_usage
    from labmates.studies.runs import so_far

    with Store(store, must_exist=True) as database:
        run = so_far(database, database.run(run_id))
        if as_events:
            list_events(database, run, as_json=as_json)
            return 0
        if as_json:
            judging = judging_usage(database.events(run.id))
            used = [{**asdict(usage), "cost": format_dollars(usage.cost)} for usage in judging]
            tables = {table.name: table.rows for table in _tables(database, run)}
            print_json({**run_json(run, database.scores(run.id)), "judging": used, "tables": tables})
            return 0
        if report or artifact:
            text = newest_artifact(database, run.id, artifact or REPORT)
            if text is None:
                kept = {event.name for event in database.events(run.id, kind="artifact") if event.type == "artifact"}
                there = ", ".join(sorted(kept)) or "none"
                raise UsageError(f"run {run.id} has no artifact '{artifact or REPORT}'; it has: {there}")
            quote(text)
            return 0
        bodies = Bodies(database.bodies(run.id))
        most = None if full else SHORT_CHARS
        shown: set[int] = set()
        for event in database.events(run.id):
            if prompts and isinstance(event, LLMCallEvent):
                _prompts(event, bodies, shown, most)
            _tell(event, bodies, most)
        print_tables(list(_tables(database, run)))
        print_run(database, run)
        if run.error:
            say(f"Error: {run.error}")
    return 0


def _tables(store: Store, run: RunRecord) -> Iterable[Table]:
    """The tables that the run's experiment shows of it; none if it is not installed."""
    from labmates.records.reading import RunReader
    from labmates.workflows.protocol.experiment import EXPERIMENTS

    make = EXPERIMENTS.get(run.kind).tables if run.kind in EXPERIMENTS else None
    return () if make is None else make(RunReader(store, run))


def _prompts(event: LLMCallEvent, bodies: Bodies, shown: set[int], most: int | None) -> None:
    """Print a call's new messages, without replies and tool results, which are printed as events."""
    from labmates.pages.rendering import as_text

    who = _speaker(event) or event.judge
    for number in event.messages:
        message = bodies[number]
        if number not in shown and message["role"] in ("system", "user"):
            shown.add(number)
            say(f"{who} reads ({message['role']}):", "blue")
            _text(as_text(message["content"]), most)


def _tell(event: Event, bodies: Bodies, most: int | None) -> None:
    """Print one event; texts are indented under its line."""
    from labmates.records.event_text import heading
    from labmates.studies.progress import team_title

    title, who = heading(event), _speaker(event)
    if event.type in _SUMMED_UP:
        return
    if event.type == "phase":
        who, title = "", f"\n== {team_title(event.team)}, {title} =="
    comma = "," if event.type == "decision" and (event.round or event.match) else ":"
    style = "red" if event.type == "decision" and event.failed else _STYLES[event.type]
    say(f"{who}{comma} {title}" if who else title, style)
    for text in _texts(event, bodies):
        _text(f"{text.label}: {text.body}" if text.label else text.body, most)


def _text(text: str, most: int | None) -> None:
    if not text.strip():
        return
    whole = text.rstrip()
    shown = whole if most is None or len(whole) <= most else f"{whole[:most]} … ({len(whole) - most} more characters)"
    quote("\n".join(f"    {line}" for line in shown.splitlines()))
