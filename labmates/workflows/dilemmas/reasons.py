"""Labelling the reasons of choices in social dilemmas: which are asked about, and what is kept of the answers.

Labels are added to the events of runs that have ended, as judges' scores are; a choice that a judge has labelled is not
asked about again, so that an interrupted labelling goes on where it stopped.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from labmates.budgets.ledger import Ledger
from labmates.budgets.prices import PriceList
from labmates.judges.interview import Interviewer
from labmates.models.check import check_models
from labmates.models.hub import ModelHub
from labmates.models.names import parse_model
from labmates.models.options import ModelOptions
from labmates.models.tracing import traced
from labmates.records.bodies import Bodies
from labmates.records.calls import StoredBatches
from labmates.records.events import DecisionEvent, Event, LabelEvent, LLMCallEvent, ScoreEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.seeds import derive
from labmates.workflows.analysis import Params, Result
from labmates.workflows.command import Command
from labmates.workflows.dilemmas.reason_judge import PREFIX, VERSION, Labelled, ReasonsJudge
from labmates.workflows.experiment import condition_of
from labmates.workflows.judging import JudgeCall, JudgeCaller, add_events, judge_call_event, money_left
from labmates.workflows.verb import InterruptedWorkError

if TYPE_CHECKING:
    from labmates.workflows.command import Lab

_TOGETHER, _RUNS_OF_A_BATCH = 32, 64
"""Choices whose labels are written together, and runs whose choices go into one batch of a provider."""


@dataclass(frozen=True)
class Choice:
    """A choice that a player has made and explained."""

    event: DecisionEvent
    asked: str
    said: str


def choices(events: Sequence[Event], bodies: Bodies) -> Iterator[Choice]:
    """Yield the choices of a run that were the players' own, each with the prompt and the reply that was used."""
    calls: dict[str, LLMCallEvent] = {}
    for event in events:
        if event.type == "llm_call":
            calls[event.step.rpartition("/")[0]] = event  # the last turn's reply is the one that was used
    for event in events:
        if isinstance(event, DecisionEvent) and event.stage == "choose" and not event.failed:
            call = calls.get(event.step)
            if call is not None:
                asked = "\n\n".join(_text(bodies[number]) for number in call.messages[:2])
                yield Choice(event, asked, _text(bodies[call.reply]))


async def label_reasons(
    store: Store,
    runs: Sequence[RunRecord],
    model: str,
    options: ModelOptions,
    *,
    most: int | None = None,
    watch: Callable[[RunRecord, int, int], None] | None = None,
    notify: Callable[[str], None] | None = None,
) -> int:
    """Have a model label the reasons of the choices of runs, and return the number of new labels.

    Parameters
    ----------
    most
        Maximum number of choices of a run to label, drawn at random, always the same ones.
    watch
        Told how far a run is: choices labelled, and choices in all.

    Raises
    ------
    UsageError
        Before anything starts, if the model can't be asked.
    """
    await check_models([model], options)
    left = await asyncio.to_thread(money_left, store, runs)
    async with traced(notify), ModelHub(options, book=StoredBatches(store.database), notify=notify) as hub:
        places = asyncio.Semaphore(_RUNS_OF_A_BATCH if options.batch else 1)

        async def one(run: RunRecord) -> int:
            async with places:
                return await _label(store, run, left[run.study], model, hub, options, most, watch)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(run)) for run in runs]
    return sum(task.result() for task in tasks)


