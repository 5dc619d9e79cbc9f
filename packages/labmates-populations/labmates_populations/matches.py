"""Replayed matches of a run: the same strategies, seats and random numbers.

A run records sums of each generation or mixture, not moves. Its matches follow from the condition, the seed and the
recorded agents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates.errors import UsageError
from labmates.records.events import PayoffEvent
from labmates.records.run import RunRecord
from labmates.workflows.protocol.experiment import condition_of
from labmates_populations.condition import EvolutionCondition, SelfplayCondition
from labmates_populations.engine.crew import Crew, Strategies
from labmates_populations.engine.evolution import Evolution
from labmates_populations.engine.match import Match, match_of
from labmates_populations.engine.workers import Batch, chunks
from labmates_populations.evolution import newest
from labmates_populations.selfplay import games_of

STEPS = {"evolution": "generation", "selfplay": "mixture"}
"""The name of a step in each kind of run that plays matches."""


@dataclass(frozen=True)
class Replayed:
    """A replayed match of a run.

    Attributes
    ----------
    step, group
        The generation or mixture, and the number of the group in it, from 0.
    seats
        The ``strategy`` on each seat, its ``gene``, and the ``agent``, where seats have agents.
    """

    step: int
    group: int
    match: Match
    seats: list[dict[str, Any]]

    def as_json(self) -> dict[str, Any]:
        """The JSON object."""
        match = self.match.as_json()
        payoffs = self.match.payoffs.tolist()
        return {"step": self.step, "group": self.group, "players": self.seats, **match, "payoffs": payoffs}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Table rows, one for each player and round."""
        for row in self.match.rows():
            yield {"step": self.step, "group": self.group, **row, **self.seats[row["seat"]]}


def replay_matches(
    run: RunRecord, events: Sequence[PayoffEvent], crew: Crew, step: int | None = None, group: int | None = None
) -> Iterator[Replayed]:
    """Replay matches of a run.

    Parameters
    ----------
    events
        The run's payoff events, in order.
    step
        The generation, or the mixture's number of selfish players; by default the last one recorded in full.
    group
        By default all groups.

    Raises
    ------
    UsageError
        If the run has no matches, or no such step or group, or its strategies are missing.
    """
    condition = condition_of(run)
    if not isinstance(condition, EvolutionCondition | SelfplayCondition):
        raise UsageError(f"run {run.id} is of the kind {run.kind}; only {' and '.join(STEPS)} have matches to replay")
    assert condition.digest is not None
    step = _step(run, events, step)
    strategies = crew.open((condition.strategies, condition.game, *condition.chosen), condition.digest)
    if isinstance(condition, SelfplayCondition):
        earlier = [event for event in events if event.details["selfish"] < step]
        batch = games_of(condition, strategies.population, run.seed, step, earlier)
        agents: NDArray[np.int64] = np.empty((len(batch.groups), 0), np.int64)
    else:
        agents, batch = _generation(condition, strategies, run.seed, events, step)
    if group is not None and group >= len(batch.groups):
        raise UsageError(f"--group: {STEPS[run.kind]} {step} has the groups 0 to {len(batch.groups) - 1}, not {group}")
    return _played(strategies, batch, agents, step, group)


def _step(run: RunRecord, events: Sequence[PayoffEvent], step: int | None) -> int:
    known = [_number(run, event) for event in events]
    if not known:
        raise UsageError(f"run {run.id} has no recorded {STEPS[run.kind]} yet")
    if step is None:  # the last one whose matches can be replayed without others
        return [_number(run, event) for event in events if run.kind == "selfplay" or "agents" in event.details][-1]
    if step not in known:
        raise UsageError(f"--step: run {run.id} has no {STEPS[run.kind]} {step}; it has {min(known)} to {max(known)}")
    return step


def _number(run: RunRecord, event: PayoffEvent) -> int:
    return int(event.details["selfish"]) if run.kind == "selfplay" else event.round


def _generation(
    condition: EvolutionCondition, strategies: Strategies, seed: int, events: Sequence[PayoffEvent], number: int
) -> tuple[NDArray[np.int64], Batch]:
    """The agents on the seats of a generation, and its games; replays generations since the last recorded agents."""
    evolution = Evolution(condition, strategies.population, strategies.play, seed=seed)
    state = newest(evolution, [event for event in events if event.round <= number])
    for generation in islice(evolution.generations(state), number - state[0]):
        state = evolution.after(generation)
    return evolution.games(*state)


def _played(
    strategies: Strategies, batch: Batch, agents: NDArray[np.int64], step: int, group: int | None
) -> Iterator[Replayed]:
    """Play groups of a batch; whole chunks, since a slow strategy is stopped for the rest of its chunk."""
    population = strategies.population
    gene_of = {index: str(gene) for gene, members in population.genes.items() for index in members}
    for chunk in chunks(batch):
        numbers = chunk.group_numbers.tolist()
        if group is not None and group not in numbers:
            continue
        [result] = strategies.play([chunk])
        for number in numbers if group is None else [group]:
            place = number - numbers[0]
            members = chunk.groups[place].tolist()
            seats = [{"strategy": population.names[index], "gene": gene_of[index]} for index in members]
            for seat, agent in zip(seats, agents[number].tolist(), strict=False):
                seat["agent"] = agent
            match = match_of(chunk, result, place, [seat["strategy"] for seat in seats])
            yield Replayed(step, number, match, seats)
