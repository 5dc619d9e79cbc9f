"""The record of a cross-play of a social dilemma: matches, decisions and agreements from its events."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

import numpy as np
from pydantic import TypeAdapter

from labmates.errors import UsageError
from labmates.games.dilemmas import get_dilemma
from labmates.games.normal_form import NormalForm
from labmates.games.payoff_table import PayoffTable
from labmates.mechanisms.base import Played
from labmates.mechanisms.mediation import DELEGATE
from labmates.mechanisms.registry import MECHANISMS
from labmates.records.events import DecisionEvent, Event, PayoffEvent
from labmates.stats.domains import ANY, Domain
from labmates.stats.metagame import Array, metagame
from labmates.stats.ratings import Cell, Scale
from labmates.stats.validity import Tally, tallies
from labmates.util.display_names import is_reference, labels_apart
from labmates.util.grouping import grouped
from labmates.workflows.protocol.experiment import condition_of

if TYPE_CHECKING:
    from labmates.records.run import RunRecord
    from labmates.records.store import Store
    from labmates.workflows.dilemmas.condition import DilemmaCondition
    from labmates.workflows.protocol.analysis import Runs

T = TypeVar("T", "Round", "Agreement")
Use = Literal["expected", "sampled"]
"""Payoffs expected from the players' distributions, or those of the drawn actions."""

AGREEMENT = "agreement"
"""The stage of the events with the outcomes of proposals and votes."""


_SHOWN: Final = frozenset({"game", "mechanism", "terms", "entrants", "prices"})
_SHOWN_TERMS: Final = frozenset({"order"})
"""Parts of a condition that have columns in tables, or that do not affect play."""


@dataclass(frozen=True, kw_only=True)
class Round(Played):
    """One play of the game in a match; its step is that in the run."""

    match: str
    models: tuple[str, ...]  # by seat, the displayed name of the model
    labels: tuple[tuple[str, ...], ...]  # by seat, names of the actions
    failed: tuple[bool, ...]  # by seat, whether the decision failed, so that `mixes` has the fallback

    @property
    def shares(self) -> list[dict[str, float]]:
        """By seat, the probability of each action."""
        both = zip(self.labels, self.mixes, strict=True)
        return [{label: share / 100 for label, share in zip(*one, strict=True)} for one in both]


@dataclass(frozen=True)
class Agreement:
    """The outcome of proposals and votes, by seat from 0."""

    match: str
    place: str  # prefix of the steps of all plays under it
    models: tuple[str, ...]
    proposals: tuple[Mapping[str, Any] | None, ...]
    stable: tuple[tuple[bool, bool] | None, ...]
    votes: tuple[tuple[int, ...], ...]
    winners: tuple[int, ...]
    tied: int
    signed: tuple[tuple[bool, ...], ...]

    def design(self, step: str) -> Mapping[str, Any] | None:
        """The design of a step; None without one."""
        designs: dict[int, Mapping[str, Any]] = {}
        for seat in self.winners:
            proposal = self.proposals[seat]
            if proposal is not None and proposal not in designs.values():
                designs[seat] = proposal
        if len(designs) < 2:
            return next(iter(designs.values()), None)
        # With several played, the next part of the name identifies it.
        return designs[int(step.removeprefix(self.place).partition("/")[0])]


_AGREEMENT = TypeAdapter(Agreement)


@dataclass(frozen=True)
class Decided:
    """A requested decision; `seat` from 0."""

    step: str
    model: str
    seat: int
    stage: str
    failed: bool


