"""Organisations of the science lab, as data.

An organisation has seats in teams, and a flow of phases. In each phase one team takes steps, for instance plan, work,
talk, write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from string import Template
from typing import Any

from pydantic import Field, ValidationError, field_validator, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from labmates.agents.facts import ALWAYS, true_sentences
from labmates.agents.mcp_servers import McpServer
from labmates.agents.organisation_parts import (
    MOST_SEATS,
    REPORT,
    Approval,
    Channels,
    FlowPhase,
    Name,
    Part,
    Seat,
    Team,
    Verb,
)
from labmates.agents.prompts import TEXTS
from labmates.agents.steps import STEPS, find_step, kinds_by_label
from labmates.agents.tools import TOOLS
from labmates.errors import did_you_mean
from labmates.util.safe_text import PLAIN_LETTERS

OWN_TEAM: dict[str, Any] = {
    "artifact": REPORT,
    "sections": ["Abstract", "Introduction", "Dataset description", "Methods", "Results", "Evaluation", "Conclusion"],
    "seats": {"researcher": {"title": "researcher", "part": "Answer the questions of the project."}},
}
"""The team of a graph that declares none."""


class Organisation(Part):
    """Members of the lab, and rules for their work."""

    name: str = Field(description="Name in tables.")
    description: str = Field("", description="One sentence.")
    graph: str = Field(
        "",
        description="Your own function that takes a Lab and works in it, or returns a LangGraph graph that does: "
        "module:function or file.py:function (also beside this file). List its seats in seats: [NAMES], or as "
        "{NAME: {evidence, model}}; by default they are the seats that the code names.",
    )
    prompts: dict[str, str] = Field(
        {}, description="A folder of prompt files (NAME.md) beside the file; missing ones default to pipeline's."
    )
    channels: Channels = Field(
        Channels(),
        description="Channels for reading, telling and asking: all, none, or lists by name for each of the three.",
    )
    shares: str | dict[str, float] = Field(
        "pooled",
        description="Shares of the pool without its reserve: pooled (none), equal for all seats, or {NAME: SHARE} from "
        "0 to 1 for each seat. The pool pays for writing artifacts.",
    )
    mcp: dict[Name, McpServer] = Field(
        {},
        description="MCP servers by name, each {command: [PROGRAM, ARGUMENTS], env: [VARIABLES]} or {url: ADDRESS}.",
    )
    approve: tuple[Approval, ...] = Field(
        (),
        description="Points that need a person's approval: plan (before it is carried out), request (before another "
        "team gets it), write (before a version of an artifact is kept).",
    )
    size: int = Field(
        2,
        ge=1,
        le=MOST_SEATS,
        description="Seats of each team in use, unless --team-size is given. Default: those of the largest team.",
    )
    code: dict[str, str] = Field({}, description="SHA-256 of the files that it executes, by path; computed.")
    flow: tuple[FlowPhase, ...] = Field(
        description="The phases in order: each a team, or TEAM: [steps] with steps of its own."
    )
    teams: dict[Name, Team] = Field(min_length=1, description="The teams by name.")

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: Any) -> Any:
        """Give teams and seats their names, and each phase its steps."""
        if not isinstance(data, Mapping):
            return data
        data = dict(data)
        if data.get("graph"):
            data = _of_graph(data)
        steps = data.pop("steps", ("plan", "work", "talk", "write"))
        if isinstance(data.get("flow"), list | tuple):
            data["flow"] = [_phase(phase, steps) for phase in data["flow"]]
        if isinstance(data.get("teams"), Mapping):
            data["teams"] = {name: _with_names(team, name) for name, team in data["teams"].items()}
            data.setdefault("size", max([2, *map(_seats_in, data["teams"].values())]))
        return data

    @field_validator("name")
    @classmethod
    def _is_name(cls, name: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
            rule = f"{PLAIN_LETTERS}, digits, '.', '_' and '-', at most 64"
            raise ValueError(f"a name has {rule}, not '{name[:80]}'")
        return name

    @field_validator("shares", mode="before")
    @classmethod
    def _known_shares(cls, value: Any) -> Any:
        if value in ("pooled", "equal"):
            return value
        if not isinstance(value, Mapping):
            raise ValueError(f"'{value}' is not pooled, equal or shares of seats such as {{ana: 0.6, ben: 0.4}}")
        for name, share in value.items():
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
                raise ValueError(f"the share of {name} must be above 0 and at most 1, not {share!r}")
        return value

    @field_validator("prompts")
    @classmethod
    def _known_prompts(cls, prompts: dict[str, str]) -> dict[str, str]:
        for name, text in prompts.items():
            try:
                known = sorted(_identifiers(_usual_prompt(name)))
            except KeyError:
                raise ValueError(f"{name}.md is not a prompt of the lab") from None
            if not Template(text).is_valid():
                raise ValueError(f"{name}.md has a lone $; write $$ for a dollar sign")
            if unknown := sorted(set(Template(text).get_identifiers()) - set(known)):
                raise ValueError(f"{name}.md: there is no value ${unknown[0]}; values: ${', $'.join(known)}")
        return prompts

    @model_validator(mode="after")
    def _fits_together(self) -> Organisation:
        details = [
            InitErrorDetails(type=PydanticCustomError("organisation", "{why}", {"why": why}), loc=where, input=given)
            for where, given, why in faults(self)
        ]
        if details:
            raise ValidationError.from_exception_data(self.name, details)
        return self

    def __hash__(self) -> int:
        return hash((self.name, *self.teams))

    @property
    def has_colleagues(self) -> bool:
        """Whether there is more than one seat; a graph may have any number."""
        return bool(self.graph) or len(self.teams) > 1 or len(next(iter(self.teams.values())).seats) > 1

    @property
    def tools(self) -> list[str]:
        """Names of the tools sent with every call: those of any team."""
        held = [name for name in TOOLS if any(name not in team.without for team in self.teams.values())]
        return [*held, *dict.fromkeys(name for team in self.teams.values() for name in team.own_tools)]

    @property
    def handed(self) -> dict[str, str]:
        """The team of each artifact of a fixed form."""
        return {name: team.name for team in self.teams.values() for name in team.handed()}

    def owner(self, name: str) -> str | None:
        """The team that owns an artifact; None if any team may write it."""
        return next((team.name for team in self.teams.values() if team.owns(name)), None)

    def before(self, team: str) -> list[str]:
        """The teams with earlier phases than `team`."""
        order = list(dict.fromkeys(phase.team for phase in self.flow))
        return order[: order.index(team)]

    def place(self, team: str) -> int:
        """Position of a team's first phase in the flow."""
        return next(place for place, phase in enumerate(self.flow) if phase.team == team)

    @property
    def declares_seats(self) -> bool:
        """Whether the seats are declared; a graph may name its seats in its code only."""
        return not self.graph or [*self.seats] != [*OWN_TEAM["seats"]]

    @property
    def seats(self) -> dict[str, tuple[str, Seat]]:
        """All seats by name, each with the name of its team."""
        return {name: (team.name, seat) for team in self.teams.values() for name, seat in team.seats.items()}

    @property
    def author(self) -> str:
        """The team that writes the paper."""
        return self.flow[-1].team

    @property
    def most_seats(self) -> int:
        """The seats of the largest team."""
        return max(len(team.seats) for team in self.teams.values())

    def workers(self, phase: FlowPhase) -> tuple[Seat, ...]:
        """The working seats of a phase."""
        members = self.teams[phase.team].members
        who = {step.who for step in phase.steps if find_step(step.do).does == "work"}
        return members[1:] or members if who == {"others"} else members

    def may(self, verb: Verb, who: str, whom: str) -> bool:
        """Whether the seat `who` may read, tell or ask `whom`: a seat, or any seat of a team."""
        if whom in self.teams:
            return any(self.may(verb, who, seat) for seat in self.teams[whom].seats)
        allowed = ((mine, names) for listed, mine, names in self.channels.lists() if listed == verb)
        return who == whom or any(
            self.means(mine, who) and any(self.means(name, whom) for name in names) for mine, names in allowed
        )

    def share_of_seats(self) -> dict[str, float]:
        """The share of the pool of each seat, from 0 to 1, by the first name that matches it; empty if pooled."""
        if isinstance(self.shares, str):
            return dict.fromkeys(self.seats, 1 / len(self.seats)) if self.shares == "equal" else {}
        given = self.shares.items()
        return {seat: next(share for name, share in given if self.means(name, seat)) for seat in self.seats}

    def states(self, seat: Seat) -> bool:
        """Whether a seat states findings while it works: the lead of a team whose members don't write one by one."""
        team = self.teams[self.seats[seat.id][0]]
        return seat == team.lead and not self.joins(team)

    def artifact_of(self, seat: Seat) -> str:
        """The artifact that a seat's work leads to: its team's, or its own report where each member writes one."""
        team = self.teams[self.seats[seat.id][0]]
        return f"{team.artifact}_of_{seat.id}" if self.joins(team) else team.artifact

    def joins(self, team: Team) -> bool:
        """Whether the members of a team write a report each, which are joined."""
        steps = (find_step(name) for phase in self.flow if phase.team == team.name for name in phase.names)
        return any(step.does == "write" and step.by_each for step in steps)

    def means(self, name: str, seat: str) -> bool:
        """Whether a name in a channel refers to a seat."""
        if name in ("all", seat) or re.fullmatch(rf"{re.escape(name)}_\d+", seat):
            return True
        return seat in self.seats and self.seats[seat][0] == name

    def of_size(self, size: int) -> Organisation:
        """The organisation with the first `size` seats of each team."""
        return self.model_copy(update={"teams": {name: team.of_size(size) for name, team in self.teams.items()}})

    def prompt(self, name: str, facts: frozenset[str] = ALWAYS) -> Template:
        """The true sentences of the prompt `name` of the organisation, else of its step or of the lab."""
        return Template(true_sentences(self.prompts.get(name) or _usual_prompt(name), facts))

    def shown_in(self, prompt: str, facts: frozenset[str] = ALWAYS) -> tuple[str, ...]:
        """The names of the values that a prompt shows."""
        return _identifiers(self.prompt(prompt, facts).template)

    def render(self, prompt: str, facts: frozenset[str] = ALWAYS, **values: object) -> str:
        """A filled-in prompt, without lines of empty values alone; unused values are ignored."""
        texts = {name: str(value) for name, value in values.items()}
        empty = "|".join(name for name, text in texts.items() if not text) or "$"
        lines = re.sub(rf"^(\$({empty})\b)+\n", "", f"{self.prompt(prompt, facts).template}\n", flags=re.MULTILINE)
        return Template(re.sub(r"\n{3,}", "\n\n", lines)[:-1]).substitute(texts)


