"""The condition of a science run: the one place where its parameters are declared."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from labmates.agents.roles import TEAMS
from labmates.budgets.money import Dollars
from labmates.budgets.prices import PriceList
from labmates.budgets.visibility import Visibility
from labmates.workflows.kinds import Condition


class ScienceCondition(Condition):
    """One cell of the science lab (cooperative-profiles paper, section 4.1.1)."""

    kind: ClassVar[str] = "science"

    task: str = Field(description="The science task, by name (see: labmates tasks).")
    model: str = Field(description="The model of all agents, provider:name (see: labmates models).")
    model_for: dict[str, str] = Field(
        default_factory=dict, description="A different model for one team, TEAM=MODEL; can be repeated."
    )
    difficulty: Literal["easy", "medium", "hard"] = Field("medium", description="Difficulty of the task's data.")
    budget: Dollars = Field("1.00", description="The pool that all teams share, in dollars.")  # type: ignore[assignment]
    visibility: Visibility = Field(
        "full",
        description="What agents see of the budget: the whole pool, their own team's spending, or nothing at all.",
    )
    team_size: int = Field(2, ge=2, le=3, description="Agents per team.")
    theory_of_mind: bool = Field(
        False, description="Ask agents to think about what the others know and will do before they act."
    )
    max_turns: int = Field(8, ge=1, le=100, description="Most replies of one agent in one phase of work.")
    max_output_tokens: int = Field(4096, ge=64, le=131072, description="Output limit of one reply, in tokens.")
    temperature: float | None = Field(
        None, ge=0, le=2, description="Sampling temperature; without one, the server's own default."
    )
    deliberation_rounds: int = Field(2, ge=0, le=10, description="Rounds of deliberation in each phase.")
    max_requests: int = Field(
        2, ge=0, le=10, description="Most requests for additional work or a redo, per pair of teams."
    )
    repair_turns: int = Field(
        3, ge=0, le=10, description="How often an agent is asked again after a reply that can't be used."
    )
    code_timeout: float = Field(30.0, gt=0, le=600, description="Time limit of one call of run_code, in seconds.")
    prices: PriceList = Field(
        default_factory=PriceList,
        description="Price list: a JSON file, or input=0.5,output=3,tool_call=0 (dollars per million tokens).",
    )

    @field_validator("model_for")
    @classmethod
    def _known_teams(cls, value: dict[str, str]) -> dict[str, str]:
        for team in value:
            if team not in TEAMS:
                raise ValueError(f"'{team}' is no team; the teams are {', '.join(TEAMS)}")
        return dict(sorted(value.items()))

    def model_of(self, team: str) -> str:
        """Return the model of the agents of `team`."""
        return self.model_for.get(team, self.model)

    @property
    def pool(self) -> int:
        """The credits of one run, in micro-dollars."""
        return self.budget

    def models(self) -> list[str]:
        """Return the models that take part, each once, in the order of the teams."""
        return list(dict.fromkeys(self.model_of(team) for team in TEAMS))

    def check(self) -> None:
        """Check that the task and the models are known."""
        from labmates.models.names import parse_model
        from labmates.tasks.registry import get_task

        get_task(self.task)
        for model in self.models():
            parse_model(model)
