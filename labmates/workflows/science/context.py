"""What the nodes of the lab's graph work with: the services of the run and what was made from its condition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from labmates.agents.findings import FindingsForm
from labmates.agents.roles import EVERY_TEAM, Role, Team
from labmates.agents.tools import shared_tools
from labmates.budgets.ledger import Ledger
from labmates.budgets.purse import Purse
from labmates.records.recorder import Recorder
from labmates.tasks.base import Dataset, Task
from labmates.workflows.calls import Caller, Speaker
from labmates.workflows.sandbox_pool import RunSandboxes
from labmates.workflows.science.condition import ScienceCondition
from labmates.workflows.science.reserve import likely_cost, set_aside
from labmates.workflows.science.state import LabState
from labmates.workflows.services import Services


@dataclass(frozen=True)
class LabContext:
    """The context of one run of the lab. `findings_text` says what the paper has to state, `form` how it is stated."""

    condition: ScienceCondition
    task: Task[Any, Any]
    findings_text: str
    form: FindingsForm
    dataset: Dataset[Any]
    ledger: Ledger
    caller: Caller
    recorder: Recorder
    sandboxes: RunSandboxes
    services: Services

    @cached_property
    def tools(self) -> tuple[dict[str, Any], ...]:
        """The descriptions of the tools, the same with each call of the run."""
        return tuple(shared_tools(self.form, alone=self.condition.solo))

    def speaker(self, team: Team, role: Role) -> Speaker:
        """Return who speaks when this role does."""
        return Speaker(team.name, role.id, self.condition.model_of(team.name))

    def purse(self, lab: LabState, team: str, sharers: int = 1) -> Purse:
        """Return the purse of a step of `team` that starts in this state of the lab."""
        return Purse(self.ledger, team, lab["spent"], sharers, aside=set_aside(self.condition, lab["agenda"]))

    def purse_to_write(self, lab: LabState, team: Team) -> Purse:
        """Return the purse of the step in which `team` writes its artifact, which may draw on what was set aside."""
        aside = set_aside(self.condition, lab["agenda"][1:])
        likely = likely_cost(self.condition, team) if self.sets_aside else 0
        return Purse(self.ledger, team.name, lab["spent"], aside=aside, likely=likely)

    @property
    def sets_aside(self) -> bool:
        """Whether anything of the pool is set aside; if not, the run ends with the first call that can't be paid."""
        return self.condition.reserve != 0

    def text(self, number: int) -> str:
        """Return the text that is kept under this number."""
        return self.recorder.bodies.text(number)

    def newest(self, lab: LabState) -> dict[str, str]:
        """Return the newest content of every artifact by name."""
        return {name: self.text(versions[-1]) for name, versions in lab["artifacts"].items() if versions}

    def partial(self, lab: LabState) -> list[str]:
        """Return the names of the artifacts whose newest version breaks off."""
        return [name for name, partial in lab["partial"].items() if partial]

    def stated(self, lab: LabState) -> dict[str, dict[str, Any]]:
        """Return the findings that stand by team, in the order of the teams."""
        newest = {team: versions[-1] for team, versions in lab.get("findings", {}).items() if versions}
        return {team: self.recorder.bodies[newest[team]] for team in EVERY_TEAM if team in newest}

    def members(self, team: Team) -> tuple[Role, ...]:
        """Return the members of a team, the lead first."""
        return team.members(self.condition.team_size)


def warm_up(sandboxes: RunSandboxes, condition: ScienceCondition, team: Team) -> None:
    """Start the sandboxes of a team's members while models still think: a start takes as long as several calls."""
    if team.has_code:
        sandboxes.warm_up([role.id for role in team.members(condition.team_size)], condition.model_of(team.name))


def team_of(lab: LabState) -> Team:
    """Return the team whose phase goes on."""
    return EVERY_TEAM[lab["agenda"][0]["team"]]
