"""Data frames of a store: one row per run, score, player, decision, payoff, message or event.

Rows of a run are contiguous and in order. They are read in portions, so exports of large stores need little memory
(`labmates.studies.export`). All rows except those of runs begin with the run's identity: ``run`` (its id), ``kind``,
``study``, ``key`` (of the condition), ``replicate``, ``seed`` and ``models`` (joined by ``;``); join them with the
runs' rows for the parameters of the condition.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import groupby, islice
from sys import intern
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np

from labmates.records.bodies import Bodies, StoredBodies
from labmates.records.events import (
    ChargeEvent,
    DecisionEvent,
    Event,
    EventBase,
    FailedReplyEvent,
    LLMCallEvent,
    MessageEvent,
    PayoffEvent,
    ScoreEvent,
    ToolCallEvent,
    event_data,
)
from labmates.records.reading import stored_bodies
from labmates.records.run import RunRecord
from labmates.records.view import flat_run, flatten
from labmates.util.garbage import rare_collection

if TYPE_CHECKING:
    import pandas as pd

    from labmates.records.store import Store


MESSAGE_COLUMNS: Final = (
    "at", "step", "team", "agent", "model", "place", "role", "content", "reasoning", "tool_calls", "tool_call_id",
    "finish", "input_tokens", "output_tokens", "seconds",
)  # fmt: skip


def message_rows(bodies: StoredBodies, calls: list[LLMCallEvent]) -> Iterator[dict[str, Any]]:
    """Yield the messages of a run's calls in order, each agent's messages once, whole.

    ``place`` is a message's place in its call's transcript, from 0; a call's reply comes last, with its reasoning, the
    reason of its end, tokens and seconds. The transcript of a call is made of the newest message of each place up to
    it, unless it was shortened to the model's context.
    """
    told: dict[str, set[int]] = {}
    replied: dict[str, set[str]] = {}
    for call in calls:
        known, replies = told.setdefault(call.agent, set()), replied.setdefault(call.agent, set())
        new = [(place, number) for place, number in enumerate(call.messages) if number not in known]
        known.update(number for _, number in new)
        texts = bodies.values([*(number for _, number in new), call.reply, *filter(None, [call.reasoning])])
        where = {name: getattr(call, name) for name in ("at", "step", "team", "agent", "model")}
        for place, number in new:
            if (said := _reply(texts.get(number))) == "" or said not in replies:
                yield {**where, "place": place, **_said(texts.get(number))}
        known.add(call.reply)
        replies.add(_reply(texts.get(call.reply)))
        ended = {name: getattr(call, name) for name in ("finish", "input_tokens", "output_tokens", "seconds")}
        thought = {} if call.reasoning is None else {"reasoning": texts.get(call.reasoning)}
        yield {**where, "place": len(call.messages), **_said(texts.get(call.reply)), **thought, **ended}


def new_messages(calls: Iterable[LLMCallEvent], bodies: Bodies) -> Iterator[tuple[LLMCallEvent, list[int]]]:
    """Yield the calls of one agent, each with the messages that its transcript and last reply lacked, in order."""
    before: list[int] = []
    replies: dict[str, int] = {}
    for call in calls:
        sent = [replies.get(_reply(bodies[number]), number) for number in call.messages]
        steps = SequenceMatcher(None, before, sent, autojunk=False).get_opcodes()
        yield call, [number for how, _, _, start, end in steps if how != "equal" for number in sent[start:end]]
        replies[_reply(bodies[call.reply])] = call.reply
        before = [*sent, call.reply]


def _reply(message: Any) -> str:
    """What a reply says, which a later prompt repeats without what its provider attached; empty if it is none."""
    if not isinstance(message, dict) or message.get("role") != "assistant":
        return ""
    return json.dumps([message.get("content"), message.get("tool_calls", [])])


def _said(message: Any) -> dict[str, Any]:
    """The columns of a stored message; those of one that can't be read are empty."""
    said = dict.fromkeys(MESSAGE_COLUMNS[MESSAGE_COLUMNS.index("role") :])
    if not isinstance(message, dict):
        return said
    calls = message.get("tool_calls")
    return {
        **said,
        "role": message.get("role"),
        "content": message.get("content"),
        "tool_calls": json.dumps(calls, ensure_ascii=False) if calls else None,
        "tool_call_id": message.get("tool_call_id"),
    }