def _usual_prompt(name: str) -> str:
    """The prompt `name` of a step, or of the lab. Raises `KeyError` if there is none."""
    if text := TEXTS.get(name):
        return text
    for step in kinds_by_label().values():
        if name in step.prompts:
            return step.prompts[name]
    raise KeyError(name)


@lru_cache(maxsize=256)
def _identifiers(text: str) -> tuple[str, ...]:
    return tuple(Template(text).get_identifiers())


def _phase(phase: Any, steps: Any) -> Any:
    """A phase of the flow as data, with its steps."""
    if isinstance(phase, str):
        return {"team": phase, "steps": steps}
    if isinstance(phase, Mapping) and len(phase) == 1:
        [(team, steps)] = phase.items()
        return {"team": team, "steps": steps}
    return phase


def _of_graph(data: dict[str, Any]) -> dict[str, Any]:
    """The data of an organisation as code, with one team for its declared seats."""
    if "flow" not in data and (wiring := [key for key in ("channels", "steps", "size") if key in data]):
        raise ValueError(f"{wiring[0]}: an organisation as code says this in its code; leave it out")
    if "seats" not in data:
        return {"flow": ["lab"], "steps": ["write"], "teams": {"lab": OWN_TEAM}, **data}
    seats = data["seats"]
    if isinstance(seats, list | tuple):
        seats = {str(name): {} for name in seats}
    if isinstance(seats, Mapping):
        usual = next(iter(OWN_TEAM["seats"].values()))
        seats = {name: {**usual, **seat} if isinstance(seat, Mapping) else seat for name, seat in seats.items()}
    team = {**OWN_TEAM, "seats": seats}
    rest = {key: value for key, value in data.items() if key != "seats"}
    return {"flow": ["lab"], "steps": ["write"], "teams": {"lab": team}, **rest}


