"""`SharedBudget` around real LangChain agents: what is held, charged, given back, told and cut off."""

from __future__ import annotations

import ast
import asyncio
import itertools
import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import httpx2
import openai
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRetryMiddleware, SummarizationMiddleware
from langchain.agents.structured_output import StructuredOutputValidationError, ToolStrategy
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr

import labmates
from labmates.budgets import shared_budget
from labmates.budgets.ledger import LEAST_OUTPUT_TOKENS, InsufficientFundsError
from labmates.budgets.shared_budget import SharedBudget
from labmates.errors import UsageError
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.scripted_chat import Script, ScriptedChat, said

IMPORTS = """
import sys
from langchain.agents import create_agent, middleware
from langchain.chat_models import init_chat_model
before = set(sys.modules)
import labmates
labmates.SharedBudget
print(*(set(sys.modules) - before))
"""
QUESTION: Any = {"messages": [("user", "What is 1 + 1?")]}
TINY = "input=0.5,output=3"


@tool
def look(where: str) -> str:
    """Look somewhere."""
    if where == "away":
        raise ValueError("nothing there")
    return f"at {where}"


def chat(*replies: AIMessage | Exception) -> ScriptedChat:
    """A model that gives replies in turn, the last one again and again."""
    left = itertools.chain(replies, itertools.repeat(replies[-1]))

    def script(messages: list[BaseMessage], limit: int) -> AIMessage:
        reply = next(left)
        if isinstance(reply, Exception):
            raise reply
        return reply.model_copy()

    return ScriptedChat(script=script)


def last(messages: Sequence[BaseMessage]) -> str:
    return str(messages[-1].content)


def kinds(budget: SharedBudget) -> list[str]:
    return [line.kind for line in budget.journal]


def balanced(budget: SharedBudget) -> None:
    """Check that the books agree and that nothing is held."""
    amounts = list(itertools.accumulate((line.amount for line in budget.journal), initial=budget.total))
    assert min(amounts) >= 0
    assert amounts[-1] == budget.available == budget.total - budget.spent
    assert sum(budget.spent_by_member.values()) == budget.spent <= budget.total


def test_a_call_is_held_at_its_most_and_charged_at_its_true_usage() -> None:
    budget = SharedBudget("1", prices={"default": {"input": "10", "output": "20"}})
    agent = create_agent(chat(said("2", (100, 10))), [], middleware=[budget], name="alice")
    assert agent.invoke(QUESTION)["messages"][-1].content == "2"
    hold, release, charge = budget.journal
    assert (hold.kind, release.kind, charge.kind) == ("hold", "release", "charge")
    assert -hold.amount == release.amount > 20 * 1000
    assert (charge.member, charge.call, charge.amount) == ("alice", "model scripted:scripted-chat", -1200)
    assert (budget.spent, budget.spent_by_member) == (1200, {"alice": 1200})
    assert str(budget) == "Budget: $0.0012 of $1.0000 spent, $0.9988 (99 %) left."
    balanced(budget)


async def test_cached_written_and_reasoning_tokens_have_their_own_prices() -> None:
    price = {"input": "10", "cached": "1", "cache_write": "12", "output": "20", "reasoning": "30"}
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "total_tokens": 1100,
        "prompt_tokens_details": {"cached_tokens": 600},
        "completion_tokens_details": {"reasoning_tokens": 40},
    }
    with OpenAIServer(Answer(text="2", usage=usage)) as server:
        model = ChatOpenAI(model="m", base_url=server.base_url, api_key=SecretStr("none"), max_retries=0)
        budget = SharedBudget("1", prices={"models": {"openai:m": price}}, max_output_tokens=500)
        await create_agent(model, [look], middleware=[budget]).ainvoke(QUESTION)
        sent = server.requests[0].body
    charge = budget.journal[-1]
    assert (charge.cached_tokens, charge.reasoning_tokens, charge.note) == (600, 40, "")
    assert budget.spent == 400 * 10 + 600 * 1 + 60 * 20 + 40 * 30
    assert sent["max_completion_tokens"] == 500
    assert "Budget: $0.0000 of $1.0000 spent" in sent["messages"][-1]["content"]


async def test_usage_that_a_server_does_not_report_is_estimated() -> None:
    with OpenAIServer(Answer(text="It is 2.", usage=None)) as server:
        model = ChatOpenAI(model="m", base_url=server.base_url, api_key=SecretStr("none"))
        budget = SharedBudget("1")
        await create_agent(model, [], middleware=[budget]).ainvoke(QUESTION)
    charge = budget.journal[-1]
    assert charge.note == "estimated: the server reported no usage"
    assert charge.input_tokens > 10
    assert charge.output_tokens > 3
    balanced(budget)


