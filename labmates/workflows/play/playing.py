"""Common parts of experiments with players: the calls to players.

Agents have no budget and read of none: calls draw on the bound of the run, which ends with the first that it can't pay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any, TypeVar, Unpack

from langchain_core.messages import BaseMessage

from labmates.agents.decisions import FormT, read_decision
from labmates.budgets.purse import Purse
from labmates.models.objects import NoAnswerError
from labmates.models.reply import Reply
from labmates.models.structured import format_of
from labmates.workflows.calls.call import CallOptions, Speaker
from labmates.workflows.calls.caller import Caller
from labmates.workflows.calls.stop_signal import Steps
from labmates.workflows.people.answerers import outsider_of
from labmates.workflows.play.condition import DecisionCondition as DecisionCondition
from labmates.workflows.play.condition import PlayCondition as PlayCondition
from labmates.workflows.protocol.services import Services

T = TypeVar("T")


class Table:
    """The players of one run, and the way to ask them for decisions.

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
        self._structured = isinstance(condition, DecisionCondition) and condition.structured
        self.caller = Caller(
            services.hub,
            services.recorder,
            seed=services.reply_seed,
            prices=condition.prices,
            max_output_tokens=condition.max_output_tokens,
            temperature=condition.temperature,
            thoughts=condition.thoughts,
            steps=Steps(services.stop_signal),
            # Players know nothing of the bound, and play the same until it is reached.
            lowers_limit=False,
        )
        self.caller.outsiders = partial(
            outsider_of, caller=self.caller, past=services.past, live=services.live, record_of=services.record_of
        )

    async def decide(
        self,
        step: str,
        speaker: Speaker,
        messages: list[BaseMessage],
        form: type[FormT],
        *,
        name: str,
        otherwise: str = "",
        reasoned: bool = False,
    ) -> FormT | None:
        """Ask a player for a decision; None if no reply could be used.

        Raises `InsufficientFundsError` if the bound of the run can't pay a call; `EndpointError` if the model can't be
        reached or gives no usable answer; `StoppedError` if the run is to stop.

        Parameters
        ----------
        otherwise
            What happens without a decision; a player whose reply has none is told.
        reasoned
            Whether it was asked to reason first; then the last object of a reply counts.
        """

        def read(reply: Reply, _last: bool) -> FormT:
            return decision_of(reply, form, otherwise=otherwise, reasoned=reasoned)

        # A person is shown the form in any case.
        held = format_of(form) if self._structured or speaker.is_outside else None
        return await self.say(step, speaker, messages, read, name=name, response_format=held)

    async def say(
        self,
        step: str,
        speaker: Speaker,
        messages: list[BaseMessage],
        read: Callable[[Reply, bool], T],
        *,
        name: str,
        **options: Unpack[CallOptions],
    ) -> T | None:
        """Ask a player for what `read` makes of a reply; None if it can use none. See `Caller.answer`.

        Raises `InsufficientFundsError` if the bound of the run can't pay a call; `EndpointError` if the model can't be
        reached or gives no usable answer; `StoppedError` if the run is to stop.
        """
        purse = self.purse(speaker.team)
        return await self.caller.answer(
            step, speaker, messages, purse, read, name=name, repair_turns=self.repair_turns, **options
        )

    def purse(self, team: str) -> Purse:
        """The purse that pays for a team's calls."""
        if team not in self._purses:
            self._purses[team] = Purse(self._ledger, team, {})
        return self._purses[team]


def decision_of(reply: Reply, form: type[FormT], *, otherwise: str, reasoned: bool) -> FormT:
    """The decision in a player's reply; see `Table.decide`. Raises `UnusableAnswerError` if there is none."""
    try:
        return read_decision(reply, form, reasoned=reasoned)
    except NoAnswerError as error:
        error.form = f"{error.form}\n{otherwise}".rstrip()
        raise


async def together(asked: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Do what is asked for at the same time, and return what came, in order.

    If something fails, the rest ends first: what was asked of a model is paid, and is recorded. Then the first error,
    in order, is raised.
    """
    results = await asyncio.gather(*asked, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [one for one in results if not isinstance(one, BaseException)]