Rows = Literal["runs", "scores", "players", "decisions", "payoffs", "messages", "events"]
ROWS: tuple[Rows, ...] = get_args(Rows)
Row = dict[str, Any]

_CHUNK = 500
_OF_RUN = ("run", "kind", "study", "key", "replicate", "seed", "models")
_TOKENS = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "reasoning_tokens")
_COUNTS = ("calls", *_TOKENS, "failed_replies", "tool_calls", "messages")
COLUMNS: Final[dict[Rows, tuple[str, ...]]] = {
    "runs": ("id", "kind", "study", "key", "replicate", "seed", "status", "error", "valid", "invalid", "models"),
    "scores": (*_OF_RUN, "judge", "version", "metric", "value", "failed", "reason", "at"),
    "players": (*_OF_RUN, "team", "agent", "model", *_COUNTS, "spent", "decisions", "failed_decisions", "payoff"),
    "decisions": (*_OF_RUN, "at", "match", "round", "stage", "team", "agent", "failed"),
    "payoffs": (*_OF_RUN, "at", "match", "round", "weight", "player", "payoff"),
    "messages": (*_OF_RUN, *MESSAGE_COLUMNS),
    "events": (*_OF_RUN, "number", "at", "type", "step", "team", "agent", "data"),
}
"""The columns of each sort of rows; records may add more."""


def chosen_runs(
    store: Store, *, kind: str | None = None, study: str | None = None, model: str | None = None
) -> Iterator[RunRecord]:
    """Yield the started runs in the store's order, filtered by kind, study and participating model."""
    return (run for run in store.runs(kind=kind, study=study) if model is None or model in run.models)


def rows(store: Store, what: Rows, runs: Iterable[RunRecord]) -> Iterator[Row]:
    """Yield the rows of these runs in portions; see `frame` for the columns."""
    some = iter(runs)
    while chunk := list(islice(some, _CHUNK)):
        if what == "runs":
            scores = store.score_values([run.id for run in chunk])
            yield from (flat_run(run, scores[run.id]) for run in chunk)
            continue
        make, *types = _MAKERS[what]
        by_id = {run.id: run for run in chunk}
        for run_id, pairs in groupby(store.events_of(list(by_id), *types), key=lambda pair: pair[0]):
            of_run = _of_run(by_id[run_id])
            for row in make((event for _, event in pairs), stored_bodies(store, run_id)):
                yield {**of_run, **row}


def frame(store: Store, what: Rows, runs: Iterable[RunRecord]) -> pd.DataFrame:
    """The rows of runs of a store as a data frame.

    Parameters
    ----------
    what
        ``runs``: the keys of a run's JSON record, nested keys joined by dots (``condition.task``, ``metrics.accuracy``,
        ``usage.llm_calls``; of the condition every parameter, a mapping also as one text: its name, else JSON), the
        newest score of each judge (``scores.JUDGE.METRIC``), then ``version``, ``started`` (Unix time), ``attempt`` and
        ``origin``. ``scores``: all scores ever given; ``value`` is NaN for unscored. ``players``: each agent of each
        run, with its usage, ``spent`` in micro-dollars, and its payoff under its name: of each match the recorded
        total, else the sum of its rounds. ``decisions``: the decision in ``decision.NAME``. ``payoffs``: one row per
        player, with the round's ``weight`` in the player's payoff of the match (empty for totals) and per-player
        details in ``details.NAME``. ``messages``: see `message_rows`. ``events``: all events; ``data`` is JSON with
        long texts as numbers.
    """
    import pandas as pd

    # json_normalize takes several times as long.
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS[what]}
    count = 0
    with rare_collection():
        for count, row in enumerate(rows(store, what, runs), start=1):
            for name, value in row.items():
                column = columns.setdefault(name, [])
                column.extend([None] * (count - 1 - len(column)))
                column.append(intern(value) if type(value) is str else value)
        return pd.DataFrame({name: _series(columns.pop(name), count) for name in list(columns)}, copy=False)


