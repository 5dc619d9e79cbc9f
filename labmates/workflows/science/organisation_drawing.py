"""Drawings of organisations, as SVG or Mermaid text: phases in order, teams with their seats, and channels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise, permutations
from typing import Final

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_parts import FlowPhase, Step, Team, Verb
from labmates.pages.rendering import cut
from labmates.util.grouping import grouped
from labmates.workflows.science.seat_graph import Arrow, seat_graph

_HEAD: Final = "flowchart TD"
_VERBS: Final[Mapping[Verb, str]] = {"read": "reads", "tell": "tells", "ask": "asks"}
_TOOLS: Final[Mapping[Verb, set[str]]] = {
    "read": {"read_artifact"},
    "tell": {"send_message"},
    "ask": {"request_additional_work", "request_team_redo"},
}
_STYLE: Final = """
svg { background: #fff; font-family: system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
text { font-size: 11px; fill: #586069; } .row { font-size: 12px; fill: #1d2125; }
.end { text-anchor: end; } .middle { text-anchor: middle; }
.over { paint-order: stroke; stroke: #fff; stroke-width: 4px; stroke-linejoin: round; }
.handed { fill: none; stroke: #21936c; } .unused { stroke: #586069; stroke-dasharray: 3 4; }
.c0 { fill: #2f78b7; } .c1 { fill: #d5652a; } .c2 { fill: #21936c; } .c3 { fill: #b45c93; }
.c4 { fill: #c99413; } .c5 { fill: #4fa3d1; } .c6 { fill: #6b7280; }
"""


def svg(organisation: Organisation) -> str:
    """The graph of an organisation's seats, as an SVG file.

    Arrows are artifacts for the next team, assigned tasks, and (dashed) channels; phases, and channels open to
    everyone, are lines of text. Only seats within the organisation's size are drawn, and none that only code names.
    """
    seated = organisation.of_size(organisation.size)
    teams = {seat: team for seat, (team, _) in seated.seats.items() if seated.declares_seats}
    notes = {seat: cut(details.title, 30) for seat, (_, details) in seated.seats.items()}
    notes |= {team.lead.id: f"writes {team.artifact}" for team in seated.teams.values()}
    pairs = [*permutations(teams, 2)]
    channels = {_VERBS[verb]: [pair for pair in pairs if seated.may(verb, *pair)] for verb in _verbs(seated)}
    everyone = [verb for verb, reached in channels.items() if len(reached) == len(pairs)]
    handed = {pair: what for pair, what in _handed(seated) if pair[0] != pair[1]}
    limited = ((pair, verb) for verb, reached in channels.items() if verb not in everyone for pair in reached)
    texts = grouped([*handed.items(), *limited])
    arrows = [Arrow(*pair, ", ".join(words), faint=pair not in handed) for pair, words in texts.items()]
    verbs = " and ".join(", ".join(everyone).rsplit(", ", 1))
    lines = [*_phase_texts(seated), *([f"Everyone {verbs} everyone."] if verbs else [])]
    return f"{seat_graph(seated.name, teams, notes, arrows, [cut(line, 100) for line in lines], style=_STYLE)}\n"


def _handed(organisation: Organisation) -> Iterator[tuple[tuple[str, str], str]]:
    """Pairs of seats: the leads of teams in turn with the artifact of the first, and planning leads with members."""
    for first, second in pairwise(organisation.teams[phase.team] for phase in organisation.flow):
        yield (first.lead.id, second.lead.id), first.artifact
    for phase in organisation.flow:
        team = organisation.teams[phase.team]
        yield from (((team.lead.id, seat), "assigns") for seat in team.seats if "plan" in phase.names)


def mermaid(organisation: Organisation) -> str:
    """The phases, teams, seats and channels of an organisation as a Mermaid flowchart.

    Counted seats are one node (``member ×3``). Channels open to everyone are a note; lists are arrows. Only seats
    within the organisation's size are drawn.
    """
    seated = organisation.of_size(organisation.size)
    teams = _teams(seated) if seated.declares_seats else ()
    return "\n".join([_HEAD, *_phases(seated), *teams, *_channels(seated), ""])


def _phases(organisation: Organisation) -> Iterator[str]:
    yield '  subgraph phases["Phases"]'
    for number, text in enumerate(_phase_texts(organisation), start=1):
        yield f'    phase_{number}["{_escaped(text)}"]'
    yield from (f"    phase_{number} --> phase_{number + 1}" for number in range(1, len(organisation.flow)))
    yield "  end"


def _phase_texts(organisation: Organisation) -> list[str]:
    """Each phase with its steps; of an organisation as code its function."""
    if organisation.graph:
        return [organisation.graph if organisation.declares_seats else f"{organisation.graph}, which names its seats"]
    return [f"{number}. {phase.team}: {_steps(phase)}" for number, phase in enumerate(organisation.flow, start=1)]


def _steps(phase: FlowPhase) -> str:
    return ", ".join(map(_step, phase.steps))


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
    talks = any("talk" in phase.names for phase in organisation.flow)
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
