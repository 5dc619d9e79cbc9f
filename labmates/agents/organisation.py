"""Organisations: who works in the science lab and how, as data.

An organisation is a YAML file with prompt files beside it. Its seats stand in teams; its flow is a list of phases, each
of which one team passes through in steps, for instance plan, work, talk, write.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    WrapSerializer,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from labmates.agents.mcp_servers import McpServer
from labmates.agents.prompts import template
from labmates.agents.tools import STATE, TOOLS
from labmates.bounded_yaml import Source, read_source
from labmates.errors import UsageError, did_you_mean, unknown_name
from labmates.registry import Registry

REPORT = "final_paper"
"""The artifact that the judges read."""

StepName = Literal["plan", "bid", "work", "talk", "write", "report"]
WRITES: Final = ("write", "report")
"""Steps that make the team's artifact."""
Verb = Literal["read", "tell", "ask"]
Approval = Literal["plan", "request", "write"]

_MORE_VALUES = {
    "role": ("part",),
    "plan": ("so_far", "phase", "phases"),
    "work": ("artifacts", "so_far", "phase", "phases"),
}
"""What prompts may show beside the values of the pipeline's prompts."""

_Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


class Step(_Part):
    """One step of a phase: ``work``, or with a detail ``{work: others}``, ``{talk: 2}``."""

    do: StepName = Field(description="What is done.")
    who: Literal["all", "others"] = Field("all", description="Who works: all members of the team, or all but the lead.")
    rounds: int | None = Field(None, ge=1, le=20, description="Rounds of talk; by default deliberation_rounds.")

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {"do": data}
        if isinstance(data, Mapping) and len(data) == 1 and "do" not in data:
            [(do, detail)] = data.items()
            return {"do": do, "rounds" if isinstance(detail, int) else "who": detail}
        return data


class FlowPhase(_Part):
    """A phase of the flow: which team passes through which steps."""

    team: str
    steps: tuple[Step, ...] = Field(min_length=1)

    @property
    def names(self) -> list[StepName]:
        """What is done, in order."""
        return [step.do for step in self.steps]

    def step(self, name: StepName) -> Step:
        """The step of this name; one without details if the phase has none."""
        return next((step for step in self.steps if step.do == name), Step(do=name))


class Seat(_Part):
    """One agent's place; its `id` names it in prompts and records."""

    id: str = Field("", exclude=True)
    title: str = Field(description="What the agent is called, for instance 'data engineer'.")
    part: str = Field(description="What its work is, in its system prompt.")
    evidence: int | None = Field(
        None, ge=1, description="With divided evidence: the instrument it holds, from 1; by default in turn."
    )
    model: str = Field(
        "", description="Its model, provider:name; by default that of the run. --model-for goes before it."
    )