async def _label(
    store: Store,
    run: RunRecord,
    ledger: Ledger,
    model: str,
    hub: ModelHub,
    options: ModelOptions,
    most: int | None,
    watch: Callable[[RunRecord, int, int], None] | None,
) -> int:
    events, stored = await asyncio.to_thread(lambda: (store.events(run.id), store.bodies(run.id)))
    chosen = list(choices(events, Bodies(stored)))
    if most is not None and most < len(chosen):
        chosen = random.Random(derive(run.seed, "reasons")).sample(chosen, most)
    had = set(labelled_steps(events, f"{PREFIX}{model}"))
    left = [choice for choice in chosen if choice.event.step not in had]
    prices: PriceList = getattr(condition_of(run), "prices", None) or PriceList()
    places = asyncio.Semaphore(options.calls_at_once)
    thinkers: set[str] = set()

    async def one(choice: Choice) -> tuple[Choice, Labelled, list[JudgeCall]]:
        seed = derive(run.seed, "reasons", choice.event.step)
        caller = JudgeCaller(hub, seed=seed, ledger=ledger, prices=prices)
        async with places:
            judge = ReasonsJudge(model, Interviewer(caller.ask, thinkers))
            return choice, await judge.label(choice.asked, choice.said), caller.calls

    together = max(len(left), 1) if options.batch else _TOGETHER
    for start in range(0, len(left), together):
        labelled = await asyncio.gather(*map(one, left[start : start + together]))
        write = partial(_events, model, labelled)
        # Paid labels are written in any case.
        await asyncio.shield(asyncio.to_thread(add_events, store, run.id, write))
        if watch is not None:
            watch(run, len(chosen) - len(left) + start + len(labelled), len(chosen))
    return len(left)


def labelled_steps(events: Iterable[Event], judge: str) -> Iterator[str]:
    """Yield the steps of the choices that a judge of this version has labelled, or found to give no reasons."""
    for event in events:
        if isinstance(event, LabelEvent) and (event.judge, event.version) == (judge, VERSION) and not event.failed:
            yield event.step


def _events(
    model: str,
    labelled: Sequence[tuple[Choice, Labelled, list[JudgeCall]]],
    had: Sequence[ScoreEvent],
    bodies: Bodies,
) -> list[Event]:
    """Labels as events, each after the calls that brought it."""
    del had
    events: list[Event] = []
    name = f"{PREFIX}{model}"
    for choice, labelled_choice, calls in labelled:
        where = {"step": choice.event.step, "team": choice.event.team, "agent": choice.event.agent}
        events += [judge_call_event(name, VERSION, call, bodies) for call in calls]
        labels = None if labelled_choice.labels is None else list(labelled_choice.labels)
        details = {
            "reason": labelled_choice.reason,
            "failed": labelled_choice.failed,
            "confidence": labelled_choice.confidence,
        }
        events.append(LabelEvent(**where, judge=name, version=VERSION, labels=labels, **details))
    return events


def _text(data: object) -> str:
    return str(data["content"]) if isinstance(data, dict) and "content" in data else str(data)


class ReasonsParams(Params):
    """The parameters of labelling reasons."""

    judge: str = Field(description="Model that labels, provider:name.")
    most: int | None = Field(None, ge=1, description="Maximum number of choices to label per run, drawn at random.")


def reasons(lab: Lab, params: ReasonsParams) -> Iterator[Result]:
    """Have a model label the reasons that players give for their choices.

    Each choice in a social dilemma gets any number of 15 labels, or "other"; a reply without reasons gets none. Labels
    are added to the runs, and labelled choices are skipped. See the result with: labmates analyze dilemmas --table
    reasons
    """
    model = str(parse_model(lab.catalog.name_of(params.judge)))
    options = lab.catalog.options()
    runs = lab.runs.completed("dilemma")

    def watch(run: RunRecord, done: int, whole: int) -> None:
        lab.notify(f"run {run.id}: {done} of {whole} choices")

    store = lab.runs.store
    try:
        work = label_reasons(store, runs, model, options, most=params.most, watch=watch, notify=lab.notify)
        added = lab.finish(work)
    except InterruptedWorkError:
        lab.notify("Interrupted. Labels so far are kept; the same command resumes.")
        raise
    sentence = f"{added} choices of {len(runs)} runs labelled by {model}."
    yield Result((), verdict=[sentence], objects=[{"runs": len(runs), "judge": model, "labelled": added}])


# It asks a model and adds to runs, which an analysis never does.
REASONS = Command(
    reasons,
    ReasonsParams,
    example="labmates analyze reasons --judge openai:gpt-5.4-mini --most 200",
    asks_models=True,
    has_store=True,
    choices=("runs", "study"),
    objects="",
)
