"""Parameters of experiments with players: of their calls, and of requests for decisions."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from labmates.budgets.prices import PriceList, usual_prices
from labmates.errors import UsageError
from labmates.models.structured import check_structured
from labmates.workflows.protocol.condition import Condition, ThoughtsSent

if TYPE_CHECKING:
    from labmates.models.check import Ability

Reasoning = Literal["none", "cot", "tom"]
"""How players are asked to reason before they decide."""


class PlayCondition(Condition, ABC):
    """Parameters of players' calls; base of the conditions of experiments with players."""

    max_output_tokens: int = Field(4096, ge=64, le=131072, description="Output limit of one reply, in tokens.")
    temperature: float | None = Field(None, ge=0, le=2, description="Sampling temperature. Default: the server's.")
    thoughts: ThoughtsSent = "tools"
    repair_turns: int = Field(
        3, ge=0, le=10, description="Maximum number of repair turns after an invalid reply of a player."
    )
    prices: PriceList = Field(
        default_factory=usual_prices,
        description="Price list: a JSON file, or input=0.5,output=3 (dollars per million tokens).",
    )


class DecisionCondition(PlayCondition, ABC):
    """Parameters of requests for decisions; base of the conditions of experiments in which players decide."""

    structured: bool = Field(
        False,
        description="Let the server enforce the JSON schema of each decision (response_format). Players then can't "
        "reason first: needs --reasoning none.",
    )

    def needs(self) -> tuple[Ability, ...]:
        """Capabilities that the servers of the models need."""
        return ("json_replies",) if self.structured else ()

    def check_structured(self, reasoning: Iterable[str] = ()) -> None:
        """Check that decisions can be held to a schema, if they are to be.

        Raises `UsageError` if a model takes no schema, or players are asked to reason in the reply that holds the
        decision.

        Parameters
        ----------
        reasoning
            How players are asked to reason before they decide.
        """
        if not self.structured:
            return
        if asked := sorted(set(reasoning) - {"none"}):
            raise UsageError(
                f"structured: a JSON-only reply has no room for reasoning ({', '.join(asked)}); "
                "use reasoning none, or leave structured out"
            )
        for model in self.models():
            check_structured(model)