@dataclass(frozen=True)
class CrossPlay:
    """The record of one run."""

    run: str
    mechanism: str
    game: str
    models: tuple[str, ...]  # displayed names of the run's models
    table: PayoffTable
    has_metagame: bool  # whether co-players are fixed within matches
    rounds: tuple[Round, ...]
    agreements: tuple[Agreement, ...]
    decided: tuple[Decided, ...]  # all requested decisions
    left_out: Mapping[str, Tally] = field(default_factory=dict)  # models left out, with their decisions; see `without`

    @cached_property
    def failures(self) -> Mapping[str, Tally]:
        """Tallies of each model's decisions."""
        return tallies((decision.model, decision.failed) for decision in self.decided)

    @property
    def scale(self) -> Scale | None:
        """The scale that normalises payoffs: players' mean at full defection and at full cooperation."""
        return scale_of(self.table.game())

    def cell(self, use: Use = "expected") -> Cell:
        """The cell to rate. Raises `UsageError` if not every seating was played."""
        totals = self.totals(use)
        if not self.models:
            tensor: Array = np.zeros(0)
        elif self.has_metagame:
            matches = grouped((match, (self.models.index(model), paid)) for (match, _), (model, paid) in totals.items())
            played = (([seat for seat, _ in both], [paid for _, paid in both]) for both in matches.values())
            tensor = metagame(len(self.models), played)
        else:
            by_model = grouped(totals.values())
            tensor = np.array([np.mean(by_model.get(model, [np.nan])) for model in self.models])
        what = (self.run, self.mechanism, self.game, self.models, tensor, self.scale)
        domain = payoff_domain(self.table, self.mechanism)
        return Cell(*what, failures=self.failures, left_out=self.left_out, domain=domain)

    def without(self, models: Collection[str]) -> CrossPlay:
        """The same cross-play among the other models only; plays with `models` are removed."""
        if not models:
            return self

        def kept(entries: Sequence[T]) -> tuple[T, ...]:
            return tuple(entry for entry in entries if set(models).isdisjoint(entry.models))

        return replace(
            self,
            models=tuple(model for model in self.models if model not in models),
            rounds=kept(self.rounds),
            agreements=kept(self.agreements),
            decided=tuple(each for each in self.decided if each.model not in models),
            left_out={**self.left_out, **{m: tally for m, tally in self.failures.items() if m in models}},
        )

    def failed_at(self, place: str, stage: str) -> frozenset[int]:
        """The seats with a failed decision at a stage, in steps with this prefix."""
        return self._failed.get((place, stage), frozenset())

    @cached_property
    def _failed(self) -> Mapping[tuple[str, str], frozenset[int]]:
        failed = [each for each in self.decided if each.failed]
        seats = grouped(((place, each.stage), each.seat) for each in failed for place in places(each.step))
        return {key: frozenset(some) for key, some in seats.items()}

    def designs(self, step: str) -> Iterator[Mapping[str, Any]]:
        """The mediators, contracts and other designs in effect in a step, the outermost first."""
        around = (self._agreements[place] for place in places(step) if place in self._agreements)
        return filter(None, (agreement.design(step) for agreement in around))

    @cached_property
    def _agreements(self) -> dict[str, Agreement]:
        return {agreement.place: agreement for agreement in self.agreements}

    def cooperation(self, round_: Round) -> list[float]:
        """The probability of the cooperative action by seat, own or by the mediator.

        Empty for a game without a cooperative profile.
        """
        game = self.table.game()
        if game.cooperate is None:
            return []
        numbers = [str(number) for number in range(1, game.players + 1)]
        mediator = next((design for design in self.designs(round_.step) if set(design) == set(numbers)), None)
        delegated = [mix.get(DELEGATE, 0.0) for mix in round_.shares]
        probabilities = []
        for seat, (mix, names, good) in enumerate(zip(round_.shares, game.labels, game.cooperate, strict=True)):
            likely = mix[names[good]]
            if mediator is not None:
                others = _poisson_binomial([*delegated[:seat], *delegated[seat + 1 :]])
                acts = (game.labels[0].index(mediator[number]) == good for number in numbers)
                likely += delegated[seat] * sum(p for p, is_good in zip(others, acts, strict=True) if is_good)
            probabilities.append(likely)
        return probabilities

    def totals(self, use: Use) -> dict[tuple[str, int], tuple[str, float]]:
        """The model and the payoff of each agent of each match, in the order of agents.

        The weights of a match sum to 1; they are renormalised if rounds with other models were left out.
        """
        totals: dict[tuple[str, int], tuple[str, float]] = {}
        weights: defaultdict[tuple[str, int], float] = defaultdict(float)
        for round_ in self.rounds:
            values = round_.expected if use == "expected" else round_.payoffs
            for model, agent, value in zip(round_.models, round_.agents, values, strict=True):
                key = (round_.match, agent)
                totals[key] = model, totals.get(key, (model, 0.0))[1] + round_.weight * value
                weights[key] += round_.weight
        if self.left_out and not self.has_metagame:
            totals = {key: (model, payoff / weights[key]) for key, (model, payoff) in totals.items()}
        return dict(sorted(totals.items()))


