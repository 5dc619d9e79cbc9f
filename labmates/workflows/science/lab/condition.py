"""The condition of a science run, with all its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from pydantic import (
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from labmates.agents.organisation import Organisation
from labmates.agents.organisation_files import OrganisationRef, find_organisation, seat_fault
from labmates.agents.organisation_parts import Seat, Team
from labmates.agents.own_code import check_code, without_folders
from labmates.agents.sections import Excerpt
from labmates.budgets.money import Dollars, format_dollars
from labmates.budgets.prices import PriceList, usual_prices
from labmates.budgets.visibility import Visibility
from labmates.errors import UsageError, did_you_mean
from labmates.models.catalog import ModelRef
from labmates.models.names import HUMAN
from labmates.workflows.protocol.condition import Condition, ThoughtsSent
from labmates.workflows.science.lab.evidence import ALONE as ALONE_ARMS
from labmates.workflows.science.lab.evidence import SHARED, Arm, Evidence, kept_apart
from labmates.workflows.science.lab.instruments import READINGS, dead_end, holdings

if TYPE_CHECKING:
    from labmates.models.check import Ability
    from labmates.records.run import RunRecord
    from labmates.registry import Registry

TEAM_FIELDS = ("model_for", "team_size", "theory_of_mind", "deliberation_rounds", "max_requests", "output_excerpt")
"""Parameters of teamwork, which have no effect on a single agent."""

ALONE = "solo"
"""The single-agent organisation."""

_OF_ONE: Final[Mapping[str, Any]] = {"team_size": 1, "deliberation_rounds": 0, "max_requests": 0}
"""The parameters of teamwork of one agent alone, where they differ from a team's default."""


