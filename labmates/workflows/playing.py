"""What kinds of experiments share in which agents play: parameters of their calls, and how players are asked.

Agents have no budget and read of none: calls draw on the bound of the run, which ends with the first that it can't pay.
"""

from __future__ import annotations

import asyncio
from abc import ABC
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import Field

from labmates.agents.decisions import FormT
from labmates.budgets.prices import PriceList
from labmates.budgets.purse import Purse
from labmates.models.reply import Reply
from labmates.workflows.asking import ask, decide
from labmates.workflows.brake import Steps
from labmates.workflows.calls import Caller, Speaker
from labmates.workflows.kinds import Condition
from labmates.workflows.services import Services

T = TypeVar("T")


class PlayCondition(Condition, ABC):
    """What a condition says of the calls of those who play; base of the conditions of such kinds."""

    max_output_tokens: int = Field(4096, ge=64, le=131072, description="Output limit of one reply, in tokens.")
    temperature: float | None = Field(
        None, ge=0, le=2, description="Sampling temperature; without one, the server's own default."
    )
    repair_turns: int = Field(
        3, ge=0, le=10, description="How often a player is asked again after a reply that can't be used."
    )
    prices: PriceList = Field(
        default_factory=PriceList,
        description="Price list: a JSON file, or input=0.5,output=3 (dollars per million tokens).",
    )


class Table:
    """Where the players of one run sit: asks them for decisions.

    Parameters
    ----------
    condition
        Says how they are asked.
    services
        The services of the run.
    """

    def __init__(self, condition: PlayCondition, services: Services) -> None:
        self.recorder = services.recorder
        self._ledger = services.ledger
        self._purses: dict[str, Purse] = {}
        self.repair_turns = condition.repair_turns
        self.caller = Caller(
            services.hub,
            services.recorder,
            seed=services.seed,
            prices=condition.prices,
            max_output_tokens=condition.max_output_tokens,
            temperature=condition.temperature,
            steps=Steps(services.brake),
            # Players know nothing of the bound, and play the same until it is reached.
            lowers_limit=False,
        )

    async def decide(
        self, step: str, speaker: Speaker, messages: list[BaseMessage], form: type[FormT], *, name: str
    ) -> FormT | None:
        """Ask a player for a decision; None if no reply could be used.

        Raises
        ------
        InsufficientFundsError
            If the bound of the run can't pay a call.
        EndpointError
            If the model can't be reached or gives no usable answer.
        StoppedError
            If the run is to stop.
        """
        purse = self.purse(speaker.team)
        return await decide(
            self.caller, step, speaker, messages, purse, form, name=name, repair_turns=self.repair_turns
        )

    async def say(
        self,
        step: str,
        speaker: Speaker,
        messages: list[BaseMessage],
        read: Callable[[Reply, bool], T],
        *,
        name: str,
    ) -> T | None:
        """Ask a player for what `read` makes of a reply; None if it can use none. See `labmates.workflows.asking.ask`.

        Raises
        ------
        InsufficientFundsError
            If the bound of the run can't pay a call.
        EndpointError
            If the model can't be reached or gives no usable answer.
        StoppedError
            If the run is to stop.
        """
        purse = self.purse(speaker.team)
        return await ask(self.caller, step, speaker, messages, purse, read, name=name, repair_turns=self.repair_turns)

    def purse(self, team: str) -> Purse:
        """Return what pays for a team's calls."""
        if team not in self._purses:
            self._purses[team] = Purse(self._ledger, team, {})
        return self._purses[team]


async def together(asked: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do what is asked for at the same time, and return what came, in order.

    If something fails, the rest ends first: what was asked of a model is paid, and is recorded.

    Raises
    ------
    Exception
        The first error, in order.
    """
    found = await asyncio.gather(*asked, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return [one for one in found if not isinstance(one, BaseException)]
