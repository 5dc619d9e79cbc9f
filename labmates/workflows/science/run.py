"""One run of the science lab, from its condition to its scores."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import Final, cast

from pydantic import BaseModel

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_parts import REPORT
from labmates.agents.tools import TOOLS
from labmates.budgets.ledger import Ledger
from labmates.judges.base import Deed, Report, Trace
from labmates.judges.panel import DEFAULT_PANEL
from labmates.records.bodies import Bodies
from labmates.records.events import (
    ArtifactEvent,
    ChargeEvent,
    EnvironmentEvent,
    Event,
    FindingsEvent,
    LLMCallEvent,
    MessageEvent,
    PhaseEvent,
    RequestEvent,
    ScoreEvent,
    ToolCallEvent,
)
from labmates.records.recorder import Recorder
from labmates.records.run import WORKED
from labmates.records.steps import charges
from labmates.tasks.base import Difficulty
from labmates.tasks.evidence import Part
from labmates.tasks.registry import get_task
from labmates.tasks.salt import data_seed
from labmates.tasks.schema import findings_fields_text
from labmates.util.loops import in_thread
from labmates.util.seeds import derive
from labmates.workflows.calls.assessing import Judging, assessments, mean_events
from labmates.workflows.calls.call import outer_step
from labmates.workflows.calls.caller import Caller
from labmates.workflows.calls.stop_signal import Steps
from labmates.workflows.people.approval import Approvals
from labmates.workflows.people.live import Live, live_run
from labmates.workflows.protocol.experiment import Outcome
from labmates.workflows.protocol.services import VIEWER, Services
from labmates.workflows.science.experiment import judged_metrics
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates.workflows.science.lab.context import LabContext, warm_up
from labmates.workflows.science.lab.coordination import coordination
from labmates.workflows.science.lab.evidence import Materials, prepare
from labmates.workflows.science.lab.findings import findings_form
from labmates.workflows.science.lab.outside import SeatAgents, failed_seats
from labmates.workflows.science.lab.state import LabState
from labmates.workflows.science.lab.tool_servers import tool_servers

LEAST_CHARS: Final = 80
"""A shorter artifact has no substance (runs of white space count as one character).

Noise written as an artifact had 3 to 60 characters; a heading with one real sentence has more.
"""
MOST_FAILED_REPLIES: Final = 0.5
"""A larger share of failed replies makes a run without a paper invalid, even if its credits ran out."""
FEW_EVENTS: Final = 100
"""The metrics of a run of so many events take 5 ms."""
PAPER = "paper"
"""The last stage of a single team, which hands its results to its own paper."""

_ENVIRONMENT = "environment"
_TRUTHS_KEPT = 256
_making_truth = Lock()


def invalid_work(artifacts: Mapping[str, str], replies: int, failed: int, *, exhausted: bool) -> str | None:
    """The reason why a run's work is unusable; None if it is usable.

    A run without a paper is valid if its credits ran out: the effect of the budget is under study.

    Parameters
    ----------
    artifacts
        Newest content of each artifact by name, including the paper.
    replies, failed
        Numbers of the seats' replies, and of unusable ones.
    exhausted
        Whether the credits ran out before the end.
    """
    if failed >= replies > 0:
        return f"no reply could be used, of {replies}"
    length = {name: len(" ".join(text.split())) for name, text in artifacts.items()}
    if REPORT in length:
        return _short("the paper has", length[REPORT])
    if not exhausted:
        return "no paper was written"
    if length and (reason := _short("the longest artifact has", max(length.values()))):
        return f"no paper was written, and {reason}"
    if replies and failed / replies > MOST_FAILED_REPLIES:
        return f"no paper was written, and {failed / replies:.0%} of the replies could not be used"
    return None


def _short(what: str, length: int) -> str | None:
    return f"{what} {length} characters, fewer than {LEAST_CHARS}" if length < LEAST_CHARS else None


async def outcome(state: LabState, ctx: LabContext) -> Outcome:
    """The outcome of a run of the lab, with the judges' scores."""
    services = ctx.services
    return await scored(ctx, services.ledger, state["exhausted"], judging=services.judging, seed=services.seed)


