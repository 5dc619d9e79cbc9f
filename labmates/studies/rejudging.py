"""Rejudgement of a run from its record: judges score again with recorded replies of models, and scores are compared.

A replay compares all scores so, those that were added later among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage

from labmates.agents.transcript import message_to_data
from labmates.errors import UsageError
from labmates.judges.panel import MEAN, Panel, open_judge
from labmates.models.conversation import Exchange
from labmates.records.bodies import Bodies
from labmates.records.events import HUMAN, Event, LLMCallEvent, ScoreEvent, event_data
from labmates.records.run import RunRecord
from labmates.studies.judging import report_of
from labmates.studies.rerun import Difference, first_difference
from labmates.util.seeds import derive
from labmates.workflows.calls.assessing import mean_events, score_event
from labmates.workflows.calls.call import recorded_reply


@dataclass
class _Verdict:
    """One judge's verdict: its calls, then its scores."""

    judge: str
    calls: list[LLMCallEvent] = field(default_factory=list)
    scores: list[ScoreEvent] = field(default_factory=list)

    @property
    def metrics(self) -> set[str]:
        return {score.metric for score in self.scores}

    @property
    def version(self) -> str:
        """The judge's version, without its assistant's."""
        return self.scores[0].version.partition("+")[0]


@dataclass
class Rejudged:
    """The result of a rejudgement: the comparable events and their differences."""

    compared: list[Event] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)


async def rejudge(run: RunRecord, events: Sequence[Event], bodies: Bodies, wanted: Iterable[Event]) -> Rejudged:
    """Repeat the verdicts among the `wanted` events of a run, and compare the scores.

    Verdicts of failed, updated or uninstalled judges can't be compared.
    """
    rejudged = Rejudged()
    chosen = [event for event in wanted if event.type in ("judge_call", "score")]
    verdicts = [verdict for verdict in _verdicts(chosen) if not any(score.failed for score in verdict.scores)]
    try:
        report = report_of(run, events, bodies) if verdicts else None
    except UsageError:  # another version of the task, with other data
        return rejudged
    for verdict in verdicts:
        assert report is not None
        tries = []
        # The record lacks whether a model was known to reason at the time of the call.
        for thinkers in (set[str](), {call.model for call in verdict.calls}):
            answers = _RecordedAnswers(verdict.calls, bodies, derive(run.seed, "judge", verdict.judge))
            helper = verdict.calls[0].model if verdict.calls else None
            judge = open_judge(verdict.judge, Panel((verdict.judge,), helper), answers.ask, set(thinkers))
            if judge.version.partition("+")[0] != verdict.version:
                break
            now = {score.metric: score_event(score) for score in await judge.score(report)}
            tries.append([*_differences(verdict.scores, now), *answers.unasked()])
            if not tries[-1] or not verdict.calls:
                break
        if tries:
            rejudged.compared += [*verdict.calls, *verdict.scores]
            rejudged.differences += tries[0] if all(tries) else []
    for mean, before in _means(events):
        if mean in chosen:
            rejudged.compared.append(mean)
            rejudged.differences += _differences([mean], {score.metric: score for score in mean_events(before)})
    return rejudged


def _verdicts(events: Iterable[LLMCallEvent | ScoreEvent]) -> list[_Verdict]:
    verdicts: list[_Verdict] = []
    calls: dict[str, list[LLMCallEvent]] = {}
    last: dict[str, _Verdict] = {}
    for event in events:
        if isinstance(event, LLMCallEvent):
            calls.setdefault(event.judge, []).append(event)
        elif event.judge != MEAN and not event.judge.startswith(HUMAN):
            verdict = last.get(event.judge)
            if verdict is None or event.judge in calls or event.metric in verdict.metrics:
                verdict = last[event.judge] = _Verdict(event.judge, calls.pop(event.judge, []))
                verdicts.append(verdict)
            verdict.scores.append(event)
    return verdicts


def _means(events: Iterable[Event]) -> Iterator[tuple[ScoreEvent, list[ScoreEvent]]]:
    """Yield each mean over judges with the scores before it."""
    scores = [event for event in events if isinstance(event, ScoreEvent)]
    for place, score in enumerate(scores):
        if score.judge == MEAN:
            yield score, scores[:place]


class _RecordedAnswers:
    """Answers the calls of a judge from the record."""

    def __init__(self, calls: Iterable[LLMCallEvent], bodies: Bodies, seed: int) -> None:
        self._left = list(calls)
        self._bodies = bodies
        self._seed = seed

    async def ask(self, model: str, messages: list[BaseMessage], name: str, limit: int, held: object) -> Exchange:
        """The recorded reply to these messages. Raises `LookupError` if there is none."""
        del limit, held
        asked = [message_to_data(message) for message in messages]
        made = (model, derive(self._seed, name))
        for place, call in enumerate(self._left):
            if (call.model, call.seed) == made and [self._bodies[n] for n in call.messages] == asked:
                del self._left[place]
                return Exchange(recorded_reply(call, self._bodies), messages)
        raise LookupError("the record has no reply to this request")

    def unasked(self) -> Iterator[Difference]:
        """Yield the recorded calls that the judge has not made again."""
        for call in self._left:
            yield Difference(call.judge, "judge_call", "", "a call", None)


def _fields(score: ScoreEvent) -> dict[str, Any]:
    return {"step": score.step, "team": score.team, "agent": score.agent, **event_data(score)}


def _differences(recorded: Iterable[ScoreEvent], now: dict[str, ScoreEvent]) -> Iterator[Difference]:
    for score in recorded:
        where = f"{score.judge} {score.metric}"
        came = now.get(score.metric)
        if came is None:
            yield Difference(where, "score", "", "a score", None)
            continue
        yield from first_difference(where, "score", _fields(score), _fields(came))
