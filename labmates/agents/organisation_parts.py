"""The parts of an organisation: steps and phases, seats, channels and teams."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from labmates.agents.mcp_servers import check_address, paths_beside
from labmates.agents.steps import STEPS, StepKind, find_step
from labmates.agents.tools import STATE, TOOLS
from labmates.errors import UsageError, did_you_mean

REPORT = "final_paper"
"""The artifact for the judges."""

MOST_SEATS: Final = 16
"""Most seats of one team."""
MOST_TOKENS: Final = 100_000_000
"""Most tokens of an artifact: above the context of every model."""
Verb = Literal["read", "tell", "ask"]
Approval = Literal["plan", "request", "write"]

GRAPH = re.compile(r"[^:]*[\w.]:[A-Za-z_]\w*")
"""References to users' functions."""


def _checked_name(name: str) -> str:
    if re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name):
        return name
    near = re.sub(r"\W+", "_", name.lower()).strip("_0123456789")[:64]
    hint = f" (try {near})" if near.isascii() and near else ""
    raise ValueError(f"a name has letters from a to z, digits and _, and begins with a letter, not '{name[:80]}'{hint}")


Name = Annotated[str, AfterValidator(_checked_name)]
"""The name of a team, a seat, an artifact or a server."""


class Part(BaseModel):
    """A part of an organisation; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


def _kind(name: str) -> StepKind:
    try:
        return find_step(name)
    except UsageError as error:
        raise ValueError(str(error)) from error


class Step(Part):
    """One step of a phase: ``work``, or with a detail ``{work: others}``, ``{talk: 2}``."""

    do: str = Field(description="Kind of step.")
    who: Literal["all", "others"] = Field("all", description="Who works: all members of the team, or all but the lead.")
    rounds: int | None = Field(None, ge=1, le=20, description="Rounds of talk; by default deliberation_rounds.")

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: Any) -> Any:
        if isinstance(data, str):
            return {"do": data}
        if isinstance(data, cls):
            return data
        if not isinstance(data, Mapping):
            raise ValueError(f"{data!r} is not a step; name one of {', '.join(STEPS)}")
        if "do" in data:
            return data
        if len(data) != 1:
            raise ValueError("a step has one detail, e.g. {talk: 2}; write several steps one after the other")
        [(do, detail)] = data.items()
        return {"do": do, _kind(do).detail: detail}

    @field_validator("do")
    @classmethod
    def _is_known(cls, name: str) -> str:
        _kind(name)
        return name


class FlowPhase(Part):
    """A phase of the flow: a team and its steps."""

    team: str
    steps: tuple[Step, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _is_phase(cls, data: Any) -> Any:
        if not isinstance(data, cls) and (not isinstance(data, Mapping) or {*data} != {"team", "steps"}):
            raise ValueError(f"{data!r:.80} is not a phase; write a team, or TEAM: [steps], each phase for itself")
        return data

    @property
    def names(self) -> list[str]:
        """Names of the steps, in order."""
        return [step.do for step in self.steps]

    def step(self, name: str) -> Step:
        """The step of this name; a default step if the phase lacks it."""
        return next((step for step in self.steps if step.do == name), Step(do=name))


class Seat(Part):
    """One agent's place; its `id` names it in prompts and records."""

    id: str = Field("", exclude=True)
    title: str = Field(description="Title of the agent, for instance 'data engineer'.")
    part: str = Field(
        description="Its part of the work, in its system prompt: a text, or a Markdown file beside the organisation's."
    )
    evidence: int | None = Field(
        None, ge=1, description="With divided evidence: the instrument it holds, from 1; by default in turn."
    )
    model: str = Field(
        "", description="Its model, provider:name; by default that of the run. --model-for overrides it."
    )
    python: str = Field(
        "",
        description="Your own agent: a function that takes the seat, module:function or file.py:function.",
    )
    command: tuple[str, ...] = Field(
        (),
        description="A program as the agent: [PROGRAM, ARGUMENTS], run in bubblewrap, or in Docker if that is "
        "missing; {order} is replaced by its order, which otherwise comes on standard input.",
    )
    image: str = Field(
        "",
        description="Docker image for its program; by default bubblewrap runs it, or if that is missing, the image of "
        "the sandbox.",
    )
    environment: dict[str, str] = Field(
        {},
        description="Further environment variables of its program; recorded, so don't put keys here.",
    )
    a2a: str = Field(
        "",
        description="The address of an agent that speaks A2A; it must reach this machine.",
    )
    human: bool = Field(False, description="A person, who answers on the page of the run.")
    seconds: float = Field(
        600,
        gt=0,
        le=86_400,
        description="Time limit of one reply of your own agent, or of a person.",
    )

    @model_validator(mode="before")
    @classmethod
    def _is_seat(cls, data: Any) -> Any:
        if isinstance(data, cls):
            return data
        if not isinstance(data, Mapping):
            raise ValueError("a seat has a title and a part, e.g. {title: analyst, part: Explore the data.}")
        if "count" in data:
            raise ValueError(f"count is a whole number from 1 to {MOST_SEATS}, not {data['count']!r:.80}")
        return data

    @model_validator(mode="after")
    def _has_one_agent(self) -> Seat:
        given = [name for name in ("python", "command", "a2a", "human") if getattr(self, name)]
        if len(given) > 1:
            raise ValueError(f"it has both {given[0]} and {given[1]}; a seat has one agent")
        if self.a2a:
            check_address(self.a2a)
        if self.human and self.model:
            raise ValueError("a person asks no model; leave out model, or human")
        if self.python and not GRAPH.fullmatch(self.python):
            raise ValueError(f"python: '{self.python}' is not module:function or file.py:function")
        if self.command and not self.command[0].strip():
            raise ValueError("command: its first word is empty; name a program")
        for name in ("environment", "image"):
            if getattr(self, name) and not self.command:
                raise ValueError(f"{name}: only a seat with a command has one")
        for name, value in self.environment.items():
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or "\0" in value:
                raise ValueError(f"environment: {name!r} can't be a variable (try NAME: value)")
        return self

    @property
    def outside(self) -> str:
        """The key that names its external agent, which has its own loop; empty if there is none."""
        return next((kind for kind in ("python", "command", "a2a") if getattr(self, kind)), "")

    def beside(self, folder: Path) -> Seat:
        """The same seat with absolute paths for its files in `folder`."""
        place, colon, name = self.python.rpartition(":")
        python = f"{folder / place}{colon}{name}" if place.endswith(".py") else self.python
        return self.model_copy(update={"python": python, "command": paths_beside(folder, self.command)})