class ScienceCondition(Condition):
    """Run the science lab: teams analyse a data set and write a paper (cooperative-profiles paper, section 4.1.1)."""

    kind: ClassVar[str] = "science"
    material: ClassVar[frozenset[str]] = frozenset({"task", "difficulty", "organisation", "solo", "evidence", "arm"})

    task: str = Field(description="The science task, by name (see: labmates tasks).")
    model: ModelRef = Field(description="The model of all agents, provider:name (see: labmates models).")
    model_for: dict[str, ModelRef] = Field(
        default_factory=dict, description="Model of one team or seat, NAME=MODEL; repeatable."
    )
    organisation: OrganisationRef = Field(
        "pipeline",  # type: ignore[assignment]
        description="Organisation of the lab: a name, or a YAML file (see: labmates organisations).",
    )
    solo: bool = Field(
        False,
        exclude=True,
        description="One agent instead of teams, with the same task, data, budget, tools and artifacts, as the "
        "baseline for teams (see: labmates compare). Short for --organisation solo.",
    )
    evidence: Evidence = Field(
        SHARED,
        description="Distribution of the data: shared (everyone has all of it), or split:S (a share S of the "
        "findings' credit needs data from two or more instruments).",
    )
    arm: Arm = Field(
        "team",
        description="With split evidence: team (one instrument per seat), mute (the same seats without contact, "
        "their findings merged by a fixed rule), oracle (one agent with all instruments) or restricted (one agent "
        "with the readings). A single agent has no organisation.",
    )
    difficulty: Literal["easy", "medium", "hard"] = Field("medium", description="Difficulty of the task's data.")
    budget: Dollars = Field("1.00", description="The pool that all teams share, in dollars.")  # type: ignore[assignment]
    reserve: Dollars | None = Field(
        None,
        description="Part of the pool reserved for writing the artifacts, in dollars; by default enough for all "
        "remaining ones. With 0 the run ends at the first call that the pool can't pay (the paper's rule).",
    )
    visibility: Visibility = Field(
        "full",
        description="The agents' view of the budget: the whole pool, their own team's spending, or nothing.",
    )
    team_size: int = Field(
        2,
        ge=1,
        le=16,
        description="Maximum number of agents per team; the organisation limits it. 1 for an agent alone.",
    )
    theory_of_mind: bool = Field(
        False, description="Ask agents to think about what the others know and will do before they act."
    )
    max_turns: int = Field(
        8,
        ge=1,
        le=100,
        description="Maximum number of replies per agent and work phase, multiplied by the turns of its team in the "
        "organisation.",
    )
    max_output_tokens: int = Field(4096, ge=64, le=131072, description="Output limit of one reply, in tokens.")
    context_tokens: int | None = Field(
        None,
        ge=1024,
        description="Context window of models without one of their own, in tokens; by default from the shipped "
        "table, at most 131072. A transcript that leaves no room for a whole reply is compacted before the call.",
    )
    temperature: float | None = Field(None, ge=0, le=2, description="Sampling temperature. Default: the server's.")
    thoughts: ThoughtsSent = "tools"
    deliberation_rounds: int = Field(2, ge=0, le=10, description="Rounds of deliberation in each phase.")
    max_requests: int = Field(
        2, ge=0, le=10, description="Maximum number of requests for additional work or a redo, per pair of teams."
    )
    output_excerpt: Excerpt = Field(
        "ends",
        description="Excerpt that the writing lead sees of a member's code output beyond 3,000 characters: ends "
        "(start and end of each long output) or first (the first 3,000 characters in all, the paper's rule).",
    )
    repair_turns: int = Field(
        3, ge=0, le=10, description="Maximum number of repair turns after an invalid reply of an agent."
    )
    code_timeout: float = Field(
        30.0,
        gt=0,
        le=600,
        description="Limit of one call of run_code, in seconds of processor time of all its processes; it may take ten "
        "times as long by the clock.",
    )
    prices: PriceList = Field(
        default_factory=usual_prices,
        description="Price list: a JSON file, or input=0.5,output=3,tool_call=0 (dollars per million tokens).",
    )

    @classmethod
    def key_of(cls, values: Mapping[str, Any]) -> str:
        """The key of the condition with these JSON values; code counts by its content, not by its place."""
        organisation = values.get("organisation")
        if isinstance(organisation, Mapping) and (code := organisation.get("code")):
            told = {name: part for name, part in organisation.items() if name != "code"}
            values = {**values, "organisation": without_folders(told, code)}
        return super().key_of(values)

    @model_validator(mode="before")
    @classmethod
    def _one_organisation(cls, data: Any) -> Any:
        """Make the short form, the organisation and the parameters of teamwork consistent."""
        if not isinstance(data, dict):
            return data
        if data.get("arm") in ALONE_ARMS:
            data = {name: value for name, value in data.items() if name not in TEAM_FIELDS} | {"organisation": ALONE}
        given = data.get("organisation")
        if given is None:
            if str(data.get("solo")).lower() not in ("true", "1"):
                return data
            given = ALONE
        with suppress(UsageError, ValidationError):  # the field reports it
            organisation = find_organisation(given) if isinstance(given, str) else given
            if isinstance(given, Mapping):
                organisation = Organisation.model_validate(given)
            if isinstance(organisation, Organisation):
                usual = {"team_size": organisation.size} if organisation.has_colleagues else _OF_ONE
                is_solo = data.get("solo") or organisation.name == ALONE
                return {**usual, **data, "organisation": organisation, "solo": is_solo}
        return data

    @field_validator("budget")
    @classmethod
    def _pays_something(cls, value: int) -> int:
        if value <= 0:
            raise ValueError("a pool of $0 can't pay for a call (try 0.50)")
        return value

    @field_validator("model_for")
    @classmethod
    def _sorted(cls, value: dict[str, str]) -> dict[str, str]:
        return dict(sorted(value.items()))

    @model_validator(mode="after")
    def _sets_aside_what_there_is(self) -> ScienceCondition:
        if self.reserve is not None and self.reserve > self.budget:
            why = f"more than the pool of ${format_dollars(self.budget)}"
            raise _invalid(("reserve", format_dollars(self.reserve), why))
        return self

    @model_validator(mode="after")
    def _fits_the_organisation(self) -> ScienceCondition:
        faults: list[tuple[str, object, str]] = []
        if self.solo != (self.organisation.name == ALONE):
            faults.append(("solo", self.solo, f"contradicts the organisation {self.organisation.name}; leave it out"))
        given_shares = sum(self.crew.share_of_seats().values())
        if given_shares > 1.000001:
            why = f"the shares of its {len(self.crew.seats)} seats add up to {given_shares:g} of the pool; lower them"
            faults.append(("organisation", self.organisation.name, why))
        if self.organisation.has_colleagues and self.team_size < 2:
            faults.append(("team_size", self.team_size, f"a team has 2 agents or more; try --organisation {ALONE}"))
        if self.organisation.graph:
            pass  # its code decides who takes part
        elif self.organisation.has_colleagues:
            teams, seats = self.organisation.teams, self.organisation.seats
            for name in self.model_for:
                if name not in {*teams, *seats}:
                    why = f"unknown team or seat '{name}'.{did_you_mean(name, [*teams, *seats])}"
                    faults.append(("model_for", name, f"{why} Teams: {', '.join(teams)}."))
            if self.team_size > self.organisation.most_seats:
                most = f"the largest team of {self.organisation.name} has {self.organisation.most_seats} seats"
                faults.append(("team_size", self.team_size, most))
            for name, (team, seat) in seats.items():
                if (seat.outside or seat.human) and name not in self.crew.seats:
                    own = [*teams[team].seats].index(name) + 1
                    why = f"the seat {name}, an agent of your own, would be left out; give at least {own}"
                    faults.append(("team_size", self.team_size, why))
        else:
            why = f"one agent alone ({self.organisation.name}) has no teammates; leave it out"
            for name in TEAM_FIELDS:
                value, field = getattr(self, name), type(self).model_fields[name]
                if value != _OF_ONE.get(name, field.get_default(call_default_factory=True)):
                    faults.append((name, value, why))
        if faults:
            raise _invalid(*faults)
        return self

    @cached_property
    def crew(self) -> Organisation:
        """The organisation with the seats in use at this team size."""
        crew = self.organisation.of_size(self.team_size)
        return kept_apart(crew) if self.arm == "mute" else crew

    @cached_property
    def _seats(self) -> Mapping[str, tuple[str, Seat]]:
        return self.organisation.seats

    @property
    def teams(self) -> tuple[Team, ...]:
        """The teams in the order of their first phases."""
        return tuple(self.crew.teams[name] for name in dict.fromkeys(phase.team for phase in self.crew.flow))

    def turns_of(self, team: Team) -> int:
        """Most replies of one agent of `team` in one phase of work."""
        return self.max_turns * team.turns

    def model_of(self, seat: str) -> str:
        """The model of a seat: set for the seat or its team, else the organisation's, else the run's."""
        team, declared = self._seats.get(seat, ("", None))
        given = self.model_for.get(seat) or self.model_for.get(team)
        if declared is not None and not given:
            given = f"{HUMAN}:{seat}" if declared.human else declared.model
        return given or self.model

    @property
    def pool(self) -> int:
        """The credits of one run, in micro-dollars."""
        return self.budget

    @property
    def approvals(self) -> tuple[str, ...]:
        """Steps of its runs that need a person's approval."""
        return self.crew.approve

    @property
    def interrupts(self) -> bool:
        """Whether code of the user's may interrupt the graph of a run to ask a person."""
        return bool(self.organisation.graph)

    def models(self) -> list[str]:
        """The participating models, each once, in the order of the teams."""
        if self.organisation.graph:
            return list(dict.fromkeys([self.model, *map(self.model_of, self.model_for)]))
        return list(dict.fromkeys(self.model_of(seat) for team in self.teams for seat in team.seats))

    @property
    def labels(self) -> tuple[str, ...]:
        """The tags of its traces."""
        return self.task, self.model, self.visibility

    def needs(self) -> tuple[Ability, ...]:
        """Capabilities required of the models' servers."""
        return ("tools",)

    def doubts(self) -> list[str]:
        """Why replicates mean less than usual: they all have the same data."""
        from labmates.tasks.registry import get_task

        if get_task(self.task).is_fixed:
            return [f"{self.task}: every seed has the same data, so runs differ by their models' chance alone"]
        return []

    def without_effect(self, given: Mapping[str, Any]) -> dict[str, str]:
        """See `labmates.workflows.protocol.experiment.Condition`."""
        from labmates.tasks.registry import get_task

        if "difficulty" in given and get_task(self.task).is_fixed:
            return {"difficulty": f"has no effect on the task {self.task}, which has one data set"}
        if self.arm not in ALONE_ARMS:
            return super().without_effect(given)
        lost = [name for name in given if name in TEAM_FIELDS]
        organisation = given.get("organisation", ALONE)
        if getattr(organisation, "name", organisation) != ALONE:
            lost.append("organisation")
        return dict.fromkeys(lost, f"has no effect in the arm {self.arm}, which is one agent alone")

    @cached_property
    def instruments(self) -> tuple[str, ...]:
        """The names of the task's instruments."""
        from labmates.tasks.evidence import instruments_of
        from labmates.tasks.registry import get_task

        return tuple(instruments_of(get_task(self.task)).about)

    @cached_property
    def holdings(self) -> Mapping[str, int]:
        """The instrument of each seat that runs code, from 0, if evidence is divided; the same in the arm mute."""
        if self.evidence == SHARED:
            return {}
        held = holdings(self.organisation.of_size(self.team_size), len(self.instruments))
        return {**dict.fromkeys(self.crew.seats, READINGS), **held} if self.arm == "mute" else held

    def check_instruments(self) -> None:
        """Check the seats' instruments, and that the organisation can bring them together.

        Raises `UsageError` if a seat holds an instrument that the task lacks, or no seat can get readings and all keys.
        """
        number = len(self.instruments)
        for name, (_, seat) in self.organisation.seats.items():
            if seat.evidence is not None and seat.evidence > number:
                why = f"the task {self.task} has {number} instruments; give a number from 1 to {number}"
                raise seat_fault(self.organisation, name, "evidence", f"{why}, not {seat.evidence}")
        if self.arm == "team" and self.evidence not in (SHARED, "split:0") and (why := self.dead_end()):
            sizes = range(self.team_size + 1, self.organisation.most_seats + 1)
            size = next((size for size in sizes if not self.dead_end(size)), None)
            do = f"use --team-size {size}" if size else "give the organisation another phase of work, or a channel"
            name = f"the organisation {self.organisation.name} of team size {self.team_size}"
            raise UsageError(f"--evidence {self.evidence}: {name} can't bring the instruments together: {why}; {do}")

    def dead_end(self, size: int | None = None) -> str:
        """The reason why the instruments can't be brought together at a team size; empty if they can."""
        crew = self.organisation.of_size(size or self.team_size)
        held = holdings(crew, len(self.instruments))
        return dead_end(crew, held, self.instruments, requests=self.max_requests)

    def parts(self) -> list[tuple[Registry[Any], str]]:
        """The task and the steps of the organisation."""
        from labmates.agents.steps import STEPS
        from labmates.tasks.registry import TASKS

        steps = dict.fromkeys(name for phase in self.organisation.flow for name in phase.names)
        return [(TASKS, self.task), *((STEPS, name) for name in steps)]

    def check(self) -> None:
        """Check that the task and the models are known."""
        from labmates.agents.tools import OWN_TOOLS, own_tool
        from labmates.models.names import parse_model
        from labmates.tasks.registry import get_task
        from labmates.workflows.science.lab.outside import OWN_GRAPHS, check_seats, load_function

        get_task(self.task)
        if self.evidence != SHARED:
            self.check_instruments()
        elif self.arm != "team":
            raise UsageError(f"--arm {self.arm}: an arm needs divided evidence; add --evidence split:S (try split:1)")
        if self.arm == "mute" and (self.organisation.graph or not self.organisation.has_colleagues):
            what = "an organisation as code" if self.organisation.graph else "one agent alone"
            raise UsageError(f"--arm mute: {what} has no seats to keep apart; use an organisation file with a team")
        for team in self.organisation.teams.values():
            for name in team.own_tools:
                if name in OWN_TOOLS:
                    own_tool(name)
                elif name.partition(".")[0] not in self.organisation.mcp:
                    known = [*OWN_TOOLS.names(), *self.organisation.mcp]
                    raise UsageError(
                        f"organisation {self.organisation.name}: teams.{team.name}.own_tools: there is no tool or MCP "
                        f"server '{name}'.{did_you_mean(name, known)} Known: {', '.join(known) or 'none'}"
                    )
        for name, server in self.organisation.mcp.items():
            server.check(name)
        check_code(self.organisation)
        for name, (_, seat) in self.crew.seats.items():
            if seat.model and self.model_of(name) == seat.model:
                try:
                    parse_model(seat.model)
                except UsageError as error:
                    raise seat_fault(self.organisation, name, "model", str(error)) from error
        for model in self.models():
            parse_model(model)
        check_seats(self.crew)
        if self.organisation.graph:
            if self.evidence != SHARED and self.arm == "team" and not self.organisation.declares_seats:
                raise UsageError(
                    f"--evidence {self.evidence}: {self.organisation.graph} does not declare its seats, so none can "
                    f"hold a part; write an organisation file with graph: {self.organisation.graph} and "
                    "seats: [NAMES], or use --arm oracle or restricted"
                )
            OWN_GRAPHS.get("code")
            load_function(self.organisation.graph)


def science_condition(run: RunRecord) -> ScienceCondition | None:
    """The condition of a stored run; None for one of another version, or of another experiment."""
    from labmates.workflows.protocol.experiment import condition_of

    with suppress(UsageError):
        condition = condition_of(run)
        return condition if isinstance(condition, ScienceCondition) else None
    return None


def _invalid(*faults: tuple[str, object, str]) -> ValidationError:
    """The error of fields, each with its value and what is wrong with it."""
    details = [
        InitErrorDetails(type=PydanticCustomError("invalid", "{why}", {"why": why}), loc=(name,), input=given)
        for name, given, why in faults
    ]
    return ValidationError.from_exception_data("ScienceCondition", details)
