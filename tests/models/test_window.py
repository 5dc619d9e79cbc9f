"""Context windows and capabilities of entries: limits on replies, prompts and models that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from pydantic import BaseModel

import labmates
from labmates.budgets.ledger import UNLIMITED, Ledger
from labmates.budgets.prices import PriceList
from labmates.budgets.tokens import estimate_tokens
from labmates.condition_types import Kind
from labmates.errors import UsageError
from labmates.judges.rubric import RubricJudge
from labmates.models.catalog import Catalog
from labmates.models.errors import ContextOverflowError
from labmates.models.hub import ModelHub
from labmates.models.scripted import make_baseline
from labmates.records.store import Store
from labmates.workflows.calls.assessing import JudgeCaller
from labmates.workflows.calls.caller import reply_limit
from tests.support.openai_server import OpenAIServer, serve_model

GAME: dict[str, Any] = {"game": "public-goods", "group_size": 2, "rounds": 2}


@pytest.mark.parametrize(
    ("wanted", "prompt", "window", "limit"),
    [(4096, 1000, None, 4096), (4096, 1000, 8192, 4096), (4096, 6000, 8192, 2192), (100, 8092, 8192, 100)],
)
def test_a_reply_has_what_the_prompt_leaves(wanted: int, prompt: int, window: int | None, limit: int) -> None:
    assert reply_limit(wanted, prompt, window, "openai:m") == limit


def test_a_prompt_that_leaves_too_little_is_refused_with_its_size() -> None:
    with pytest.raises(ContextOverflowError, match=r"about 8,000 tokens leaves no room .* context of 8,192") as caught:
        reply_limit(4096, 8000, 8192, "openai:m")
    assert (caught.value.limit, caught.value.requested) == (8192, 8000)


async def played(store: Store, model: str, **condition: Any) -> list[dict[str, Any]]:
    """Return the requests of a game."""
    with OpenAIServer(serve_model(make_baseline("random"), latency=0)) as server:
        reference = f"{model}&base_url={server.base_url}"
        [run] = await labmates.arun("game", store=store.url, model=reference, **GAME, **condition)
    assert run.status == "completed"
    return [request.body for request in server.requests]


def limit_of(body: dict[str, Any]) -> int:
    return int(body["max_tokens"] if "max_tokens" in body else body["max_completion_tokens"])


async def test_the_limit_of_replies_stays_within_the_context_of_the_entry(store: Store) -> None:
    requests = await played(store, "openai:m?context_tokens=2048")
    assert requests
    for body in requests:
        limit = limit_of(body)
        prompt = sum(estimate_tokens(message["content"]) for message in body["messages"])
        assert 256 <= limit <= 2048 - prompt
        assert f"at most {limit} tokens" in body["messages"][-1]["content"]


async def test_without_a_known_context_no_limit_is_lowered(store: Store) -> None:
    requests = await played(store, "openai:m?top_p=0.5", max_output_tokens=131_072)
    assert {limit_of(body) for body in requests} == {131_072}


async def test_a_judge_does_not_ask_a_model_that_can_not_hold_the_report() -> None:
    with OpenAIServer() as server:
        catalog = Catalog(named={})
        name = catalog.name_of(f"openai:m?context_tokens=1024&base_url={server.base_url}")
        async with ModelHub(catalog.options()) as hub:
            calls = JudgeCaller(hub, seed=1, ledger=Ledger(UNLIMITED), prices=PriceList())
            judge = RubricJudge(name, calls.ask)
            with pytest.raises(ContextOverflowError, match="in a context of 1,024"):
                await judge.ask(HumanMessage("word " * 1000), lambda text, _: text, BaseModel, name="judge")
    assert server.requests == []


@pytest.mark.parametrize(
    ("kind", "condition", "lacks", "told"),
    [
        ("science", {"task": "anomaly"}, "tools", "agents in the lab work by calling tools"),
        ("game", {**GAME, "structured": True}, "json_replies", "structured asks the server to hold replies"),
    ],
)
async def test_a_model_that_lacks_what_a_run_needs_is_refused_before_the_first_call(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, condition: dict[str, Any], lacks: str,
    told: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    with OpenAIServer() as server:
        entry = f"{{provider: openai, model: m, base_url: {server.base_url}, capabilities: {{{lacks}: false}}}}"
        (tmp_path / "models.yaml").write_text(f"mine: {entry}\n")
        with pytest.raises(UsageError, match=told) as caught:
            await labmates.arun(Kind(kind), store=store.url, model="mine", **condition)
    assert f"model 'openai:m' (entry mine) has capabilities.{lacks}: false" in str(caught.value)
    assert str(caught.value).endswith("labmates models check mine")
    assert server.requests == []


async def test_what_a_run_does_not_need_a_model_may_lack(store: Store) -> None:
    assert await played(store, "openai:m?capabilities.tools=false")