def _with_names(team: Any, name: str) -> Any:
    if not isinstance(team, Mapping):
        return team
    seats = team.get("seats")
    if isinstance(seats, Mapping):
        seats = {name: seat for stem, value in seats.items() for name, seat in _numbered(stem, value).items()}
    return {**team, "name": name, **({"seats": seats} if seats is not None else {})}


def _seats_in(team: Any) -> int:
    seats = team.get("seats") if isinstance(team, Mapping) else None
    return min(len(seats), MOST_SEATS) if isinstance(seats, Mapping) else 0


def _numbered(stem: str, seat: Any) -> dict[str, Any]:
    """A seat as data with its name; with a count, several seats numbered from 1."""
    if not isinstance(seat, Mapping):
        return {stem: seat}
    count = seat.get("count")
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_SEATS:
        return {stem: {**seat, "id": stem}}  # the seat's validator reports an invalid count
    inner = {key: value for key, value in seat.items() if key != "count"}
    return {name: {**inner, "id": name} for name in (f"{stem}_{number}" for number in range(1, count + 1))}


Fault = tuple[tuple[str | int, ...], object, str]
"""The place of a fault, the invalid value, and the remedy."""


def faults(organisation: Organisation) -> Iterator[Fault]:
    """Faults in the combination of an organisation's parts."""
    if organisation.graph and ":" not in organisation.graph:
        why = f"'{organisation.graph}' is not module:function or file.py:function"
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
            yield ("flow", place), phase.names, "a step is repeated; move it into another phase"