async def test_a_stream_that_is_cancelled_is_charged_in_full() -> None:
    begun = asyncio.Event()

    async def script(messages: list[BaseMessage], limit: int) -> AIMessage:
        begun.set()
        await asyncio.Event().wait()
        return said("never")

    budget = SharedBudget("1")
    agent = create_agent(ScriptedChat(script=script), [], middleware=[budget])

    async def follow() -> None:
        async for _ in agent.astream(QUESTION, stream_mode="messages"):
            pass

    task = asyncio.create_task(follow())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    charge = budget.journal[-1]
    assert (charge.kind, charge.output_tokens, charge.note) == ("charge", 1000, "may be billed (CancelledError)")
    balanced(budget)


def answered(status: int) -> Exception:
    response = httpx2.Response(status, request=httpx2.Request("POST", "http://provider"))
    return openai.APIStatusError("no", response=cast(Any, response), body=None)


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("reported", [(99_000_000, 1), (10, 99_000_000)])
def test_one_wrong_report_of_usage_costs_no_more_than_the_call_could(reported: tuple[int, int]) -> None:
    budget = SharedBudget("1", prices=TINY)
    assert last(create_agent(chat(said("2", reported)), [], middleware=[budget]).invoke(QUESTION)["messages"]) == "2"
    hold, charge = (line for line in budget.journal if line.kind in ("hold", "charge"))
    assert 0 < -charge.amount <= -hold.amount
    assert "these are charged" in charge.note
    balanced(budget)


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (answered(400), "release"),
        (answered(503), "release"),
        (answered(504), "charge"),
        (answered(200), "charge"),
        (caused(RuntimeError("no"), httpx2.ConnectError("refused")), "release"),
        (ConnectionRefusedError(), "release"),
        (InsufficientFundsError("no"), "release"),
        (caused(RuntimeError("no"), httpx2.RemoteProtocolError("300 headers")), "charge"),
        (ConnectionResetError(), "charge"),
        (json.JSONDecodeError("no JSON", "", 0), "charge"),
        (TimeoutError("late"), "charge"),
    ],
)
def test_only_an_error_of_the_provider_and_a_connection_that_never_was_give_the_hold_back(
    error: Exception, end: str
) -> None:
    budget = SharedBudget("1")
    agent = create_agent(chat(error), [], middleware=[budget])
    with pytest.raises(type(error)):
        agent.invoke(QUESTION)
    assert kinds(budget)[-1] == end
    assert (budget.spent > 0) == (end == "charge")
    balanced(budget)


def test_each_retry_is_held_and_settled_by_itself() -> None:
    budget = SharedBudget("1")
    retry = ModelRetryMiddleware(max_retries=2, initial_delay=0.0, jitter=False)
    model = chat(ConnectionRefusedError("no"), ConnectionRefusedError("no"), said("2", (10, 1)))
    assert last(create_agent(model, [], middleware=[retry, budget]).invoke(QUESTION)["messages"]) == "2"
    assert kinds(budget) == ["hold", "release"] * 3 + ["charge"]
    assert [line.note for line in budget.journal if line.kind == "release"] == ["ConnectionRefusedError"] * 2 + [""]


def test_a_reply_of_the_wrong_format_is_paid_all_the_same() -> None:
    class Sum(BaseModel):
        value: int

    budget = SharedBudget("1", prices=TINY)
    wrong = said("", (1000, 100), [("Sum", {"value": "two"})])
    form: Any = ToolStrategy(Sum, handle_errors=False)
    agent = create_agent(chat(wrong), [], middleware=[budget], response_format=form)
    with pytest.raises(StructuredOutputValidationError):
        agent.invoke(QUESTION)
    assert budget.spent == 500 + 300
    balanced(budget)


def test_replies_of_a_cache_cost_nothing() -> None:
    reply = said("2", (1000, 100))
    cast(dict[str, Any], reply.usage_metadata)["total_cost"] = 0
    budget = SharedBudget("1")
    create_agent(chat(reply), [], middleware=[budget]).invoke(QUESTION)
    assert (budget.spent, budget.journal[-1].note) == (0, "from LangChain's cache")


