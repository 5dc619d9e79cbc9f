"""Drawings of organisations, as Mermaid text: phases in order, teams with their seats, and channels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_parts import Step, Team, Verb
from labmates.agents.steps import find_step

_HEAD: Final = "flowchart TD"
_VERBS: Final[Mapping[Verb, str]] = {"read": "reads", "tell": "tells", "ask": "asks"}
_TOOLS: Final[Mapping[Verb, set[str]]] = {
    "read": {"read_artifact"},
    "tell": {"send_message"},
    "ask": {"request_additional_work", "request_team_redo"},
}


def mermaid(organisation: Organisation) -> str:
    """The phases, teams, seats and channels of an organisation as a Mermaid flowchart.

    Counted seats are one node (``member ×3``). Channels open to everyone are a note; lists are arrows. Only seats
    within the organisation's size are drawn.
    """
    seated = organisation.of_size(organisation.size)
    teams = _teams(seated) if seated.declares_seats else ()
    return "\n".join([_HEAD, *_phases(seated), *teams, *_channels(seated), ""])


def _phases(organisation: Organisation) -> Iterator[str]:
    """Each phase with its steps; of an organisation as code its function."""
    texts = [
        f"{number}. {phase.team}: {', '.join(map(_step, phase.steps))}"
        for number, phase in enumerate(organisation.flow, start=1)
    ]
    if organisation.graph:
        texts = [organisation.graph if organisation.declares_seats else f"{organisation.graph}, which names its seats"]
    yield '  subgraph phases["Phases"]'
    for number, text in enumerate(texts, start=1):
        yield f'    phase_{number}["{_escaped(text)}"]'
    yield from (f"    phase_{number} --> phase_{number + 1}" for number in range(1, len(organisation.flow)))
    yield "  end"


def _step(step: Step) -> str:
    rounds = [f"{step.rounds} round{'s' if step.rounds > 1 else ''}"] if step.rounds else []
    details = (["others"] if step.who == "others" else []) + rounds
    return f"{step.do} ({', '.join(details)})" if details else step.do


def _teams(organisation: Organisation) -> Iterator[str]:
    for team in organisation.teams.values():
        yield f'  subgraph team_{team.name}["{team.name} writes {team.artifact}"]'
        for stem, number in _stems(team).items():
            yield f'    seat_{stem}["{stem}{f" ×{number}" if number > 1 else ""}"]'
        yield "  end"


def _stems(team: Team) -> Counter[str]:
    """The number of seats by name; counted seats share their stem."""
    counted = Counter(map(_stem, team.seats))
    return Counter(_stem(seat) if counted[_stem(seat)] > 1 else seat for seat in team.seats)


def _stem(seat: str) -> str:
    return re.sub(r"_\d+$", "", seat)


def _verbs(organisation: Organisation) -> list[Verb]:
    """The kinds of communication for which a team has tools or steps."""
    if organisation.graph or not organisation.has_colleagues:  # code decides about communication itself
        return []
    talks = any(find_step(name).tells for phase in organisation.flow for name in phase.names)
    return [verb for verb, tools in _TOOLS.items() if (verb == "tell" and talks) or tools & {*organisation.tools}]


def _channels(organisation: Organisation) -> Iterator[str]:
    nodes, verbs = _nodes(organisation), _verbs(organisation)
    for verb, who, whom in organisation.channels.lists():
        if verb not in verbs:
            continue
        if (who, whom) == ("all", ("all",)):
            yield f'  note_{verb}>"everyone {_VERBS[verb]} everyone"]'
        else:
            drawn = (name for name in whom if who in nodes and name in nodes)  # others are beyond its size
            yield from (f"  {nodes[who]} -- {_VERBS[verb]} --> {nodes[name]}" for name in drawn)


def _nodes(organisation: Organisation) -> dict[str, str]:
    """The nodes by all names usable in channels."""
    teams = {name: f"team_{name}" for name in organisation.teams}
    stems = {stem: f"seat_{stem}" for team in organisation.teams.values() for stem in _stems(team)}
    seats = {seat: stems.get(seat) or stems[_stem(seat)] for seat in organisation.seats}
    counted = {_stem(seat): node for seat, node in seats.items()}
    return {"all": "all((everyone))", **teams, **counted, **seats, **stems}


def _escaped(text: str) -> str:
    return text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
