"""Labelling of the reasons for choices in social dilemmas: the selected choices, and the recorded labels.

Labels are added to the events of ended runs, as judges' scores are. Choices with labels by the same judge are skipped,
so an interrupted labelling can be resumed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from labmates.budgets.ledger import Ledger
from labmates.budgets.prices import PriceList
from labmates.models.check import check_models
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.models.tracing import traced
from labmates.records.bodies import Bodies
from labmates.records.events import DecisionEvent, Event, LabelEvent, LLMCallEvent, ScoreEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.util.seeds import derive
from labmates.workflows.calls.assessing import JudgeCall, JudgeCaller, add_events, judge_call_event, money_left
from labmates.workflows.protocol.experiment import condition_of
from labmates_profiles.reasons.judge import PREFIX, VERSION, Labelled, ReasonsJudge

_TOGETHER = 32
"""Choices whose labels are written together."""


@dataclass(frozen=True)
class Choice:
    """A choice with its prompt and the player's explanation."""

    event: DecisionEvent
    asked: str
    said: str


def choices(events: Sequence[Event], bodies: Bodies) -> Iterator[Choice]:
    """The successful choices in a run, each with its prompt and the accepted reply."""
    calls: dict[str, LLMCallEvent] = {}
    for event in events:
        if event.type == "llm_call":
            calls[event.step.rpartition("/")[0]] = event  # the last turn's reply was accepted
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
    """Have a model label the reasons for choices in runs, and return the number of new labels.

    Parameters
    ----------
    most
        Maximum number of choices per run, drawn at random and reproducibly.
    watch
        Called with a run and its numbers of labelled and of all choices.

    Raises
    ------
    UsageError
        If the model can't be called; before any work.
    """
    await check_models([model], options)
    left = await asyncio.to_thread(money_left, store, runs)
    async with traced(notify), ModelHub(options) as hub:
        return sum([await _label(store, run, left[run.study], model, hub, options, most, watch) for run in runs])


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
    done = set(labelled_steps(events, f"{PREFIX}{model}"))
    left = [choice for choice in chosen if choice.event.step not in done]
    prices: PriceList = getattr(condition_of(run), "prices", None) or PriceList()
    places = asyncio.Semaphore(options.max_concurrent_calls)
    thinkers: set[str] = set()

    async def label(choice: Choice) -> tuple[Choice, Labelled, list[JudgeCall]]:
        seed = derive(run.seed, "reasons", choice.event.step)
        caller = JudgeCaller(hub, seed=seed, ledger=ledger, prices=prices)
        async with places:
            judge = ReasonsJudge(model, caller.ask, thinkers)
            return choice, await judge.label(choice.asked, choice.said), caller.calls

    for start in range(0, len(left), _TOGETHER):
        labelled = await asyncio.gather(*map(label, left[start : start + _TOGETHER]))
        write = partial(_events, model, labelled)
        # Shielded, since these labels are paid for.
        await asyncio.shield(asyncio.to_thread(add_events, store, run.id, write))
        if watch is not None:
            watch(run, len(chosen) - len(left) + start + len(labelled), len(chosen))
    return len(left)


def labelled_steps(events: Iterable[Event], judge: str) -> Iterator[str]:
    """The steps of the choices with a valid label, or a finding of no reasons, by this version of a judge."""
    for event in events:
        if isinstance(event, LabelEvent) and (event.judge, event.version) == (judge, VERSION) and not event.failed:
            yield event.step


def _events(
    model: str,
    labelled: Sequence[tuple[Choice, Labelled, list[JudgeCall]]],
    _had: Sequence[ScoreEvent],
    bodies: Bodies,
) -> list[Event]:
    """Labels as events, each after its model calls."""
    events: list[Event] = []
    name = f"{PREFIX}{model}"
    for choice, label, calls in labelled:
        where = {"step": choice.event.step, "team": choice.event.team, "agent": choice.event.agent}
        events += [judge_call_event(name, VERSION, call, bodies) for call in calls]
        labels = None if label.labels is None else list(label.labels)
        details = {"reason": label.reason, "failed": label.failed, "confidence": label.confidence}
        events.append(LabelEvent(**where, judge=name, version=VERSION, labels=labels, **details))
    return events


def _text(data: object) -> str:
    return str(data["content"]) if isinstance(data, dict) and "content" in data else str(data)