@asynccontextmanager
async def opened(condition: ScienceCondition, services: Services) -> AsyncIterator[LabContext]:
    """The context of the lab's nodes, with the data set and all resources."""
    assert services.sandbox_pool is not None
    task = get_task(condition.task)
    seed = data_seed(derive(services.seed, "dataset"))
    preparing = asyncio.create_task(
        asyncio.to_thread(prepare, task, seed, condition.difficulty, condition.evidence, condition.arm)
    )
    # Written when the first sandbox starts: most runs have one before their first model call has ended.
    sandboxes = services.sandbox_pool.sandboxes(_Writer(condition, preparing, services.folder).of_seat)
    if not services.recorder.events:
        warm_up(sandboxes, condition, condition.teams[0])
    ledger = Ledger(condition.budget)
    for event in services.recorder.events:
        if isinstance(event, ChargeEvent):
            ledger.restore(event.amount, call=event.step, member=event.team)
    # A rerun has no followers: the page of its run shows the record.
    opens = services.past is None and services.live is None
    following = live_run(services.run_id) if opens else nullcontext(services.live)
    mcp = tool_servers(condition.crew.mcp, services.recorder, services.past, condition.code_timeout)
    agents: SeatAgents | None = None
    try:
        findings, form = findings_fields_text(task), findings_form(task)
        dataset, parts = await preparing
        libraries = await _libraries(services)
        await mcp.open(condition.crew.tools)
        async with following as live:
            caller = _caller(condition, services, live)
            crew = condition.crew
            agents = SeatAgents(crew.seats, condition.model_of, condition.visibility, caller, services, live)
            yield LabContext(
                condition,
                task,
                findings,
                form,
                dataset,
                parts,
                ledger,
                caller,
                services.recorder,
                sandboxes,
                services,
                mcp,
                _approvals(condition, services, caller.steps, live),
                agents,
                libraries,
            )
    finally:
        closing = (mcp.close(), sandboxes.close(), *([agents.close()] if agents else []))
        await asyncio.shield(asyncio.gather(*closing))


async def _libraries(services: Services) -> Mapping[str, str]:
    """The versions of the libraries in the run's sandboxes; a resumed run and a rerun take them from the record."""
    known = (record.done(_ENVIRONMENT, _ENVIRONMENT) for record in (services.recorder, services.past) if record)
    event = cast(EnvironmentEvent | None, next(filter(None, known), None))
    if event is None and services.past is not None:
        return {}  # the record of an earlier version of labmates
    if event is None:
        assert services.sandbox_pool is not None
        event = EnvironmentEvent(step=_ENVIRONMENT, versions=dict(await services.sandbox_pool.backend.libraries()))
    services.recorder.once(event)
    return event.versions


def _caller(condition: ScienceCondition, services: Services, live: Live | None) -> Caller:
    return Caller(
        services.hub,
        services.recorder,
        seed=services.reply_seed,
        prices=condition.prices,
        max_output_tokens=condition.max_output_tokens,
        temperature=condition.temperature,
        thoughts=condition.thoughts,
        steps=Steps(services.stop_signal),
        context_tokens=condition.context_tokens,
        bound=services.ledger,
        listens=None if live is None else live.reply,
        tells_limits=condition.visibility != "hidden",
    )


def _approvals(condition: ScienceCondition, services: Services, steps: Steps, live: Live | None) -> Approvals:
    approver = services.approver
    if approver == VIEWER:
        approver = None if live is None else live.ask
    return Approvals(
        condition.approvals,
        approver,
        services.recorder,
        services.past,
        steps,
        condition.repair_turns,
        services.approval_timeout,
        condition.teams[0].name,
    )


