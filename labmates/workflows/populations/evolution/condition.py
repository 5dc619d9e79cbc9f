"""The condition of an evolution: the one place where its parameters are declared."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from labmates.workflows.populations.condition import PopulationCondition, fault

_USUAL = {"paper": (200, 0.1), "imitation": (1000, 0.0025)}
"""Generations and mutation of each protocol."""


class EvolutionCondition(PopulationCondition):
    """Cultural evolution of who writes the strategies, with which attitude (collective-behaviour paper, section 6)."""

    kind: ClassVar[str] = "evolution"

    protocol: Literal["paper", "imitation"] = Field(
        "paper",
        description="How genes spread: the best keep theirs and all others copy in proportion to payoff (paper), or "
        "everybody compares with one other and copies by the Fermi rule (imitation).",
    )
    model_names: tuple[str, ...] = Field((), description="Take the strategies of this model; can be repeated.")
    attitudes: tuple[str, ...] = Field((), description="Take strategies with this attitude; can be repeated.")
    population: int = Field(512, ge=4, le=100_000, description="Number of agents.")
    games: int = Field(4, ge=1, le=1000, description="Games that each agent plays in a generation.")
    elite: int = Field(64, ge=0, le=100_000, description="Agents that keep gene and strategy (paper).")
    mutation: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Probability of a mutation: of a copied gene (paper, by default 0.1), or of each locus (imitation, "
        "by default 0.0025).",
    )
    strength: float = Field(
        1.0, ge=0, le=1000, description="Selection strength of the Fermi rule, on payoffs scaled to 0 to 1 (imitation)."
    )
    threshold: float = Field(0.75, gt=0, le=1, description="Share of one gene at which the evolution ends (paper).")
    generations: int | None = Field(
        None, ge=1, le=1_000_000, description="Most generations; by default 200 (paper) or 1000 (imitation)."
    )
    window: int = Field(
        100, ge=1, le=1_000_000, description="Last generations over which shares are averaged (imitation)."
    )

    @field_validator("mutation", "generations")
    @classmethod
    def _usual(cls, value: float | None, info: ValidationInfo) -> float | None:
        if value is not None or "protocol" not in info.data:
            return value
        return _USUAL[info.data["protocol"]][info.field_name == "mutation"]

    @field_validator("attitudes", "model_names")
    @classmethod
    def _in_order(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return tuple(sorted({name.lower() if info.field_name == "attitudes" else name for name in value}))

    @model_validator(mode="after")
    def _whole_groups(self) -> EvolutionCondition:
        if self.population % self.group_size:
            raise fault(self, "population", f"must be a multiple of the group size ({self.group_size})")
        if self.protocol == "paper" and self.elite > self.population:
            raise fault(self, "elite", f"must be at most the population ({self.population})")
        return self