def _of_approval(organisation: Organisation) -> Iterator[Fault]:
    points = organisation.approve
    if points and organisation.graph:
        yield ("approve",), points, "an organisation as code asks for approval in its code; leave it out"
    elif "plan" in points and not any(
        find_step(name).approval == "plan" for phase in organisation.flow for name in phase.names
    ):
        yield ("approve",), "plan", "no phase of the flow has the step plan; leave it out"
    if len(set(points)) < len(points):
        yield ("approve",), points, "an entry is repeated; name it once"


def _of_teams(organisation: Organisation) -> Iterator[Fault]:
    working = {phase.team for phase in organisation.flow}
    owners: dict[str, str] = {}
    seats: dict[str, str] = {}
    for name, team in organisation.teams.items():
        if name not in working:
            yield ("teams", name), name, "this team never works; name it in the flow, or leave it out"
        if team.artifact in team.also:
            why = f"{team.artifact} is the team's artifact already; leave it out"
            yield ("teams", name, "also"), team.artifact, why
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
    if find_step(steps[-1]).does != "write":
        writing = " or ".join(name for name in sorted(STEPS, reverse=True) if find_step(name).does == "write")
        yield ("flow", len(organisation.flow) - 1), steps, f"the last step has to be {writing}"


def _of_names(organisation: Organisation) -> Iterator[Fault]:
    """Faults of names in channels and shares, and seats without a share."""
    seats = organisation.seats
    stems = dict.fromkeys(re.sub(r"_\d+$", "", seat) for seat in seats)
    known = {"all", *organisation.teams, *seats, *stems}
    shares = organisation.shares if isinstance(organisation.shares, dict) else {}
    named: list[tuple[tuple[str, ...], str]] = [(("shares", name), name) for name in shares]
    for verb, who, whom in organisation.channels.lists():
        named += [(("channels", verb, who), name) for name in (who, *whom)]
    for where, name in named:
        if name not in known:
            hint = f"{did_you_mean(name, known)} Teams: {', '.join(organisation.teams)}; seats: {', '.join(stems)}"
            yield where, name, f"there is no seat or team '{name}'.{hint}"
    without = [seat for seat in seats if shares and not any(organisation.means(name, seat) for name in shares)]
    if without:
        yield ("shares",), without[0], f"the seat {without[0]} has no share; give it one, or one to 'all'"