class _Writer:
    """Writer of the parts of a data set, each once; the only code that chooses the file for a seat's sandbox."""

    def __init__(
        self, condition: ScienceCondition, preparing: asyncio.Task[Materials], folder: Callable[[], Path]
    ) -> None:
        self._condition, self._preparing, self._folder = condition, preparing, folder
        self._written: dict[int, asyncio.Task[Path]] = {}

    async def of_seat(self, seat: str) -> Path:
        """The CSV file of a seat's part."""
        parts = (await asyncio.shield(self._preparing)).parts
        place = 0 if len(parts) == 1 else self._condition.holdings[seat]
        if place not in self._written:
            self._written[place] = asyncio.create_task(asyncio.to_thread(self._write, parts[place], place))
        return await asyncio.shield(self._written[place])

    def _write(self, part: Part, place: int) -> Path:
        path = self._folder() / ("data.csv" if place == 0 else f"data-{place + 1}.csv")
        path.write_bytes(part.csv())
        return path


async def scored(
    ctx: LabContext, ledger: Ledger, exhausted: bool, *, judging: Judging | None = None, seed: int = 0
) -> Outcome:
    """Let the judges score the lab's work; returns the run's outcome.

    Parameters
    ----------
    ledger
        Pays for judges' calls.
    exhausted
        Whether the pool ran out before the end.
    judging
        The judges; None for those without a model.
    seed
        Seed of the run, for judges' model calls.
    """
    recorder = ctx.recorder
    data = ctx.dataset
    report = _report(ctx.condition, (data.truth, data.columns, data.ideal), recorder.events, recorder.bodies)
    judging = judging or Judging(DEFAULT_PANEL, ctx.caller.hub)
    # Calls of models without a known price were charged to the pool only.
    ledger.restore(charges(recorder.events) - ledger.spent, call="pool", member="")
    open_ = assessments(judging, seed=seed, ledger=ledger, prices=ctx.condition.prices, had=_scores(recorder))
    await asyncio.gather(*(assessment.hold(report) for assessment in open_))
    for assessment in open_:
        recorder.emit(*assessment.events(recorder.bodies))
    for assessment in open_:
        assessment.check_pause()
    recorder.emit(*mean_events(_scores(recorder)))
    invalid = invalid_work(_newest(report.trail), *_replies(recorder), exhausted=exhausted)
    invalid = failed_seats(recorder.events) or invalid
    # Other runs continue while those of a long run are computed.
    metrics = await in_thread(partial(_metrics, recorder, ctx.organisation), unless=recorder.length <= FEW_EVENTS)
    return Outcome("exhausted" if exhausted else "completed", metrics, invalid)


def _scores(recorder: Recorder) -> list[ScoreEvent]:
    return [event for event in recorder.events if isinstance(event, ScoreEvent)]


_Known = tuple[BaseModel, tuple[str, ...], Callable[[], BaseModel] | None]
"""Truth, columns and ideal analysis of a data set."""


def report_of(condition: ScienceCondition, seed: int, events: Sequence[Event], bodies: Bodies) -> Report:
    """The judges' input for a run: its newest report, earlier work, and the truth, recomputed from the seed."""
    # One at a time: many runs of a study share a data set, which takes seconds of processor time.
    with _making_truth:
        known = _known_again(condition.task, condition.difficulty, data_seed(derive(seed, "dataset")))
    return _report(condition, known, events, bodies)


@lru_cache(maxsize=_TRUTHS_KEPT)
def _known_again(task: str, difficulty: Difficulty, seed: int) -> _Known:
    """What judges know of a data set."""
    data = get_task(task).generate(seed, difficulty)
    return data.truth, data.columns, data.ideal and cache(partial(_ideal_again, task, difficulty, seed))


def _ideal_again(task: str, difficulty: Difficulty, seed: int) -> BaseModel:
    """The ideal findings of a data set, which is too large to be kept."""
    ideal = get_task(task).generate(seed, difficulty).ideal
    assert ideal is not None
    return ideal()


