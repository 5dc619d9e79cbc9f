"""Runs in the Python API: a run's record, with events, scores and artifacts read on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from markupsafe import Markup

from labmates.errors import unknown_name
from labmates.records.bodies import Bodies, Value
from labmates.records.events import ArtifactEvent, Event, LLMCallEvent, MessageEvent, ScoreEvent, ToolCallEvent
from labmates.records.frames import new_messages
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.workflows.protocol.experiment import EXPERIMENTS, condition_of


@dataclass(frozen=True)
class Message:
    """A message.

    Attributes
    ----------
    team, agent
        The author; for a message to a model, the reader.
    role
        ``message`` for an agent's message to others; ``system``, ``user`` or ``tool`` for a model's prompt;
        ``assistant`` for its reply.
    to
        The recipient of an agent's message; empty for a model's prompts and replies.
    tool_calls
        The tool calls of a reply, with ``name`` and ``args``.
    """

    team: str
    agent: str
    role: str
    text: str
    to: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()


class Png(bytes):
    """A PNG file, which a notebook shows as a picture."""

    def _repr_png_(self) -> bytes:
        return bytes(self)


@dataclass(frozen=True, eq=False)
class Run(RunRecord):
    """A run.

    Attributes
    ----------
    store
        The URL of the store that holds it.
    """

    store: str = field(default="", repr=False)  # a URL may hold a password

    @classmethod
    def of(cls, record: RunRecord, store: Store) -> Run:
        """The run of a record in a store."""
        return cls(**{each.name: getattr(record, each.name) for each in fields(RunRecord)}, store=store.url)

    @cached_property
    def events(self) -> list[Event]:
        """All events, in order."""
        with Store(self.store, must_exist=True) as store:
            return store.events(self.id)

    @cached_property
    def bodies(self) -> Bodies:
        """The long contents that events refer to by number."""
        with Store(self.store, must_exist=True) as store:
            return Bodies(store.bodies(self.id))

    @property
    def scores(self) -> list[ScoreEvent]:
        """The judges' scores, in order."""
        return [event for event in self.events if isinstance(event, ScoreEvent)]

    def messages(self, agent: str | None = None) -> list[Message]:
        """The agents' messages to one another; with `agent`, its transcript of prompts and replies, in order.

        Repetitions in an agent's next prompt are left out.

        Raises
        ------
        UsageError
            If the agent is unknown or has not called a model.
        """
        if agent is None:
            events = (event for event in self.events if isinstance(event, MessageEvent))
            return [Message(e.team, e.agent, "message", self.bodies.text(e.text), e.to) for e in events]
        calls = [event for event in self.events if event.type == "llm_call"]
        if not any(call.agent == agent for call in calls):
            raise unknown_name("agent of this run", agent, list(dict.fromkeys(call.agent for call in calls)))
        return list(self._transcript([call for call in calls if call.agent == agent]))

    def _transcript(self, calls: Sequence[LLMCallEvent]) -> Iterator[Message]:
        for call, new in new_messages(calls, self.bodies):
            for body in (self.bodies[number] for number in (*new, call.reply)):
                tools = tuple(body.get("tool_calls") or ())
                yield Message(call.team, call.agent, body["role"], body["content"], tool_calls=tools)

    @property
    def artifacts(self) -> dict[str, Value]:
        """The newest version of each artifact, by name."""
        return {event.name: self.bodies[event.content] for event in self.events if isinstance(event, ArtifactEvent)}

    @property
    def figures(self) -> list[Png]:
        """The figures that agents' code drew, as PNG files in order; a notebook shows each as a picture."""
        calls = (event for event in self.events if isinstance(event, ToolCallEvent))
        return [Png(self.bodies[number]) for call in calls for number in call.images]

    def _repr_html_(self) -> str:
        """The run's status, metrics and scores as a table, for notebooks."""
        scores = {f"{score.judge}: {score.metric}": score.value for score in self.scores}
        return Markup("<table><caption>{} {} ({}, seed {}): {}</caption>{}</table>").format(
            self.kind,
            self.id,
            self.shown_models or "no model",
            self.seed,
            self.error or self.standing,
            _rows(self.metrics | scores),
        )

    @property
    def report(self) -> str | None:
        """The text for judges; None for experiments without judges, and for a missing report.

        Raises
        ------
        UsageError
            If this version lacks its experiment, or its condition is invalid.
        """
        make = EXPERIMENTS.get(self.kind).report
        return None if make is None else make(condition_of(self), self.seed, self.events, self.bodies).text


class RunList(list[Run]):
    """Runs, which a notebook shows as a table."""

    def __repr__(self) -> str:
        told = (f"{run.kind} {run.id} ({run.shown_models}, seed {run.seed}): {run.standing}" for run in self)
        return "\n".join(told) or "no runs"

    def _repr_html_(self) -> str:
        """A row per run with its primary outcome, for notebooks."""
        cells = ([run.id, run.kind, run.shown_models, run.seed, run.standing, _outcome(run)] for run in self)
        row = Markup("<tr>{}</tr>")
        heads = Markup("").join(
            map(Markup("<th>{}</th>").format, ("run", "kind", "models", "seed", "status", "result"))
        )
        rows = (row.format(Markup("").join(map(Markup("<td>{}</td>").format, each))) for each in cells)
        return Markup("<table>{}{}</table>").format(row.format(heads), Markup("").join(rows))


def _outcome(run: Run) -> str:
    primary = EXPERIMENTS.get(run.kind).primary if run.kind in EXPERIMENTS else ""
    return f"{primary.replace('_', ' ')} {run.metrics[primary]:.4g}" if primary in run.metrics else ""


def _rows(values: Mapping[str, float | None]) -> Markup:
    row = Markup("<tr><th>{}</th><td>{}</td></tr>")
    texts = ((name, "unscored" if value is None else f"{value:.4g}") for name, value in values.items())
    return Markup("").join(row.format(name, text) for name, text in texts)