def _poisson_binomial(probabilities: Sequence[float]) -> Array:
    """The distribution of the number of independent events that occur."""
    distribution: Array = np.ones(1)
    for probability in probabilities:
        distribution = np.convolve(distribution, [1 - probability, probability])
    return distribution


def places(step: str) -> Iterator[str]:
    """All prefixes of a step's name that end with a part."""
    return (step[: end + 1] for end, letter in enumerate(step) if letter == "/")


def payoff_domain(table: PayoffTable, mechanism: str) -> Domain:
    """The range of a player's payoffs; unbounded under mechanisms with payments between players."""
    payoffs = table.game().table
    low, high = float(payoffs.min()), float(payoffs.max())
    names = [part.partition("(")[0].strip() for part in mechanism.split("+")]
    is_bounded = all(name in MECHANISMS and not MECHANISMS.get(name).transfers for name in names)
    return Domain(low, high) if is_bounded and low < high else Domain(unit=high - low or 1.0)


def payoffs_in(condition: Mapping[str, Any]) -> Domain:
    """The range of payoffs under a condition, given as plain data; unbounded if the game is unknown."""
    try:
        return payoff_domain(_table_of(condition), condition["mechanism"])
    except (KeyError, UsageError):
        return ANY


def normalised_in(condition: Mapping[str, Any]) -> Domain:
    """The range of normalised payoffs; see `payoffs_in`."""
    payoffs = payoffs_in(condition)
    scale = scale_of(_table_of(condition).game()) if payoffs != ANY else None
    if scale is None:
        return ANY
    ends = scale.normalise(np.array([payoffs.low, payoffs.high]))
    return Domain(float(ends.min()), float(ends.max()))


def _table_of(condition: Mapping[str, Any]) -> PayoffTable:
    game = condition["game"]
    return get_dilemma(game) if isinstance(game, str) else PayoffTable.model_validate(game)


def scale_of(game: NormalForm) -> Scale | None:
    """The scale that normalises the payoffs of a game; None if cooperation does not differ from defection."""
    if game.cooperate is None or game.defect is None:
        return None
    defect, cooperate = (float(game.table[profile].mean()) for profile in (game.defect, game.cooperate))
    return Scale(defect, cooperate) if cooperate != defect else None


def cross_plays(runs: Runs) -> list[CrossPlay]:
    """The completed cross-plays among runs, those under ``none`` first; see `mechanism_labels` for their mechanisms.

    Raises `UsageError` if there are none, or a named run is of another experiment.
    """
    completed = sorted(runs.completed("dilemma"), key=lambda run: not is_reference(run.condition["mechanism"]))
    mechanisms = mechanism_labels([run.condition for run in completed])
    return [replace(_stored(runs.store, run), mechanism=name) for run, name in zip(completed, mechanisms, strict=True)]


def _stored(store: Store, run: RunRecord) -> CrossPlay:
    condition = cast("DilemmaCondition", condition_of(run))
    events = [event for kind in ("decision", "payoff") for event in store.events(run.id, kind=kind)]
    return read_cross_play(run.id, run.condition, condition.names(), events)