def test_an_agent_whose_pool_is_empty_ends_with_a_reason() -> None:
    budget = SharedBudget("0.01", prices=TINY)
    again = said("Let me see.", (2000, 300), [("look", {"where": "here"})])
    agent = create_agent(chat(again), [look], middleware=[budget], name="alice")
    messages = agent.invoke(QUESTION)["messages"]
    assert last(messages) == "I stop here: the shared budget can't pay another reply."
    assert messages[-1].response_metadata["finish_reason"] == "budget"
    assert kinds(budget)[-1] == "refused"
    balanced(budget)


def test_an_empty_pool_can_raise_an_error_instead() -> None:
    budget = SharedBudget("0", exit_behavior="error")
    with pytest.raises(InsufficientFundsError, match=r"Budget: \$0.0000 of \$0.0000 spent"):
        create_agent(chat(said("2")), [], middleware=[budget]).invoke(QUESTION)


def test_a_low_pool_lowers_the_limit_on_the_reply_and_says_so() -> None:
    limits = []

    def script(messages: list[BaseMessage], limit: int) -> AIMessage:
        limits.append((limit, last(messages)))
        return said("2", (10, 1))

    for ten_thousandths in range(31):
        budget = SharedBudget(f"0.{ten_thousandths:04}", prices=TINY)
        create_agent(ScriptedChat(script=script), [], middleware=[budget]).invoke(QUESTION)
    assert 0 < len(limits) < 30
    assert LEAST_OUTPUT_TOKENS <= min(limits)[0] < 2 * LEAST_OUTPUT_TOKENS
    limit, prompt = limits[-1]
    assert limit < 1000
    assert prompt.endswith(f"Length limit: at most {limit} tokens in this reply, reasoning included.")


@pytest.mark.parametrize(
    ("visibility", "seen", "unseen"),
    [
        ("full", ["Budget: $0.0040 of $0.0100 spent", "60 %"], []),
        ("team", ["Budget: you have spent $0.0040."], ["0.0100"]),
        ("hidden", [], ["Budget"]),
    ],
)
def test_agents_are_told_what_their_visibility_allows(visibility: Any, seen: list[str], unseen: list[str]) -> None:
    budget = SharedBudget("0.01", prices=TINY, visibility=visibility)
    model = chat(said("", (2000, 1000), [("look", {"where": "here"})]), said("2", (0, 0)))
    result = create_agent(model, [look], middleware=[budget]).invoke(QUESTION)
    prompt = last(model.asked[-1])
    assert prompt.startswith("at here")
    assert all(text in prompt for text in seen)
    assert not any(text in prompt for text in unseen)
    assert all("Budget" not in message.content for message in result["messages"][:-1])


def test_a_pool_that_runs_low_is_announced() -> None:
    budget = SharedBudget("0.011", prices=TINY)
    model = chat(*[said("", (2000, 1000), [("look", {"where": "here"})])] * 2, said("2"))
    create_agent(model, [look], middleware=[budget]).invoke(QUESTION)
    assert "The pool is running low" in last(model.asked[-1])


def test_tools_have_a_price_and_failed_ones_are_free() -> None:
    budget = SharedBudget("1", prices="input=0,output=0,tool_call=0.3")
    wrong = said("", (1, 1), [("look", {"nowhere": "x"})])
    model = chat(wrong, said("", (1, 1), [("look", {"where": "here"})]), said("2", (1, 1)))
    create_agent(model, [look], middleware=[budget], name="bob").invoke(QUESTION)
    assert [(line.call, line.amount) for line in budget.journal if line.kind == "charge" and line.amount] == [
        ("tool look", -300_000)
    ]
    with pytest.raises(ValueError, match="nothing there"):
        create_agent(chat(said("", (1, 1), [("look", {"where": "away"})])), [look], middleware=[budget]).invoke(
            QUESTION
        )
    assert budget.spent == 300_000
    balanced(budget)


def test_a_tool_that_the_pool_can_not_pay_is_refused_to_the_model() -> None:
    budget = SharedBudget("0.5", prices="input=0,output=0,tool_call=0.3")
    model = chat(*[said("", (1, 1), [("look", {"where": "here"})])] * 2, said("2", (1, 1)))
    messages = create_agent(model, [look], middleware=[budget]).invoke(QUESTION)["messages"]
    assert [message.status for message in messages if isinstance(message, ToolMessage)] == ["success", "error"]
    assert "The call was not made: the shared budget can't pay it." in messages[-2].content
    assert last(messages) == "2"