def _report(condition: ScienceCondition, known: _Known, events: Sequence[Event], bodies: Bodies) -> Report:
    truth, columns, ideal = known
    teams = condition.teams
    trail = tuple(_traces(events, bodies))
    stages = tuple(team.name for team in teams)
    if len(teams) == 1:
        stages = (*stages, PAPER)
        last = max((place for place, trace in enumerate(trail) if trace.kind == "findings"), default=None)
        trail = tuple(
            replace(trace, team=PAPER) if trace.name == REPORT or place == last else trace
            for place, trace in enumerate(trail)
        )
    author = condition.crew.author
    stated = next((e for e in reversed(events) if isinstance(e, FindingsEvent) and e.team == author), None)
    artifacts = _newest(trail)
    text = artifacts.pop(REPORT, None)
    return Report(
        text,
        get_task(condition.task),
        truth,
        artifacts,
        trail,
        stages,
        columns=columns,
        difficulty=condition.difficulty,
        stated=bodies[stated.findings] if stated else None,
        repaired=tuple(stated.repaired) if stated else (),
        deeds=tuple(_deeds(events, bodies)),
        ideal=ideal,
        is_joined=condition.crew.joins(condition.crew.teams[author]),
    )


def _traces(events: Sequence[Event], bodies: Bodies) -> Iterator[Trace]:
    for event in events:
        if isinstance(event, ArtifactEvent):
            yield Trace(event.team, "artifact", event.name, bodies.text(event.content))
        elif isinstance(event, FindingsEvent):
            yield Trace(event.team, "findings", event.agent, json.dumps(bodies[event.findings], ensure_ascii=False))
        elif isinstance(event, ToolCallEvent) and event.status:
            code = str(bodies[event.arguments].get("code", ""))
            yield Trace(event.team, "output", event.agent, bodies.text(event.result), code)
        elif isinstance(event, ToolCallEvent) and event.tool == "mark_complete" and event.ok:
            yield Trace(event.team, "summary", event.agent, str(bodies[event.arguments].get("summary", "")))


def _deeds(events: Sequence[Event], bodies: Bodies) -> Iterator[Deed]:
    for event in events:
        match event:
            case MessageEvent():
                yield Deed(event.agent, f"says to {event.to}", bodies.text(event.text), is_said=True)
            case ToolCallEvent() if event.status:
                code = str(bodies[event.arguments].get("code", ""))
                yield Deed(event.agent, "runs code", f"{code}\n→ {bodies.text(event.result)}")
            case RequestEvent():
                yield Deed(event.agent, f"asks the team {event.to} for work", event.request)
            case ArtifactEvent():
                yield Deed(event.agent, f"writes {event.name}", bodies.text(event.content))
            case FindingsEvent():
                findings = json.dumps(bodies[event.findings], ensure_ascii=False)
                yield Deed(event.agent, "states findings", findings)


def _newest(trail: Iterable[Trace]) -> dict[str, str]:
    return {trace.name: trace.text for trace in trail if trace.kind == "artifact"}


def _metrics(recorder: Recorder, organisation: Organisation) -> Mapping[str, float]:
    written = {event.name for event in recorder.events if isinstance(event, ArtifactEvent)}
    replies, failed = _replies(recorder)
    counted: dict[str, float] = {
        "artifacts_missing": sum(name not in written for name in organisation.handed),
        "phases": sum(isinstance(e, PhaseEvent) and e.status == "ended" for e in recorder.events),
        "requests": sum(e.type == "request" for e in recorder.events),
        "tool_errors": sum(isinstance(e, ToolCallEvent) and not e.ok for e in recorder.events),
        "failed_reply_rate": round(failed / replies, 6) if replies else 0.0,
    }
    if not organisation.graph:  # whose code may work unseen
        counted[WORKED] = float(any(map(_is_work, recorder.events)))
    seats = [*organisation.seats] if organisation.declares_seats else []
    coordinated = coordination(recorder.events, recorder.bodies, seats).metrics
    return {**judged_metrics(_scores(recorder)), **counted, **coordinated}


def _is_work(event: Event) -> bool:
    if isinstance(event, ToolCallEvent):
        return bool(event.status) or (event.ok and event.tool not in TOOLS)
    return isinstance(event, LLMCallEvent) and event.is_outside


def _replies(recorder: Recorder) -> tuple[int, int]:
    """The number of the seats' replies, without external agents' model calls, and of failed ones."""
    replies = sum(event.type == "llm_call" and not outer_step(event.step) for event in recorder.events)
    failed = sum(event.type == "failed_reply" for event in recorder.events)
    return max(replies, failed), failed  # a crashed program leaves a failed reply without a call