class Channels(_Part):
    """Who may read, tell and ask whom: ``all``, ``none``, or lists by name.

    A name is a seat, a team, the stem of counted seats, or ``all``. Whoever has no list in a verb reaches nobody.
    """

    read: dict[str, tuple[str, ...]] = Field(
        {"all": ("all",)}, description="Whose artifacts, reports and findings each may read, as NAME: [NAMES]."
    )
    tell: dict[str, tuple[str, ...]] = Field(
        {"all": ("all",)}, description="To whom each may speak and send messages, as NAME: [NAMES]."
    )
    ask: dict[str, tuple[str, ...]] = Field(
        {"all": ("all",)}, description="Whom each may ask for more work or a redo, as NAME: [NAMES]."
    )

    @model_validator(mode="before")
    @classmethod
    def _all_or_none(cls, data: Any) -> Any:
        return dict.fromkeys(cls.model_fields, data) if isinstance(data, str) else data

    @field_validator("read", "tell", "ask", mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if isinstance(value, str):
            if value not in ("all", "none"):
                raise ValueError(f"'{value}' is not all, none or lists of names such as {{ana: [ben]}}")
            return {"all": ("all",)} if value == "all" else {}
        if isinstance(value, Mapping):
            return {who: (whom,) if isinstance(whom, str) else whom for who, whom in value.items()}
        return value

    def lists(self) -> Iterator[tuple[Verb, str, tuple[str, ...]]]:
        """Verb, name and names of each list."""
        verbs: tuple[Verb, ...] = get_args(Verb)
        return ((verb, who, whom) for verb in verbs for who, whom in getattr(self, verb).items())


class Tokens(_Part):
    """Tokens of the step in which an artifact is written once."""

    input: int = Field(12_000, ge=0, description="Tokens read.")
    output: int = Field(3_000, ge=0, description="Tokens written.")


class Team(_Part):
    """A team: its seats, the first of which leads, its tools and what it hands over."""

    name: str = Field("", exclude=True)
    seats: dict[_Name, Seat] = Field(
        min_length=1, max_length=16, description="The agents by name; the first leads. count: N makes several."
    )
    artifact: _Name = Field(description="The artifact that the lead writes.")
    sections: tuple[str, ...] = Field((), description="Sections of the artifact, each 'Title: content'.")
    tokens: Tokens = Field(Tokens(), description="What it takes to write the artifact; what a reserve sets aside.")
    also: dict[_Name, tuple[str, ...]] = Field(
        {}, description="Further artifacts that only this team writes while it works, each with its sections."
    )
    without: tuple[str, ...] = Field((), description=f"Tools that its agents don't have, of {', '.join(TOOLS)}.")
    own_tools: tuple[str, ...] = Field(
        (),
        description="Tools of other packages (entry points labmates.tools) and of MCP servers (SERVER or SERVER.TOOL) "
        "that its agents also have.",
    )
    memory: Literal["step", "phase", "conversation"] = Field(
        "step",
        description="What an agent remembers beside its orders: nothing (step), its work when it writes (phase), or "
        "all that it was told and did (conversation).",
    )
    turns: int = Field(1, ge=1, le=100, description="Most replies in a step of work, in multiples of max_turns.")

    @field_validator("without")
    @classmethod
    def _known_tools(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in TOOLS:
                raise ValueError(f"there is no tool '{name}'{did_you_mean(name, TOOLS)} (tools: {', '.join(TOOLS)})")
        return names

    @property
    def members(self) -> tuple[Seat, ...]:
        """The seats, the lead's first."""
        return tuple(self.seats.values())

    @property
    def lead(self) -> Seat:
        """The seat that plans and writes the artifact."""
        return self.members[0]

    @property
    def has_code(self) -> bool:
        """Whether its agents run code."""
        return "run_code" not in self.without

    def tools(self, *, states: bool = False) -> list[str]:
        """Names of the tools of a member at work, with that which states findings if it does."""
        held = [name for name in TOOLS if name not in self.without and (states or name != STATE)]
        return [*held, *self.own_tools]

    def owns(self, name: str) -> bool:
        """Whether an artifact of this name belongs to the team."""
        return name == self.artifact or name in self.also

    def handed(self) -> dict[str, tuple[str, ...]]:
        """The artifacts of a fixed form that the team hands over, with their sections."""
        own = {**self.also, self.artifact: self.sections}
        return {name: sections for name, sections in own.items() if sections}

    def of_size(self, size: int) -> Team:
        """The team with its first `size` seats."""
        return self.model_copy(update={"seats": dict(list(self.seats.items())[:size])})


class Organisation(_Part):
    """Who works in the lab and how."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Name in tables.")
    description: str = Field("", description="One sentence.")
    graph: str = Field(
        "",
        description="A function of your own that takes a Lab and works in it, or returns a LangGraph graph that does: "
        "module:function or file.py:function (also beside this file). Its seats stand in seats: [NAMES], or as "
        "{NAME: {evidence, model}}; without it they are those that the code names.",
    )
    prompts: dict[str, str] = Field(
        {}, description="A folder of prompt files (NAME.md) beside the file; those that lack are those of pipeline."
    )
    channels: Channels = Field(
        Channels(), description="Who may read, tell and ask whom: all, none, or lists by name for each of the three."
    )
    shares: str | dict[str, float] = Field(
        "pooled",
        description="Shares of the pool without its reserve: pooled (none), equal for all seats, or {NAME: SHARE} from "
        "0 to 1 for each seat. The writing of artifacts is paid from the pool.",
    )
    mcp: dict[_Name, McpServer] = Field(
        {},
        description="MCP servers by name, each {command: [PROGRAM, ARGUMENTS], env: [VARIABLES]} or {url: ADDRESS}.",
        exclude_if=lambda servers: not servers,  # the keys of organisations without any stay as they are
    )
    approve: tuple[Approval, ...] = Field(
        (),
        description="What a person has to approve: plan (before it is carried out), request (before another team gets "
        "it), write (before a version of an artifact is kept).",
        exclude_if=lambda points: not points,
    )
    size: int = Field(2, ge=1, le=16, description="How many seats of each team are taken without --team-size.")
    flow: tuple[FlowPhase, ...] = Field(
        description="The phases in order: each a team, or TEAM: [steps] with steps of its own."
    )
    teams: dict[_Name, Team] = Field(min_length=1, description="The teams by name.")

    @model_validator(mode="before")
    @classmethod
    def _named(cls, data: Any) -> Any:
        """Give teams and seats the names under which they stand, and each phase its steps."""
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
        return data

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
                known = sorted({*template(name).get_identifiers(), *_MORE_VALUES.get(name, ())})
            except FileNotFoundError:
                raise ValueError(f"{name}.md is not a prompt of the lab") from None
            if not Template(text).is_valid():
                raise ValueError(f"{name}.md has a lone $; write $$ for a dollar sign")
            if unknown := sorted(set(Template(text).get_identifiers()) - set(known)):
                raise ValueError(f"{name}.md: there is no value ${unknown[0]}; values: ${', $'.join(known)}")
        return prompts

    @model_validator(mode="after")
    def _fits_together(self) -> Organisation:
        faults = [
            InitErrorDetails(type=PydanticCustomError("organisation", "{why}", {"why": why}), loc=where, input=given)
            for where, given, why in self._faults()
        ]
        if faults:
            raise ValidationError.from_exception_data(self.name, faults)
        return self

    def _faults(self) -> Iterator[tuple[tuple[str | int, ...], object, str]]:
        """Yield where something does not fit to the rest, what stands there, and what to do about it."""
        if not self.flow:
            yield ("flow",), [], "it is empty; name at least one team"
            return
        for place, phase in enumerate(self.flow):
            if phase.team not in self.teams:
                hint = f"{did_you_mean(phase.team, self.teams)} Teams: {', '.join(self.teams)}"
                yield ("flow", place), phase.team, f"there is no team '{phase.team}'.{hint}"
            if len(set(phase.names)) < len(phase.names):
                yield ("flow", place), phase.names, "a step stands here twice; make it a phase of its own"
        yield from self._approval_faults()
        owners: dict[str, str] = {}
        seats: dict[str, str] = {}
        for name, team in self.teams.items():
            if name not in [phase.team for phase in self.flow]:
                yield ("teams", name), name, "this team never works; name it in the flow, or leave it out"
            for artifact in (*team.also, team.artifact):
                if owners.setdefault(artifact, name) != name:
                    yield ("teams", name), artifact, f"the artifact {artifact} belongs to the team {owners[artifact]}"
            for seat in team.seats:
                if seats.setdefault(seat, name) != name:
                    at = ("teams", name, "seats", seat)
                    yield at, seat, f"the team {seats[seat]} has a seat of this name; choose another name"
        yield from self._faults_of_servers()
        last = self.teams.get(self.author)
        if last is not None and last.artifact != REPORT:
            where = ("teams", last.name, "artifact")
            yield where, last.artifact, f"the team that works last has to write {REPORT}, which judges read"
        if self.flow[-1].names[-1] not in WRITES:
            yield ("flow", len(self.flow) - 1), self.flow[-1].names, "the last step has to be write or report"
        known = {"all", *self.teams, *seats, *(re.sub(r"_\d+$", "", seat) for seat in seats)}
        shared = self.shares if isinstance(self.shares, dict) else {}
        named: list[tuple[tuple[str, ...], str]] = [(("shares", name), name) for name in shared]
        named += [(("channels", verb, who), name) for verb, who, whom in self.channels.lists() for name in (who, *whom)]
        for spot, name in named:
            if name not in known:
                hint = f"{did_you_mean(name, known)} Teams: {', '.join(self.teams)}"
                yield spot, name, f"there is no seat or team '{name}'.{hint}"
        without = next((seat for seat in seats if shared and not any(self._means(name, seat) for name in shared)), None)
        if without:
            yield ("shares",), without, f"the seat {without} has no share; give it one, or one to 'all'"

    def _faults_of_servers(self) -> Iterator[tuple[tuple[str | int, ...], object, str]]:
        named = {(team.name, tool): tool.partition(".") for team in self.teams.values() for tool in team.own_tools}
        for (team, tool), (server, dot, _) in named.items():
            if dot and server not in self.mcp:
                hint = f"{did_you_mean(server, self.mcp)} Servers: {', '.join(self.mcp) or 'none; name them under mcp'}"
                yield ("teams", team, "own_tools"), tool, f"there is no MCP server '{server}'.{hint}"
        for server in self.mcp:
            if not self.graph and server not in [server for server, _, _ in named.values()]:
                yield ("mcp", server), server, "no team has its tools; name it under own_tools, or leave it out"

    def _approval_faults(self) -> Iterator[tuple[tuple[str | int, ...], object, str]]:
        if self.approve and self.graph:
            yield ("approve",), self.approve, "an organisation as code asks in its code; leave it out"
        elif "plan" in self.approve and not any("plan" in phase.names for phase in self.flow):
            yield ("approve",), "plan", "no phase of the flow has the step plan; leave it out"
        if len(set(self.approve)) < len(self.approve):
            yield ("approve",), self.approve, "one of its entries stands here twice; name it once"

    def __hash__(self) -> int:
        return hash((self.name, *self.teams))

    @property
    def has_colleagues(self) -> bool:
        """Whether there is more than one seat; a graph may have any number."""
        return bool(self.graph) or len(self.teams) > 1 or len(next(iter(self.teams.values())).seats) > 1

    @property
    def tools(self) -> list[str]:
        """Names of the tools that go with every call: those that anybody has."""
        held = [name for name in TOOLS if any(name not in team.without for team in self.teams.values())]
        return [*held, *dict.fromkeys(name for team in self.teams.values() for name in team.own_tools)]

    @property
    def handed(self) -> dict[str, str]:
        """The team of each artifact of a fixed form."""
        return {name: team.name for team in self.teams.values() for name in team.handed()}

    def owner(self, name: str) -> str | None:
        """The team to which an artifact belongs, or None if any team may write it."""
        return next((team.name for team in self.teams.values() if team.owns(name)), None)

    def before(self, team: str) -> list[str]:
        """The teams whose phases come before that of `team`."""
        order = list(dict.fromkeys(phase.team for phase in self.flow))
        return order[: order.index(team)]

    def place(self, team: str) -> int:
        """Where the first phase of a team stands in the flow."""
        return next(place for place, phase in enumerate(self.flow) if phase.team == team)

    @property
    def declares_seats(self) -> bool:
        """Whether its seats are known: those of a graph need not be."""
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

    def may(self, verb: Verb, who: str, whom: str) -> bool:
        """Whether the seat `who` may read, tell or ask `whom`: a seat, or any seat of a team."""
        if whom in self.teams:
            return any(self.may(verb, who, seat) for seat in self.teams[whom].seats)
        allowed = ((mine, names) for listed, mine, names in self.channels.lists() if listed == verb)
        return who == whom or any(
            self._means(mine, who) and any(self._means(name, whom) for name in names) for mine, names in allowed
        )

    def share_of_seats(self) -> dict[str, float]:
        """The share of the pool of each seat, from 0 to 1, by the first name that stands for it; empty if pooled."""
        if isinstance(self.shares, str):
            return dict.fromkeys(self.seats, 1 / len(self.seats)) if self.shares == "equal" else {}
        given = self.shares.items()
        return {seat: next(share for name, share in given if self._means(name, seat)) for seat in self.seats}

    def states(self, seat: Seat) -> bool:
        """Whether a seat states findings while it works: the lead of a team whose members don't report themselves."""
        team = self.teams[self.seats[seat.id][0]]
        reports = any("report" in phase.names for phase in self.flow if phase.team == team.name)
        return seat == team.lead and not reports

    def _means(self, name: str, seat: str) -> bool:
        """Whether a name in a channel stands for a seat."""
        if name in ("all", seat) or re.fullmatch(rf"{re.escape(name)}_\d+", seat):
            return True
        return seat in self.seats and self.seats[seat][0] == name

    def apart(self) -> Organisation:
        """The same seats, models and evidence as researchers who never talk: in as many phases, and each reports."""
        independent = find_organisation("independent")
        [group] = independent.teams.values()
        part = {"title": group.lead.title, "part": group.lead.part}
        seats = {name: seat.model_copy(update=part) for name, (_, seat) in self.seats.items()}
        phases = Counter(phase.team for phase in self.flow if "work" in phase.names)
        turns = max(team.turns for team in self.teams.values())
        work, report = (FlowPhase.model_validate(_phase({group.name: [do]}, ())) for do in ("work", "report"))
        steps = FlowPhase(team=group.name, steps=(*work.steps, *report.steps))
        return independent.model_copy(
            update={
                "name": self.name,
                "flow": (*[work] * (max(phases.values(), default=1) - 1), steps),
                "teams": {group.name: group.model_copy(update={"seats": seats, "turns": turns})},
            }
        )

    def of_size(self, size: int) -> Organisation:
        """The organisation with the first `size` seats of each team."""
        return self.model_copy(update={"teams": {name: team.of_size(size) for name, team in self.teams.items()}})

    def prompt(self, name: str) -> Template:
        """The prompt called `name`: the organisation's own, else that of the pipeline."""
        return Template(self.prompts[name]) if name in self.prompts else template(name)

    def shown_in(self, prompt: str) -> tuple[str, ...]:
        """The names of the values that a prompt shows."""
        return _identifiers(self.prompt(prompt).template)

    def render(self, prompt: str, **values: object) -> str:
        """Fill in a prompt; values that it doesn't show are left out."""
        return self.prompt(prompt).substitute({name: str(value) for name, value in values.items()})


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
    """The data of an organisation as code, with one team that holds the seats which it declares."""
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
        data["size"] = max(2, len(seats))
    team = {**OWN_TEAM, "seats": seats}
    rest = {key: value for key, value in data.items() if key != "seats"}
    return {"flow": ["lab"], "steps": ["write"], "teams": {"lab": team}, **rest}


def _with_names(team: Any, name: str) -> Any:
    """A team as data, with its name and those of its seats in it."""
    if not isinstance(team, Mapping):
        return team
    seats = team.get("seats")
    if isinstance(seats, Mapping):
        seats = {name: seat for stem, value in seats.items() for name, seat in _numbered(stem, value).items()}
    return {**team, "name": name, **({"seats": seats} if seats is not None else {})}


def _numbered(stem: str, seat: Any) -> dict[str, Any]:
    """A seat as data with its name in it; with a count, so many of them, numbered from 1."""
    if not isinstance(seat, Mapping):
        return {stem: seat}
    count = seat.get("count")
    if not isinstance(count, int):
        return {stem: {**seat, "id": stem}}
    inner = {key: value for key, value in seat.items() if key != "count"}
    return {name: {**inner, "id": name} for name in (f"{stem}_{number}" for number in range(1, count + 1))}


def source_of(name: str) -> dict[str, str]:
    """The texts of an organisation's file and prompts, by path from the folder of the file.

    Raises
    ------
    UsageError
        If the organisation is not in a file.
    """
    path = Path(name)
    if name in ORGANISATIONS:
        entry = ORGANISATIONS.get(name)
        if isinstance(entry, Organisation) and not ORGANISATIONS.is_own(name):
            raise UsageError(f"the organisation '{name}' is made by {ORGANISATIONS.package(name)}; it has no file")
        built_in = files("labmates.agents.organisations").joinpath(f"{name}.yaml")
        path = Path(str(built_in if isinstance(entry, Organisation) else entry))
    texts = {path.name: _text(path)}
    folder = read_source(texts[path.name], path.name, "organisation", "name: peers").data.get("prompts")
    prompts = find_organisation(name).prompts if isinstance(folder, str) else {}
    return {**texts, **{f"{folder}/{prompt}.md": f"{text}\n" for prompt, text in prompts.items()}}


def copy_organisation(like: str, name: str, folder: Path) -> Path:
    """Write a copy of an organisation under another name into a new folder and return its file.

    Raises
    ------
    UsageError
        If there is no such organisation, or the folder is there and not empty.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"the folder '{folder}' is not empty; choose another with --folder")
    (_, text), *prompts = source_of(like).items()
    renamed = re.sub(r"^name: .*$", f"name: {name}", text, count=1, flags=re.MULTILINE)
    Organisation.model_validate({**find_organisation(like).model_dump(), "name": name})
    for inner, content in ((f"{name}.yaml", renamed), *prompts):
        (folder / inner).parent.mkdir(parents=True, exist_ok=True)
        (folder / inner).write_text(content, encoding="utf-8")
    return folder / f"{name}.yaml"


def read_organisation(path: Traversable) -> Organisation:
    """Read an organisation from a YAML file; its folder of prompts stands beside it.

    Raises
    ------
    UsageError
        If the file or a prompt can't be read, or something is wrong in it; each fault with its line and the remedy.
    """
    source = read_source(_text(path), path.name, "organisation", "name: peers")
    data = dict(source.data)
    try:
        if isinstance(folder := data.get("prompts"), str):
            data["prompts"] = _prompts(path, folder, source)
        if isinstance(graph := data.get("graph"), str) and isinstance(path, Path):
            beside = str(path.parent / graph)
            data["graph"] = beside if Path(_module(beside)).is_file() else graph
        made = Organisation.model_validate(data)
    except ValidationError as error:
        raise source.error((fault["loc"], _told(fault)) for fault in error.errors()) from error
    if not isinstance(path, Path):
        return made
    return made.model_copy(update={"mcp": {name: server.beside(path.parent) for name, server in made.mcp.items()}})


def _module(graph: str) -> str:
    return graph.rpartition(":")[0]


def _prompts(path: Traversable, folder: str, source: Source) -> dict[str, str]:
    parent = path.parent if isinstance(path, Path) else files("labmates.agents.organisations")
    inside = parent.joinpath(*folder.split("/"))
    if not inside.is_dir():
        raise source.error([(("prompts",), f"there is no folder '{folder}' beside the file")])
    prompts = sorted((part for part in inside.iterdir() if part.name.endswith(".md")), key=lambda part: part.name)
    return {part.name.removesuffix(".md"): _text(part).rstrip("\n") for part in prompts}


def _text(path: Traversable) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"can't read '{path}': {getattr(error, 'strerror', None) or error}") from error


def _told(fault: Any) -> str:
    match fault["type"]:
        case "missing":
            return "this key is missing"
        case "extra_forbidden":
            return f"unknown key '{fault['loc'][-1]}'"
        case _:
            return str(fault["msg"]).removeprefix("Value error, ")


OWN_TEAM: dict[str, Any] = {
    "artifact": REPORT,
    "sections": ["Abstract", "Introduction", "Dataset description", "Methods", "Results", "Evaluation", "Conclusion"],
    "seats": {"researcher": {"title": "researcher", "part": "Answer the questions of the project."}},
}
"""The team of a graph that says nothing of teams."""

BUILT_IN = ("pipeline", "solo", "independent", "centralised", "decentralised", "hybrid", "blackboard")
GRAPH = re.compile(r"[^:]+(\.py|[A-Za-z_][\w.]*):[A-Za-z_]\w*|[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""How a function of one's own is named."""

ORGANISATIONS: Registry[Organisation | str | Path] = Registry(
    "organisation", "labmates.organisations", {name: f"labmates.agents.organisations:{name}" for name in BUILT_IN}
)
"""All organisations by name; an entry of another package is an `Organisation` or the path of a file."""


def find_organisation(name: str) -> Organisation:
    """The organisation called `name`, that in the YAML file `name`, or that of a graph, ``module:function``.

    Raises
    ------
    UsageError
        If there is none, or something is wrong in it.
    """
    if name in ORGANISATIONS:
        with ORGANISATIONS.guarded(name, "can't be used"):
            entry = ORGANISATIONS.get(name)
            return entry if isinstance(entry, Organisation) else read_organisation(Path(entry))
    if GRAPH.fullmatch(name):
        title = re.sub(r"[^\w.-]", "-", Path(name).name)
        return Organisation.model_validate({"name": title, "graph": name})
    if name.endswith((".yaml", ".yml")) or Path(name).is_file():
        return read_organisation(Path(name))
    raise unknown_name("organisation", name, ORGANISATIONS.names())


def _found(value: object) -> object:
    return find_organisation(str(value)) if isinstance(value, str | Path) else value


def _recorded(value: Organisation, dump: SerializerFunctionWrapHandler) -> Any:
    # The content of a file belongs to the record; that of our own stands in the version of labmates.
    return value.name if ORGANISATIONS.is_own(value.name) and value == ORGANISATIONS.get(value.name) else dump(value)


OrganisationRef = Annotated[Organisation, BeforeValidator(_found), WrapSerializer(_recorded)]
"""An organisation as a parameter: given by name, as a file, or as its content."""