def supervisor(budget: SharedBudget, order: Sequence[float], members: int = 2) -> Any:
    """A supervisor that asks several members at once; they answer after so many turns of the loop."""

    def member(number: int) -> Any:
        async def script(messages: list[BaseMessage], limit: int) -> AIMessage:
            for _ in range(int(order[number] * 100)):
                await asyncio.sleep(0)
            return said("more", (1000, limit), [("look", {"where": str(number)})])

        return create_agent(ScriptedChat(script=script), [look], middleware=[budget], name=f"member{number}")

    agents = [member(number) for number in range(members)]

    @tool
    async def ask(number: int) -> str:
        """Ask a member."""
        result = await agents[number].ainvoke(QUESTION)
        return f"{len(result['messages'])} messages"

    calls = [("ask", {"number": number}) for number in range(members)]
    boss = chat(said("", (1000, 100), calls), said("done", (1000, 100)))
    return create_agent(boss, [ask], middleware=[budget], name="boss")


@pytest.mark.parametrize("order", [(0.0, 0.5), (0.5, 0.0)])
async def test_members_asked_at_once_have_equal_shares_whoever_is_first(order: Sequence[float]) -> None:
    budget = SharedBudget("0.05", prices=TINY)
    result = await supervisor(budget, order).ainvoke(QUESTION)
    spent = budget.spent_by_member
    assert spent["member0"] == spent["member1"] > 10_000
    assert spent["boss"] >= 800
    assert "done" in last(result["messages"]) or "I stop here" in last(result["messages"])
    balanced(budget)


def test_members_in_threads_have_equal_shares_too() -> None:
    budget = SharedBudget("0.05", prices=TINY)
    chats = [chat(said("more", (1000, 300), [("look", {"where": "x"})])) for _ in "ab"]
    members = [create_agent(chats[n], [look], middleware=[budget], name="ab"[n]) for n in range(2)]

    @tool
    def ask(number: int) -> str:
        """Ask a member."""
        return str(len(members[number].invoke(QUESTION)["messages"]))

    boss = chat(said("", (1000, 100), [("ask", {"number": 0}), ("ask", {"number": 1})]), said("done", (100, 10)))
    create_agent(boss, [ask], middleware=[budget], name="boss").invoke(QUESTION)
    assert budget.spent_by_member["a"] == budget.spent_by_member["b"] > 10_000
    assert all("Budget: $0.0008 of $0.0500 spent" in last(each.asked[0]) for each in chats), "by the boss before"
    balanced(budget)


async def test_shares_can_be_given_by_hand() -> None:
    budget = SharedBudget("0.06", prices=TINY)
    greedy = ScriptedChat(script=lambda _, limit: said("more", (1000, limit), [("look", {"where": "x"})]))
    agents = [create_agent(greedy, [look], middleware=[budget], name=name) for name in "abc"]

    async def work(agent: Any, share: Any) -> None:
        with share:
            await agent.ainvoke(QUESTION)

    await asyncio.gather(*map(work, agents, budget.shares(3)))
    spent = budget.spent_by_member
    assert 17_000 < spent["a"] == spent["b"] == spent["c"] <= 20_000
    balanced(budget)


async def test_a_deep_agent_and_its_subagents_share_the_pool() -> None:
    deepagents = pytest.importorskip("deepagents")
    budget = SharedBudget("1", prices=TINY)
    task = {"description": "Find out.", "subagent_type": "finder"}
    finder: dict[str, Any] = {
        "name": "finder",
        "description": "Finds.",
        "system_prompt": "Find.",
        "tools": [],
        "middleware": [budget],
    }
    finder["model"] = chat(said("found", (1000, 100)))
    boss = chat(said("", (2000, 100), [("task", task)]), said("done", (2000, 100)))
    agent = deepagents.create_deep_agent(boss, [], middleware=[budget], subagents=[finder], name="boss")
    assert last((await agent.ainvoke(QUESTION))["messages"]) == "done"
    assert budget.spent_by_member == {"boss": 2 * 1300, "finder": 800}
    balanced(budget)


