"""The condition of strategy writing: the one place where its parameters are declared."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from labmates.models.catalog import ModelRef
from labmates.workflows.playing import PlayCondition

PROMPTS_VERSION = "2"
"""Of the prompts in `labmates.agents.prompts`; to be raised with each change of theirs."""


class StrategiesCondition(PlayCondition):
    """Strategies that a model writes for one game with one attitude (collective-behaviour paper, section 4.1)."""

    kind: ClassVar[str] = "strategies"

    model: ModelRef = Field(description="The model that writes, provider:name (see: labmates models).")
    game: Literal["public-goods", "collective-risk", "common-pool"] = Field(description="The game.")
    attitude: str = Field(description="How the strategies are to be, for instance exploitative or collective.")
    number: int = Field(8, ge=1, le=100_000, description="How many strategies are described.")
    prompt: Literal["standard", "brief"] = Field(
        "standard", description="Which of two prompts asks for the description, to see how much depends on it."
    )
    implementations: int = Field(
        5, ge=1, le=100, description="How often one description is implemented, until it passes the checks."
    )

    @field_validator("attitude")
    @classmethod
    def _a_word(cls, value: str) -> str:
        if not value.isascii() or not value.isalpha():
            raise ValueError("must be one word of letters, for instance exploitative")
        return value.lower()

    def models(self) -> list[str]:
        """Return the model that writes."""
        return [self.model]

    def check(self) -> None:
        """Check that the model is known."""
        from labmates.models.names import parse_model

        parse_model(self.model)
