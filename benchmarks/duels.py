"""The kind of run that the store is measured with: two players who decide in turn, and are paid for nothing else.

It goes through the same session, claims, recorder, ledger and store as any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.outputs import ChatResult
from pydantic import Field

from labmates.budgets.ledger import Ledger
from labmates.budgets.prices import PriceList
from labmates.budgets.purse import Purse
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import Draft, Heard, ScriptedModel
from labmates.studies.spec import StudySpec, read_spec
from labmates.util.bounded_yaml import Source
from labmates.workflows.calls.call import Speaker
from labmates.workflows.calls.caller import Caller
from labmates.workflows.calls.stop_signal import Steps
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, Experiment, Metric, Outcome
from labmates.workflows.protocol.services import Services

PLAYERS = ("one", "other")
LATENCY_SECONDS = 0.1


class DuelCondition(Condition):
    """Two players decide a number of times."""

    kind: ClassVar[str] = "duel"
    model: str = Field(description="The model of both.")
    stake: int = Field(1, description="What is at stake.")
    rounds: int = Field(1, description="How often both decide.")

    @property
    def pool(self) -> int:
        """A dollar."""
        return 1_000_000

    def models(self) -> list[str]:
        """Return the model."""
        return [self.model]

    def check(self) -> None:
        """Check nothing."""


async def duel(condition: DuelCondition, services: Services) -> Outcome:
    """Let both players decide."""
    ledger = Ledger(condition.pool)
    caller = Caller(
        services.hub,
        services.recorder,
        seed=services.seed,
        prices=PriceList(),
        max_output_tokens=64,
        temperature=None,
        steps=Steps(services.stop_signal),
    )
    question = f"You play for {condition.stake} against another player. Cooperate or defect?"
    for number in range(condition.rounds):
        for player in PLAYERS:
            speaker = Speaker("", player, condition.model)
            said = [HumanMessage(f"Round {number}. {question}")]
            await caller.call(f"{number}/{player}", speaker, said, Purse(ledger, "", {}, 1), name="decide")
    return Outcome("completed", {"payoff": float(condition.stake)})


class Waiting(ScriptedModel):
    """Takes 100 ms for a reply, as a server far away does."""

    baseline: ClassVar[str] = "waiting"

    def compose(self, heard: Heard) -> Draft:
        """Cooperate."""
        return Draft("I cooperate.")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **more: Any,
    ) -> ChatResult:
        await asyncio.sleep(LATENCY_SECONDS)
        return await super()._agenerate(messages, stop, run_manager, **more)


EXPERIMENTS.register("duel", Experiment.plain("duel", DuelCondition, duel, (Metric("payoff"),)))
BASELINES.register("waiting", Waiting)


def a_study(
    runs: int, *, rounds: int = 1, models: Sequence[str] = ("scripted:silent",), at_once: int = 64, **more: Any
) -> StudySpec:
    """Return a study of so many duels for each model; `runs` is a multiple of ten."""
    data = {
        "name": "duels",
        "kind": "duel",
        "models": list(models),
        "fixed": {"rounds": rounds},
        "grid": {"stake": list(range(1, 11))},
        "replicates": runs // 10,
        "sandbox": "unsafe-local",
        "concurrency": {"max_concurrent_runs": at_once, "max_concurrent_calls": 64},
        **more,
    }
    return read_spec(Source("duels", data, {}))