async def test_a_swarm_shares_the_pool() -> None:
    langgraph_swarm = pytest.importorskip("langgraph_swarm")
    budget = SharedBudget("1", prices=TINY)
    alice = create_agent(
        chat(said("", (1000, 100), [("transfer_to_bob", {})])),
        [langgraph_swarm.create_handoff_tool(agent_name="bob")],
        middleware=[budget],
        name="alice",
    )
    bob = create_agent(chat(said("2", (1000, 100))), [], middleware=[budget], name="bob")
    swarm = langgraph_swarm.create_swarm([alice, bob], default_active_agent="alice").compile()
    assert last((await swarm.ainvoke(QUESTION))["messages"]) == "2"
    assert budget.spent_by_member == {"alice": 800, "bob": 800}


FATES = ("reported", "unreported", "beyond", "error", "timeout", "hangs", "tools")


AGENT: ContextVar[asyncio.Task[Any]] = ContextVar("AGENT")


def fated(dice: random.Random) -> Script:
    """A model whose calls meet with whatever can happen to calls; the agent of one that hangs is cancelled."""

    async def script(messages: list[BaseMessage], limit: int) -> AIMessage:
        fate, used = dice.choice(FATES), (dice.randint(1, 2000), dice.randint(1, limit))
        for _ in range(dice.randint(0, 3)):
            await asyncio.sleep(0)
        match fate:
            case "error":
                raise ConnectionError("lost")
            case "timeout":
                raise TimeoutError("late")
            case "hangs":
                AGENT.get().cancel()
                await asyncio.Event().wait()
            case "unreported":
                return said("some words")
            case "beyond":
                return said("much", (used[0] * 10, limit * 3))
            case "tools":
                return said("", used, [("look", {"where": "x"})] * dice.randint(1, 3))
        return said("words", used)

    return script