class Channels(Part):
    """Permissions to read, tell and ask: ``all``, ``none``, or lists by name.

    A name is a seat, a team, the stem of counted seats, or ``all``. A seat without a list for a verb reaches no seat.
    """

    read: dict[str, tuple[str, ...]] = Field(
        {"all": ("all",)},
        description="Authors whose artifacts, reports and findings a seat may read, as NAME: [NAMES].",
    )
    tell: dict[str, tuple[str, ...]] = Field(
        {"all": ("all",)}, description="Receivers of a seat's talk and messages, as NAME: [NAMES]."
    )
    ask: dict[str, tuple[str, ...]] = Field(
        {"all": ("all",)}, description="Seats that a seat may ask for more work or a redo, as NAME: [NAMES]."
    )

    @model_validator(mode="before")
    @classmethod
    def _all_or_none(cls, data: Any) -> Any:
        if not isinstance(data, str):
            return data
        if data not in ("all", "none"):
            raise ValueError(f"'{data}' is not all, none or lists for read, tell and ask")
        return dict.fromkeys(cls.model_fields, data)

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


class Tokens(Part):
    """Tokens of a step that writes an artifact once."""

    input: int = Field(12_000, ge=0, le=MOST_TOKENS, description="Tokens read.")
    output: int = Field(3_000, ge=0, le=MOST_TOKENS, description="Tokens written.")


class Team(Part):
    """A team: its seats (the first leads), tools and artifact."""

    name: str = Field("", exclude=True)
    seats: dict[Name, Seat] = Field(
        min_length=1, max_length=MOST_SEATS, description="The agents by name; the first leads. count: N makes several."
    )
    artifact: Name = Field(description="The artifact that the lead writes.")
    sections: tuple[str, ...] = Field((), description="Sections of the artifact, each 'Title: content'.")
    tokens: Tokens = Field(Tokens(), description="Cost of writing the artifact, which a reserve sets aside.")
    also: dict[Name, tuple[str, ...]] = Field(
        {}, description="Further artifacts that only this team writes while it works, each with its sections."
    )
    without: tuple[str, ...] = Field((), description=f"Tools that its agents lack, of {', '.join(TOOLS)}.")
    own_tools: tuple[str, ...] = Field(
        (),
        description="Tools of other packages (entry points labmates.tools) and of MCP servers (SERVER or SERVER.TOOL) "
        "that its agents also have.",
    )
    memory: Literal["step", "phase", "conversation"] = Field(
        "step",
        description="An agent's memory beside its orders: nothing (step), its work when it writes (phase), or "
        "all earlier messages and actions (conversation).",
    )
    turns: int = Field(
        1, ge=1, le=100, description="Maximum number of replies in a step of work, in multiples of max_turns."
    )

    @field_validator("without")
    @classmethod
    def _known_tools(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if name not in TOOLS:
                raise ValueError(f"there is no tool '{name}'.{did_you_mean(name, TOOLS)} Tools: {', '.join(TOOLS)}")
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
        """Names of the tools of a working member, including that for findings if `states`."""
        held = [name for name in TOOLS if name not in self.without and (states or name != STATE)]
        return [*held, *self.own_tools]

    def owns(self, name: str) -> bool:
        """Whether an artifact of this name belongs to the team."""
        return name == self.artifact or name in self.also

    def handed(self) -> dict[str, tuple[str, ...]]:
        """The team's artifacts with fixed sections, by name."""
        artifacts = {**self.also, self.artifact: self.sections}
        return {name: sections for name, sections in artifacts.items() if sections}

    def of_size(self, size: int) -> Team:
        """The team with its first `size` seats."""
        return self.model_copy(update={"seats": dict(list(self.seats.items())[:size])})
