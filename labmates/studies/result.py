"""A run as Python gets it: its record, and what the store holds of it, read when it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

from markupsafe import Markup

from labmates.records.bodies import Bodies, Value
from labmates.records.events import ArtifactEvent, Event, MessageEvent, ScoreEvent, ToolCallEvent
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.workflows.experiment import EXPERIMENTS, condition_of


@dataclass(frozen=True)
class Message:
    """A message of one agent to others."""

    team: str
    agent: str
    to: str
    text: str


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
        """The run of a record."""
        return cls(**{each.name: getattr(record, each.name) for each in fields(RunRecord)}, store=store.url)

    @cached_property
    def events(self) -> list[Event]:
        """All that happened, in order."""
        with Store(self.store, must_exist=True) as store:
            return store.events(self.id)

    @cached_property
    def bodies(self) -> Bodies:
        """The long texts that events name by number."""
        with Store(self.store, must_exist=True) as store:
            return Bodies(store.bodies(self.id))

    @property
    def scores(self) -> list[ScoreEvent]:
        """The judges' scores, in the order in which they were given."""
        return [event for event in self.events if isinstance(event, ScoreEvent)]

    @property
    def messages(self) -> list[Message]:
        """The messages of the agents to one another, in order."""
        events = (event for event in self.events if isinstance(event, MessageEvent))
        return [Message(event.team, event.agent, event.to, self.bodies.text(event.text)) for event in events]

    @property
    def artifacts(self) -> dict[str, Value]:
        """The newest version of each artifact, by name."""
        return {event.name: self.bodies[event.content] for event in self.events if isinstance(event, ArtifactEvent)}

    @property
    def figures(self) -> list[bytes]:
        """The figures that agents' code drew, as PNG files in order."""
        calls = (event for event in self.events if isinstance(event, ToolCallEvent))
        return [self.bodies[number] for call in calls for number in call.images]

    def _repr_html_(self) -> str:
        """The run's status, metrics and scores as a table, for notebooks."""
        scores = {f"{score.judge}: {score.metric}": score.value for score in self.scores}
        return Markup("<table><caption>{} {} ({}, seed {}): {}</caption>{}</table>").format(
            self.kind, self.id, self.shown_models, self.seed, self.error or self.standing, _rows(self.metrics | scores)
        )

    @property
    def report(self) -> str | None:
        """The text that judges read; None for an experiment that nobody judges, and where there is none.

        Raises
        ------
        UsageError
            If its experiment or its condition is not of this version.
        """
        make = EXPERIMENTS.get(self.kind).report
        return None if make is None else make(condition_of(self), self.seed, self.events, self.bodies).text


def _rows(values: Mapping[str, float | None]) -> Markup:
    row = Markup("<tr><th>{}</th><td>{}</td></tr>")
    texts = ((name, "unscored" if value is None else f"{value:.4g}") for name, value in values.items())
    return Markup("").join(row.format(name, text) for name, text in texts)