@settings(max_examples=8, deadline=None)
@given(total=st.integers(0, 400_000), tool_price=st.sampled_from(["0", "0.001"]), seed=st.integers(0, 2**32))
def test_64_concurrent_agents_never_overdraw_the_pool(total: int, tool_price: str, seed: int) -> None:
    dice = random.Random(seed)
    budget = SharedBudget(f"{total / 1e6:.6f}", prices=f"{TINY},tool_call={tool_price}")
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0.0, jitter=False, on_failure="error")
    model = ScriptedChat(script=fated(dice))
    agents = [create_agent(model, [look], middleware=[retry, budget], name=name) for name in "abcd"]

    async def ask(number: int) -> None:
        AGENT.set(cast("asyncio.Task[Any]", asyncio.current_task()))
        await agents[number % 4].ainvoke(QUESTION)

    async def everyone() -> None:
        await asyncio.gather(*(ask(number) for number in range(64)), return_exceptions=True)

    asyncio.run(everyone())
    balanced(budget)
    charges = [line for line in budget.journal if line.kind == "charge" and line.call.startswith("model")]
    for charge in charges:
        cost = -(-(charge.input_tokens * 500_000 + charge.output_tokens * 3_000_000) // 1_000_000)
        assert -charge.amount + charge.uncovered == cost


async def test_a_call_waits_for_money_that_calls_in_flight_hold() -> None:
    limits = []

    async def script(messages: list[BaseMessage], limit: int) -> AIMessage:
        limits.append(limit)
        await asyncio.sleep(0)
        return said("2", (100, 10))

    budget = SharedBudget("0.01", prices=TINY)  # pays two calls at their most, and all at what they use
    agent = create_agent(ScriptedChat(script=script), [], middleware=[budget])
    replies = await asyncio.gather(*(agent.ainvoke(QUESTION) for _ in range(64)))
    assert {last(reply["messages"]) for reply in replies} == {"2"}
    assert set(limits) == {1000}
    assert budget.spent == 64 * 80
    balanced(budget)


def test_threads_wait_for_money_too() -> None:
    def script(messages: list[BaseMessage], limit: int) -> AIMessage:
        time.sleep(0.01)
        return said(str(limit), (100, 10))

    budget = SharedBudget("0.006", prices=TINY)
    agent = create_agent(ScriptedChat(script=script), [], middleware=[budget])
    with ThreadPoolExecutor(8) as threads:
        replies = list(threads.map(lambda _: last(agent.invoke(QUESTION)["messages"]), range(16)))
    assert set(replies) == {"1000"}
    balanced(budget)


def test_the_journal_makes_a_table() -> None:
    budget = SharedBudget("1")
    create_agent(chat(said("2", (100, 10))), [], middleware=[budget], name="alice").invoke(QUESTION)
    table = pd.DataFrame(budget.journal)
    assert list(table.columns) == list(asdict(budget.journal[0]))
    assert table["amount"].sum() == -budget.spent


def test_bill_charges_what_providers_charge_and_refuses_unknown_models() -> None:
    budget = SharedBudget("1", prices="bill")
    with pytest.raises(UsageError, match=r"no price of scripted:scripted-chat; add it to prices\['models'\]"):
        create_agent(chat(said("2")), [], middleware=[budget]).invoke(QUESTION)
    with OpenAIServer(Answer(text="2")) as server:
        known = ChatOpenAI(model="gpt-5.4-mini", base_url=server.base_url, api_key=SecretStr("none"))
        create_agent(known, [], middleware=[budget]).invoke(QUESTION)
    charge = budget.journal[-1]
    assert -charge.amount == -(-(charge.input_tokens * 750_000 + charge.output_tokens * 4_500_000) // 1_000_000)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"total": "much"}, "total: 'much'"),
        ({"total": -1}, "total: '-1'"),
        ({"visibility": "secret"}, "visibility: 'secret' is not one of full, team, hidden"),
        ({"exit_behavior": "stop"}, "exit_behavior: 'stop' is not one of end, error"),
        ({"max_output_tokens": 0}, "max_output_tokens: 0"),
        ({"prices": {"defualt": {}}}, "prices.defualt"),
        ({"prices": {"default": {"input": "-1"}}}, r"prices\.default\.input"),
        ({"prices": "input=cheap"}, "price list"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SharedBudget(**{"total": "1", **parameters})
    with pytest.raises(UsageError, match="number: 0 is not a number of shares"):
        SharedBudget("1").shares(0)


def test_it_is_public_and_needs_no_heavy_library() -> None:
    assert labmates.SharedBudget is SharedBudget
    light = {"labmates", "langchain", "langchain_core", "langgraph", "pydantic", *sys.stdlib_module_names}
    for module in Path(shared_budget.__file__).parent.glob("*.py"):
        for node in ast.parse(module.read_text(encoding="utf-8")).body:
            imported = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            imported += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert {name.partition(".")[0] for name in imported} <= light


async def test_the_pool_pays_for_calls_beside_the_agents_own() -> None:
    budget = SharedBudget("1", prices=TINY)
    summary = SummarizationMiddleware(budget.metered(chat(said("short", (400, 100)))), trigger=("messages", 2))
    agent = create_agent(chat(said("2", (200, 100))), [], middleware=[summary, budget], name="alice")
    long: Any = {"messages": [("user" if n % 2 else "ai", f"message {n}") for n in range(31)]}
    assert last((await agent.ainvoke(long))["messages"]) == "2"
    assert budget.spent_by_member == {"alice": 500 + 400}
    balanced(budget)


def test_a_metered_model_of_an_agent_is_paid_once() -> None:
    budget = SharedBudget("1", prices=TINY)
    model = budget.metered(chat(said("", (200, 100), [("look", {"where": "here"})]), said("2", (200, 100))))
    assert last(create_agent(model, [look], middleware=[budget]).invoke(QUESTION)["messages"]) == "2"
    assert budget.spent == 2 * 400
    model.bind_tools([look]).invoke("What is 1 + 1?", max_tokens=50)
    assert budget.spent == 2 * 400 + 100 + 3 * 50  # no reply has more tokens than its limit
    assert budget.journal[-3].amount > -2_000
    balanced(budget)


def test_a_metered_model_without_funds_says_so() -> None:
    assert "can't pay" in str(SharedBudget("0").metered(chat(said("2"))).invoke("1 + 1?").content)


def test_a_prompt_that_ends_with_a_reply_gets_a_message_of_its_own() -> None:
    budget = SharedBudget("1")
    model = chat(said("3"))
    agent = create_agent(model, [], middleware=[budget])
    agent.invoke({"messages": [HumanMessage("1 + 1?"), AIMessage("2")]})
    agent.invoke({"messages": [HumanMessage([{"type": "text", "text": "1 + 2?"}])]})
    first, second = (prompt[-1] for prompt in model.asked)
    assert isinstance(first, HumanMessage)
    assert str(first.content).startswith("Budget: ")
    assert [block["type"] for block in second.content if isinstance(block, dict)] == ["text", "text"]


def test_its_import_loads_nothing_but_the_budget_beside_langchain() -> None:
    printed = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True).stdout
    known = ("labmates.budgets", "labmates.errors", "labmates.util.safe_text", "labmates._version")
    packages = ("labmates", "labmates.util", "pkgutil")
    assert [name for name in printed.split() if name not in packages and not name.startswith(known)] == []