def _series(values: list[Any], length: int) -> pd.Series[Any]:
    """A column with this many rows."""
    import pandas as pd

    values.extend([None] * (length - len(values)))
    # Not pyarrow's strings, which are copied per row: here, rows share equal texts.
    is_text = set(map(type, values)) - {type(None)} == {str}
    return pd.Series(values, dtype=pd.StringDtype("python", na_value=np.nan) if is_text else None)


def _of_run(run: RunRecord) -> Row:
    return {"run": run.id, **{name: getattr(run, name) for name in _OF_RUN[1:-1]}, "models": ";".join(run.models)}


def _scores(events: Iterable[ScoreEvent], _bodies: StoredBodies) -> Iterator[Row]:
    for event in events:
        yield {name: getattr(event, name) for name in COLUMNS["scores"][len(_OF_RUN) :]}


def _decisions(events: Iterable[DecisionEvent], _bodies: StoredBodies) -> Iterator[Row]:
    for event in events:
        row = {name: getattr(event, name) for name in COLUMNS["decisions"][len(_OF_RUN) :]}
        flatten("decision", event.decision, row)
        yield row


def _payoffs(events: Iterable[PayoffEvent], _bodies: StoredBodies) -> Iterator[Row]:
    for event in events:
        many = len(event.payoffs)
        each = {
            name: values for name, values in event.details.items() if isinstance(values, list) and len(values) == many
        }
        weight = event.details.get("weight", 1.0 if event.round else None)
        for place, (player, payoff) in enumerate(event.payoffs.items()):
            row = {"at": event.at, "match": event.match, "round": event.round}
            row |= {"weight": weight, "player": player, "payoff": payoff}
            for name, values in each.items():
                flatten(f"details.{name}", values[place], row)
            yield row


def _players(events: Iterable[EventBase], _bodies: StoredBodies) -> Iterator[Row]:
    by_agent: dict[str, list[Any]] = {}
    payoffs: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for event in events:
        if isinstance(event, PayoffEvent):
            for name in event.payoffs.keys() & by_agent.keys():
                # The event without a round is the total of those before it, which may be lost at the end.
                earlier = payoffs[name].get(event.match, 0.0) if event.round else 0.0
                payoffs[name][event.match] = earlier + event.payoffs[name]
        elif event.agent:
            by_agent.setdefault(event.agent, []).append(event)
    for name, own in by_agent.items():
        number = Counter(event.type for event in own)
        calls = [event for event in own if event.type == "llm_call"]
        yield {
            "team": own[0].team,
            "agent": name,
            "model": ";".join(dict.fromkeys(call.model for call in calls)),
            "calls": sum(not call.is_outside for call in calls),
            **{tokens: sum(getattr(call, tokens) for call in calls) for tokens in _TOKENS},
            **{f"{what}s": number[what] for what in ("tool_call", "message", "decision")},
            "failed_replies": number["failed_reply"],
            "failed_decisions": sum(event.failed for event in own if event.type == "decision"),
            "spent": sum(event.amount for event in own if event.type == "charge"),
            "payoff": sum(payoffs[name].values()) if name in payoffs else None,
        }


def _messages(calls: Iterable[LLMCallEvent], bodies: StoredBodies) -> Iterator[Row]:
    return message_rows(bodies, list(calls))


def _events(events: Iterable[Event], _bodies: StoredBodies) -> Iterator[Row]:
    for number, event in enumerate(events):
        row = {"number": number, **{name: getattr(event, name) for name in ("at", "type", "step", "team", "agent")}}
        yield {**row, "data": json.dumps(event_data(event), ensure_ascii=False)}


_MAKERS: Final[dict[Rows, tuple[Any, ...]]] = {
    "scores": (_scores, ScoreEvent),
    "players": (
        _players, LLMCallEvent, FailedReplyEvent, ToolCallEvent, MessageEvent, ChargeEvent, DecisionEvent, PayoffEvent,
    ),
    "decisions": (_decisions, DecisionEvent),
    "payoffs": (_payoffs, PayoffEvent),
    "messages": (_messages, LLMCallEvent),
    "events": (_events,),
}  # fmt: skip
"""What makes rows of a run's events, and the types of these events; of all types without any."""
