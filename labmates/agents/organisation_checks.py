"""Checks of an organisation as a whole: whether its parts fit together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from labmates.agents.organisation_parts import REPORT, WRITES
from labmates.errors import did_you_mean

if TYPE_CHECKING:
    from labmates.agents.organisation import Organisation

Fault = tuple[tuple[str | int, ...], object, str]
"""The place of a fault, the value there, and what to do about it."""


def faults(organisation: Organisation) -> Iterator[Fault]:
    """The faults of an organisation whose parts are valid one by one."""
    if organisation.graph and ":" not in organisation.graph:
        why = f"'{organisation.graph}' names no function; write module:function or file.py:function"
        yield ("graph",), organisation.graph, why
    if not organisation.flow:
        yield ("flow",), [], "it is empty; name at least one team"
        return
    yield from _of_flow(organisation)
    yield from _of_approval(organisation)
    yield from _of_teams(organisation)
    yield from _of_servers(organisation)
    yield from _of_paper(organisation)
    yield from _of_names(organisation)


def _of_flow(organisation: Organisation) -> Iterator[Fault]:
    teams = organisation.teams
    for place, phase in enumerate(organisation.flow):
        if phase.team not in teams:
            hint = f"{did_you_mean(phase.team, teams)} Teams: {', '.join(teams)}"
            yield ("flow", place), phase.team, f"there is no team '{phase.team}'.{hint}"
        if len(set(phase.names)) < len(phase.names):
            yield ("flow", place), phase.names, "a step stands here twice; make it a phase of its own"


def _of_approval(organisation: Organisation) -> Iterator[Fault]:
    points = organisation.approve
    if points and organisation.graph:
        yield ("approve",), points, "an organisation as code asks in its code; leave it out"
    elif "plan" in points and not any("plan" in phase.names for phase in organisation.flow):
        yield ("approve",), "plan", "no phase of the flow has the step plan; leave it out"
    if len(set(points)) < len(points):
        yield ("approve",), points, "one of its entries stands here twice; name it once"


def _of_teams(organisation: Organisation) -> Iterator[Fault]:
    working = {phase.team for phase in organisation.flow}
    owners: dict[str, str] = {}
    seats: dict[str, str] = {}
    for name, team in organisation.teams.items():
        if name not in working:
            yield ("teams", name), name, "this team never works; name it in the flow, or leave it out"
        if team.artifact in team.also:
            yield (
                ("teams", name, "also"),
                team.artifact,
                f"{team.artifact} is the team's artifact already; leave it out",
            )
        for artifact in (*team.also, team.artifact):
            if owners.setdefault(artifact, name) != name:
                yield ("teams", name), artifact, f"the artifact {artifact} belongs to the team {owners[artifact]}"
        for seat in team.seats:
            if seats.setdefault(seat, name) != name:
                why = f"the team {seats[seat]} has a seat of this name; choose another name"
                yield ("teams", name, "seats", seat), seat, why


def _of_servers(organisation: Organisation) -> Iterator[Fault]:
    known = organisation.mcp
    teams = organisation.teams.values()
    named = {(team.name, tool): tool.partition(".") for team in teams for tool in team.own_tools}
    for (team, tool), (server, dot, _) in named.items():
        if dot and server not in known:
            hint = f"{did_you_mean(server, known)} Servers: {', '.join(known) or 'none; name them under mcp'}"
            yield ("teams", team, "own_tools"), tool, f"there is no MCP server '{server}'.{hint}"
    for server in known:
        if not organisation.graph and server not in [server for server, _, _ in named.values()]:
            yield ("mcp", server), server, "no team has its tools; name it under own_tools, or leave it out"


def _of_paper(organisation: Organisation) -> Iterator[Fault]:
    last = organisation.teams.get(organisation.author)
    if last is not None and last.artifact != REPORT:
        where = ("teams", last.name, "artifact")
        yield where, last.artifact, f"the team that works last has to write {REPORT}, which judges read"
    steps = organisation.flow[-1].names
    if steps[-1] not in WRITES:
        yield ("flow", len(organisation.flow) - 1), steps, "the last step has to be write or report"


def _of_names(organisation: Organisation) -> Iterator[Fault]:
    """Faults of names in channels and shares, and seats without a share."""
    seats = organisation.seats
    known = {"all", *organisation.teams, *seats, *(re.sub(r"_\d+$", "", seat) for seat in seats)}
    shares = organisation.shares if isinstance(organisation.shares, dict) else {}
    named: list[tuple[tuple[str, ...], str]] = [(("shares", name), name) for name in shares]
    for verb, who, whom in organisation.channels.lists():
        named += [(("channels", verb, who), name) for name in (who, *whom)]
    for where, name in named:
        if name not in known:
            hint = f"{did_you_mean(name, known)} Teams: {', '.join(organisation.teams)}"
            yield where, name, f"there is no seat or team '{name}'.{hint}"
    without = [seat for seat in seats if shares and not any(organisation.means(name, seat) for name in shares)]
    if without:
        yield ("shares",), without[0], f"the seat {without[0]} has no share; give it one, or one to 'all'"
