"""``labmates show RUN``: a run's events in the terminal."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labmates.cli.common import store_option
from labmates.cli.console import clean, out, print_json
from labmates.errors import UsageError
from labmates.records.event_text import heading

if TYPE_CHECKING:
    from labmates.records.bodies import Bodies
    from labmates.records.events import Event, LLMCallEvent
    from labmates.records.run import RunRecord
    from labmates.records.store import Store

MOST_CHARS = 60


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
            where_ = "/".join(filter(None, (event.team, event.agent)))
            line = f"{number:>5} {seconds:>9.2f} s  {where_:<24} {event.type:<12} {event.step:<36} {words}"
            out().print(clean(line).rstrip(), soft_wrap=True)


def _words(event: Event, bodies: Bodies) -> str:
    from labmates.budgets.money import show_dollars

    text = ""
    match event.type:
        case "phase":
            text = f"phase {event.number + 1} ({event.reason}) {event.status}"
        case "llm_call":
            calls = [call["name"] for call in bodies[event.reply].get("tool_calls", ())]
            content = f"calls {', '.join(calls)}" if calls else bodies[event.reply]["content"]
            text = f"{event.input_tokens} + {event.output_tokens} tokens: {content}"
        case "tool_call":
            text = f"{event.tool} ({event.status or ('ok' if event.ok else 'error')})"
        case "charge":
            text = show_dollars(event.amount)
        case "message":
            text = f"to {event.to}: {bodies.text(event.text)}"
        case "request":
            text = f"{event.kind} to {event.to}: {event.request}"
        case "approval" | "environment":
            text = heading(event)
        case "artifact":
            text = f"{event.name}, version {event.version}{' (partial)' if event.partial else ''}"
        case "findings":
            text = f"version {event.version}: {', '.join(bodies[event.findings]) or 'nothing was found'}"
        case "judge_call":
            text = f"{event.judge}, {event.input_tokens} + {event.output_tokens} tokens"
        case "score":
            text = f"{event.judge} {event.metric}: {'unscored' if event.value is None else f'{event.value:.3f}'}"
        case "label":
            text = f"{event.judge}: {event.reason if event.labels is None else ', '.join(event.labels)}"
        case "failed_reply":
            text = event.reason
        case "warning" | "error":
            text = event.text
    line = " ".join(text.split())
    short = line if len(line) <= MOST_CHARS else f"{line[:MOST_CHARS]} …"
    return f"[cached] {short}" if getattr(event, "cached", False) else short


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
    "--save",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write artifacts, code, figures and files created by code to a new folder.",
)
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
    save: Path | None,
    as_json: bool,
) -> int:
    """Show a run: phases, messages, code and its output, artifacts, budget, scores."""
    from labmates.agents.organisation_parts import REPORT
    from labmates.budgets.money import format_dollars
    from labmates.cli.summary import print_handoff, print_run
    from labmates.records.bodies import Bodies
    from labmates.records.events import LLMCallEvent
    from labmates.records.run_files import newest_artifact, save_material
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
            print_json({**run_json(run, database.scores(run.id)), "judging": used})
            return 0
        if report or artifact:
            text = newest_artifact(database, run.id, artifact or REPORT)
            if text is None:
                raise UsageError(f"the run '{run.id}' has no {artifact or 'report'}")
            out().print(clean(text))
            return 0
        bodies = Bodies(database.bodies(run.id))
        if save is not None:
            files = save_material(database.events(run.id), bodies, save)
            out().print(f"{len(files)} files are in {save}")
            return 0
        most = None if full else SHORT_CHARS
        shown: set[int] = set()
        for event in database.events(run.id):
            if prompts and isinstance(event, LLMCallEvent):
                _prompts(event, bodies, shown, most)
            _tell(event, bodies, most)
        print_run(database, run)
        print_handoff(database.scores(run.id))
        if run.error:
            out().print(f"Error: {clean(run.error)}")
    return 0


def _prompts(event: LLMCallEvent, bodies: Bodies, shown: set[int], most: int | None) -> None:
    """Print a call's new messages, without replies and tool results, which are printed as events."""
    from labmates.pages.rendering import as_text

    who = "/".join(filter(None, (event.team, event.agent or event.judge)))
    for number in event.messages:
        message = bodies[number]
        if number not in shown and message["role"] in ("system", "user"):
            shown.add(number)
            _head(f"{who} reads ({message['role']}):", "blue")
            _text(as_text(message["content"]), most)


def _tell(event: Event, bodies: Bodies, most: int | None) -> None:
    """Print one event; texts are indented under its line."""
    from labmates.records.event_text import artifact_text, findings_text, heading
    from labmates.studies.progress import team_title

    title = heading(event)
    who = f"{event.team}/{event.agent}" if event.agent else event.team
    match event.type:
        case "phase":
            _head(f"\n== {team_title(event.team)}, {title} ==", "bold")
        case "llm_call":
            _head(f"{who}: {title}", "cyan")
            _text(bodies[event.reply]["content"], most)
        case "tool_call":
            _head(f"{who}: {title}", "green")
            for name, value in bodies[event.arguments].items():
                _text(f"{name}: {value}", most)
            _text("→ " + bodies.text(event.result), most)
        case "decision":
            _head(f"{who}{',' if event.round or event.match else ':'} {title}", "red" if event.failed else "green")
        case "payoff":
            _head(title, "bold")
        case "message":
            _head(f"{who} {title}:", "yellow")
            _text(bodies.text(event.text), most)
        case "request":
            _head(f"{who} {title}:", "yellow")
            _text(event.request, most)
        case "approval":
            _head(f"{who}: {title}", "yellow")
            _text(event.question, most)
        case "artifact":
            _head(f"{who} {title}", "magenta")
            _text(artifact_text(bodies[event.content]), most)
        case "findings":
            _head(f"{who} {title}", "magenta")
            _text(findings_text(bodies[event.findings]), most)
        case "judge_call":
            _head(title, "cyan")
            _text(bodies[event.reply]["content"], most)
        case "failed_reply":
            _head(f"{who}: {title}", "red")
        case "environment":
            _head(title, "cyan")
        case "warning" | "error":
            _head(f"{who} {title}".strip(), "red")


def _head(text: str, style: str) -> None:
    out().print(clean(text), style=style)


def _text(text: str, most: int | None) -> None:
    if not text.strip():
        return
    whole = clean(text).rstrip()
    shown = whole if most is None or len(whole) <= most else f"{whole[:most]} … ({len(whole) - most} more characters)"
    out().print("\n".join(f"    {line}" for line in shown.splitlines()))
