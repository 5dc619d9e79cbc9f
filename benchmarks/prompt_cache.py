"""How much of what models read repeats what they have read before, and how many tokens a run of the lab takes.

    python -m benchmarks.prompt_cache --task anomaly --task ecology --seeds 2
    python -m benchmarks.prompt_cache --task anomaly --organisation pipeline --memory conversation

A provider's prompt cache serves the longest prefix, of tools and then messages, that it has seen before. For runs of
the diligent baseline this prints: input and output tokens; the share of input that repeats an earlier call of the same
agent, and an earlier call of anybody; how many of the calls that continue a conversation repeat the whole call before,
and which share of their input that is; the least prefix that two agents share; of what the input consists, by step; and
the scores, so that two versions of the prompts are compared at equal quality. Tokens are estimates, as for all scripted
models.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from os.path import commonprefix  # character by character, which is what is meant here
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult

from labmates.agents.organisation_files import find_organisation
from labmates.api import arun
from labmates.budgets.tokens import estimate_messages, estimate_tokens, text_of
from labmates.models.scripted import BASELINES
from labmates.records.run import RunRecord
from labmates.workflows.science.baselines.diligent import Diligent

BUILT_IN = ("ecology", "anomaly", "biomarker", "geospatial")
SCORES = ("accuracy", "skill", "quality", "completeness")
KINDS = {"system": "system", "human": "orders", "ai": "own replies", "tool": "tool results"}


@dataclass(frozen=True)
class Call:
    """One call: who made it in which conversation, its input in the order in which a cache compares it, its tokens."""

    agent: str
    conversation: str
    text: str
    tokens: int
    parts: Counter[str]

    @property
    def step(self) -> str:
        """What the agent does: plan, work, deliberation or write."""
        return self.conversation.rpartition("/")[2]


class Watched(Diligent):
    """Diligent, whose calls are written down."""

    baseline: ClassVar[str] = "watched"
    calls: ClassVar[list[Call]] = []

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        told = (run_manager.metadata if run_manager else None) or {}
        self.calls.append(read_call(messages, kwargs.get("tools") or (), told["agent"], told["step"]))
        return await super()._agenerate(messages, stop, run_manager, **kwargs)


def read_call(messages: Sequence[BaseMessage], tools: Sequence[dict[str, Any]], agent: str, step: str) -> Call:
    """Return a call as a provider reads it."""
    pieces = [("tools", json.dumps(tool, separators=(",", ":"))) for tool in tools]
    for message in messages:
        text = f"<{message.type}>{text_of(message.content)}"
        if isinstance(message, AIMessage) and message.tool_calls:
            text += json.dumps([{"name": one["name"], "args": one["args"]} for one in message.tool_calls])
        pieces.append((KINDS[message.type], text))
    parts: Counter[str] = Counter()
    for kind, text in pieces:
        parts[kind] += estimate_tokens(text)
    whole = "".join(text for _, text in pieces)
    return Call(agent, "/".join(step.split("/")[:4]), whole, estimate_messages(messages, tools), parts)


def repeated(calls: Sequence[Call], *, same_agent: bool) -> float:
    """Return the share of the input that is a prefix of the same agent's, or of anybody's, earlier call."""
    served = total = 0
    for place, call in enumerate(calls):
        earlier = (one.text for one in calls[:place] if not same_agent or one.agent == call.agent)
        prefix = max((commonprefix([call.text, text]) for text in earlier), key=len, default="")  # noqa: RUF071
        served += round(call.tokens * len(prefix) / len(call.text))
        total += call.tokens
    return served / total


def continued(calls: Sequence[Call]) -> tuple[int, int, float]:
    """Calls that continue a conversation, those of them that repeat the whole call before, and the share of input."""
    pairs = [
        (before, call)
        for conversation in dict.fromkeys(call.conversation for call in calls)
        for before, call in pairwise(call for call in calls if call.conversation == conversation)
    ]
    whole = [(before, call) for before, call in pairs if call.text.startswith(before.text)]
    served = sum(round(call.tokens * len(before.text) / len(call.text)) for before, call in whole)
    return len(pairs), len(whole), served / sum(call.tokens for _, call in pairs)


def shared(calls: Iterable[Call]) -> int:
    """Return the tokens of the least prefix that two agents' work shares."""
    first = {call.agent: call.text for call in reversed(list(calls)) if call.step == "work"}
    prefixes = (commonprefix([one, other]) for one, other in combinations(first.values(), 2))  # noqa: RUF071
    return min(estimate_tokens(prefix) for prefix in prefixes)


def show(run: RunRecord, calls: Sequence[Call]) -> None:
    """Print what a run took."""
    usage = run.usage
    scores = ", ".join(f"{name} {run.metrics[name]:.3f}" for name in SCORES if name in run.metrics)
    whole = usage.input_tokens + usage.output_tokens
    print(f"{run.condition['task']}, seed {run.seed}: {whole:,} tokens ({usage.input_tokens:,} in), {len(calls)} calls")
    print(f"  {run.status}; {scores}")
    own, anybody = (repeated(calls, same_agent=same) for same in (True, False))
    print(
        f"  prefix repeated: {own:.1%} of the agent's own earlier calls, {anybody:.1%} of anybody's; shared by all "
        f"agents: {shared(calls):,} tokens; cached reads at 0.1: as {usage.input_tokens * (1 - 0.9 * anybody):,.0f} in"
    )
    later, appended, share = continued(calls)
    print(f"  {appended} of {later} calls that continue a conversation repeat the call before: {share:.1%} of input")
    for step in ("plan", "work", "deliberation", "write"):
        mine = [call for call in calls if call.step == step]
        parts = sum((call.parts for call in mine), Counter())
        listed = ", ".join(f"{kind} {parts[kind]:,}" for kind in ("tools", *KINDS.values()) if parts[kind])
        print(f"  {step}: {len(mine)} calls, {sum(call.tokens for call in mine):,} in: {listed}")


async def main(tasks: Sequence[str], seeds: int, options: dict[str, Any]) -> None:
    """Run the lab and print what each run took."""
    BASELINES.register("watched", Watched)
    with tempfile.TemporaryDirectory() as folder:
        total = 0
        for task in tasks:
            for seed in range(seeds):
                Watched.calls.clear()
                store = f"sqlite:///{folder}/runs.db"
                [run] = await arun("science", store=store, seed=seed, task=task, model="scripted:watched", **options)
                show(run, Watched.calls)
                total += run.usage.input_tokens + run.usage.output_tokens
        print(f"all: {total / (len(tasks) * seeds):,.0f} tokens a run")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Tokens and repeated prefixes of the lab's prompts.")
    parser.add_argument("--task", action="append", choices=BUILT_IN, help="Repeatable; by default all.")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--difficulty", default="medium")
    parser.add_argument("--team-size", type=int, default=None)
    parser.add_argument("--organisation", default="pipeline")
    parser.add_argument("--memory", choices=["step", "conversation"], help="By default the organisation's.")
    asked = parser.parse_args()
    crew = find_organisation(asked.organisation)
    if asked.memory:
        teams = {name: team.model_copy(update={"memory": asked.memory}) for name, team in crew.teams.items()}
        crew = crew.model_copy(update={"teams": teams})
    options: dict[str, Any] = {"difficulty": asked.difficulty, "organisation": crew}
    if asked.team_size:
        options["team_size"] = asked.team_size
    asyncio.run(main(asked.task or BUILT_IN, asked.seeds, options))