def read_cross_play(
    run: str, condition: Mapping[str, Any], models: Sequence[str], events: Sequence[Event]
) -> CrossPlay:
    """The cross-play in the events of a run.

    Parameters
    ----------
    condition
        The run's condition as JSON data.
    models
        Displayed names of its models.
    """
    table = _table_of(condition)
    # Matches are played at once: the record has them in the order in which they happened to end.
    events = sorted(events, key=lambda event: [(len(part), part) for part in re.split(r"(\d+)", event.step)])
    decided = [event for event in events if isinstance(event, DecisionEvent)]
    failed = {event.step for event in decided if event.failed}
    rounds = tuple(_round(table.game(), models, event, failed) for event in events if isinstance(event, PayoffEvent))
    groups = {place: round_.agents for round_ in rounds for place in places(round_.step)}
    return CrossPlay(
        run=run,
        mechanism=shown_mechanism(condition),
        game=table.name,
        models=tuple(models),
        table=table,
        has_metagame="pairing" not in condition.get("terms", {}),
        rounds=rounds,
        agreements=tuple(_agreement(models, event) for event in decided if event.stage == AGREEMENT),
        decided=tuple(
            Decided(event.step, event.agent, _seat(event, groups), event.stage, event.failed)
            for event in decided
            if event.stage != AGREEMENT
        ),
    )


def _seat(event: DecisionEvent, groups: Mapping[str, tuple[int, ...]]) -> int:
    """The seat of a decision: the last part of a step is an agent of a group, or directly a seat."""
    place, _, number = event.step.rpartition("/")
    agents = groups.get(place[: place.rfind("/") + 1], ())
    agent = int(number) - 1
    return agents.index(agent) if agent in agents else agent


def shown_mechanism(condition: Mapping[str, Any]) -> str:
    """Displayed name of a mechanism: reputation with its order, as − (1) or + (3)."""
    name = str(condition.get("mechanism", "none"))
    order = condition.get("terms", {}).get("order")
    return name.replace("reputation", f"reputation{'+' if order == 3 else '-'}") if order else name


def mechanism_labels(conditions: Sequence[Mapping[str, Any]]) -> list[str]:
    """The mechanism of each of several runs, with the parameters that differ.

    Terms that differ among runs under the same mechanism are in brackets (``repetition(rounds=5)``), other parameters
    follow (``none, reasoning=cot``); games and models, which tables show separately, are omitted.
    """
    names = [shown_mechanism(condition) for condition in conditions]
    labels = list(names)
    for name in dict.fromkeys(names):
        places = [place for place, other in enumerate(names) if other == name]
        terms = labels_apart([conditions[place].get("terms", {}) for place in places], _SHOWN_TERMS)
        others = labels_apart([conditions[place] for place in places], _SHOWN)
        for place, term, other in zip(places, terms, others, strict=True):
            labels[place] += f"({term})" if term else ""
            labels[place] += f", {other}" if other else ""
    return labels


def _round(game: NormalForm, models: Sequence[str], event: PayoffEvent, failed: Collection[str]) -> Round:
    details = event.details
    mixes = tuple(map(tuple, details["mixes"]))
    choose = f"{event.step.removesuffix('play')}choose"
    # A mediator adds an action to those of the game.
    labels = tuple((*names, DELEGATE)[: len(mix)] for names, mix in zip(game.labels, mixes, strict=True))
    return Round(
        step=event.step,
        match=event.match,
        round=event.round,
        models=tuple(models[entrant] for entrant in details["entrants"]),
        agents=tuple(agent - 1 for agent in details["agents"]),
        labels=labels,
        mixes=mixes,
        actions=tuple(details["actions"]),
        payoffs=tuple(event.payoffs.values()),
        expected=tuple(details["expected"]),
        weight=details["weight"],
        failed=tuple(f"{choose}/{agent}" in failed for agent in details["agents"]),
    )


def _agreement(models: Sequence[str], event: DecisionEvent) -> Agreement:
    seats = [models[entrant] for entrant in event.decision["entrants"]]
    where = {"match": event.match, "place": event.step.removesuffix("outcome"), "models": seats}
    return _AGREEMENT.validate_python({**event.decision, **where})
