"""The facts of `labmates.agents.facts` that hold for a run, for a seat, and for a seat in a phase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from labmates.agents.facts import ALWAYS
from labmates.agents.organisation_parts import Seat
from labmates.agents.steps import find_step
from labmates.workflows.science.lab.condition import ScienceCondition
from labmates.workflows.science.lab.evidence import SHARED
from labmates.workflows.science.lab.state import Phase


def run_facts(condition: ScienceCondition) -> frozenset[str]:
    """What holds for all seats of a run: the same in the shared part of their prompts."""
    crew, seats = condition.crew, [*condition.crew.seats]
    several = crew.has_colleagues
    apart = several and not crew.graph and not any(crew.may(verb, one, other) for verb, one, other in _pairs(seats))
    steps = [find_step(name) for name in crew.flow[-1].names]
    prices = {condition.prices.of(model) for model in condition.models()}
    shown = condition.visibility != "hidden"
    return _true(
        alone=not several,
        apart=apart,
        teams=several and not apart and len(crew.teams) > 1,
        group=several and not apart and len(crew.teams) == 1,
        merged=any(step.does == "write" and step.by_each for step in steps),
        pooled=several and not crew.share_of_seats(),
        shares=bool(crew.share_of_seats()),
        budget=shown,
        priced_tools=shown and bool(condition.prices.tool_call),
        one_price=shown and len(prices) == 1,
        divided=condition.evidence != SHARED and condition.arm != "oracle",
    )


def seat_facts(condition: ScienceCondition, seat: Seat) -> frozenset[str]:
    """What holds for a seat in all phases."""
    crew = condition.crew
    team = crew.teams[crew.seats[seat.id][0]]
    run = run_facts(condition)
    kinds = [find_step(name) for phase in crew.flow if phase.team == team.name for name in phase.names]
    mates = len(team.seats) > 1 and "apart" not in run
    plans = mates and any(kind.assigns for kind in kinds)
    last = team.name == crew.author
    return run | _true(
        mates=mates,
        leads=plans and seat.id == team.lead.id,
        led=plans and seat.id != team.lead.id,
        writes=seat.id == team.lead.id and any(kind.does == "write" and not kind.by_each for kind in kinds),
        codes=team.has_code,
        sees_reports=mates or team.memory == "step",
        last=last,
        hands_on="teams" in run and not last,
        others=mates or ("teams" in run and not last),
        unique=sum(other.title == seat.title for other in team.members) == 1,
        several_phases=sum(phase.team == team.name for phase in crew.flow) > 1,
        also=any(team.also.values()),
    )


def phase_facts(condition: ScienceCondition, seat: Seat, phase: Phase, workers: Sequence[Seat]) -> frozenset[str]:
    """What holds for a seat in the rest of a phase, in which these seats work."""
    team = condition.crew.teams[phase["team"]]
    kinds, flow = [find_step(name) for name in phase["steps"]], condition.crew.flow[phase["place"]]
    rounds = {kind.name: flow.step(kind.name).rounds or condition.deliberation_rounds for kind in kinds}
    return seat_facts(condition, seat) | _true(
        lead_works=team.lead in workers,
        reads=any(condition.crew.may("read", seat.id, other.id) for other in workers if other != seat),
        beside=sum(phase["members"][worker.id]["status"] in ("ready", "waiting") for worker in workers) > 1,
        talks=any(kind.tells and (kind.detail != "rounds" or rounds[kind.name]) for kind in kinds),
        final=all(later.team != team.name for later in condition.crew.flow[phase["place"] + 1 :]),
        write_next=any(kind.does == "write" for kind in kinds),
    )


def _pairs(seats: list[str]) -> Iterator[tuple[Any, str, str]]:
    return ((verb, one, other) for verb in ("read", "tell", "ask") for one in seats for other in seats if one != other)


def _true(**facts: bool) -> frozenset[str]:
    return ALWAYS.union(name for name, holds in facts.items() if holds)
