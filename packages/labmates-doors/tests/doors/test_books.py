"""A server's own book, kept by request while it fails in 48 ways, against what five doors record at once."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from labmates.api import arun
from labmates.budgets.prices import Price
from labmates.budgets.shared_budget import SharedBudget
from labmates.models.connection import Backoff
from labmates.models.options import ModelOptions
from labmates.records.events import ChargeEvent, LLMCallEvent
from labmates.records.store import Store
from labmates.studies.audit import audit
from labmates.studies.settings import RunSettings
from labmates.workflows.people.live import ask_run
from tests.doors.gateway.conftest import openai_upstream, served
from tests.support.form_filler import FormFiller
from tests.support.openai_server import Answer, Call, Json, OpenAIServer, fault, serve_model

Kind = Literal["told", "free", "lost", "unsaid"]
"""What a provider does: tells its bill, bills nothing, bills a reply that is lost, or bills without a usable report."""

DEEP = "[" * 500 + "]" * 500
FAULTS: tuple[tuple[Kind, Answer], ...] = (
    ("told", Answer(text="")),
    ("told", Answer(text=None)),
    ("told", Answer(text=[{"type": "text", "text": "?"}, 7])),
    ("told", Answer(text="I think", finish="length")),
    ("told", Answer(text="No.", finish="content_filter")),
    ("told", Answer(text="What?", finish="galaxy")),
    ("told", Answer(text="What?", finish=None)),
    ("told", Answer(text="Well", reasoning="One and one are two.")),
    ("told", Answer(text="<think>One and one")),
    ("told", Answer(text=None, calls=(Call("fly", "{}"),))),
    ("told", Answer(text=None, calls=(Call("fly", "{}", None),))),
    ("told", Answer(text=None, calls=(Call("fly", '{"to": "the mo'),))),
    ("told", Answer(text=None, calls=(Call("fly", "[1]"),))),
    ("told", Answer(text=None, calls=(Call("fly"), Call("fly")))),
    ("told", Answer(message={"refusal": "I can't.", "annotations": [1]})),
    ("told", Answer(text="```json\n{}\n```")),
    ("told", Answer(text='{"contribution": 1e999}')),
    ("told", Answer(text="\ud83d and \x00")),
    ("told", Answer(text=DEEP)),
    ("told", Answer(text="slow", delay=0.2)),
    ("told", Answer(text="no length", content_length=False)),
    ("told", Answer(choices=False)),
    ("free", fault(429)),
    ("free", fault(429, retry_after="0")),
    ("free", fault(408)),
    ("free", fault(409)),
    ("free", fault(500)),
    ("free", fault(500, "trace: line 1")),
    ("free", fault(502, "<html>bad gateway</html>")),
    ("free", fault(503, "")),
    ("free", fault(529, {"error": {"message": "overloaded", "type": "overloaded_error"}})),
    ("lost", fault(504)),
    ("lost", fault(524, "<html>too late</html>")),
    ("lost", Answer(cut="before")),
    ("lost", Answer(text="A long answer", cut="within")),
    ("lost", Answer(text="A long answer", cut="within", content_length=False)),
    ("lost", Answer(body='{"choices": [{')),
    ("lost", Answer(body="<html>welcome</html>")),
    ("lost", Answer(body=b"\x1f\x8b\x00")),
    ("lost", Answer(body="")),
    ("lost", Answer(silent=True)),
    ("unsaid", Answer(usage=None)),
    ("unsaid", Answer(usage={})),
    ("unsaid", Answer(usage={"prompt_tokens": "many", "completion_tokens": None})),
    ("unsaid", Answer(usage={"prompt_tokens": -5, "completion_tokens": -5})),
    ("unsaid", Answer(usage={"prompt_tokens": 99_000_000, "completion_tokens": 99_000_000})),
    ("unsaid", Answer(usage={"prompt_tokens": 1e300, "completion_tokens": float("inf")})),
    ("unsaid", Answer(usage={"prompt_tokens": 4, "completion_tokens": 10**30})),
)
WANTED = 2 * len(FAULTS)
INPUT, OUTPUT = 1, 2
"""Micro-dollars a token."""


@dataclass(frozen=True)
class Line:
    """A request in the server's book; the tokens are told, and no two requests have the same."""

    door: str
    kind: Kind
    tokens: tuple[int, int]
    billed: int


class Book:
    """Answers each door in turn with a reply and with a fault, and books what it bills, by request."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.turns: Counter[str] = Counter()
        self._well = serve_model(FormFiller(), latency=0)

    async def __call__(self, request: Json, number: int) -> Answer:
        door = request["model"]
        kind, answer = FAULTS[self.turns[door] // 2 % len(FAULTS)]
        if self.turns[door] % 2:
            made = self._well(request, number)
            kind, answer = "told", made if isinstance(made, Answer) else await made
        self.turns[door] += 1
        tokens = (10 + number // 100, 1 + number % 100)
        billed = INPUT * tokens[0] + OUTPUT * tokens[1]
        if kind == "told":
            answer = replace(answer, usage=dict(zip(("prompt_tokens", "completion_tokens"), tokens, strict=True)))
        elif kind == "lost":  # as much as it may have written
            limit = request.get("max_completion_tokens") or request["max_tokens"]
            billed = INPUT * len(json.dumps(request["messages"])) // 8 + OUTPUT * limit
        self.lines.append(Line(door, kind, tokens, 0 if kind == "free" else billed))
        return answer


@dataclass(frozen=True)
class Paid:
    """A charge of labmates; `doubt` says why it is no certain bill."""

    tokens: tuple[int, int]
    amount: int
    doubt: str


async def until_all(book: Book, door: str, play: Callable[[int], Awaitable[Any]]) -> None:
    """Play until the door has met every fault."""
    seed = 0
    while book.turns[door] < WANTED:
        await play(seed)
        seed += 1


async def answering(store: Store, playing: asyncio.Task[None]) -> None:
    """Answer as the person, while there is something to answer."""
    while not playing.done():
        await asyncio.sleep(0.2)
        for run in store.runs():
            if run.status == "running" and "human" in str(run.condition):
                told = (await ask_run(run.id, {"do": "turn"})) or {}
                if turn := told.get("turn"):
                    form = turn["forms"][0]
                    fields = {field["name"]: "1" for field in form["fields"]}
                    await ask_run(run.id, {"do": "reply", "step": turn["step"], "form": form["name"], "fields": fields})


def paid_in(store: Store, door: str) -> Iterable[Paid]:
    """The charges of all runs of a door; those of a person, whose replies are free, must be of nothing."""
    for run in store.runs():
        events = store.events(run.id)
        charges = [event for event in events if isinstance(event, ChargeEvent)]
        free = {event.step for event in events if isinstance(event, LLMCallEvent) and event.is_outside}
        assert all(charge.amount == 0 for charge in charges if charge.step in free)
        if run.condition["model"].startswith(f"openai:{door}"):
            assert [fault for _, faults in audit(store, [run.id]) for fault in faults] == []
            for charge in charges:
                if charge.step not in free and charge.input_tokens:
                    doubt = charge.reason or "estimated" if charge.estimated else ""
                    yield Paid((charge.input_tokens, charge.output_tokens), charge.amount, doubt)


@pytest.mark.slow("packages/labmates-doors/tests/doors/gateway/test_gateway.py")
async def test_a_server_s_book_is_the_ledger_of_all_doors_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr("labmates.models.hub.Backoff", lambda: Backoff(first=0.001, longest=0.002, longest_asked=0.002))
    book, price = Book(), Price.model_validate({"input": str(INPUT), "output": str(OUTPUT)})
    budget = SharedBudget("5", prices=f"input={INPUT},output={OUTPUT}", max_output_tokens=128)
    with OpenAIServer(book) as server, Store(f"sqlite:///{tmp_path}/runs.db") as store:
        options = ModelOptions(base_url=server.base_url, call_timeout=5.0, max_retries=20)
        settings = RunSettings(sandbox="unsafe-local", models=options)

        def played(kind: Any, door: str, **condition: Any) -> Callable[[int], Awaitable[Any]]:
            model = f"openai:{door}?price.input={INPUT}&price.output={OUTPUT}"
            more = {"model": model, "max_output_tokens": 128, **condition}
            return lambda seed: arun(kind, store=store.url, settings=settings, seed=seed, **more)

        game = {"game": "public-goods", "rounds": 4, "groups": 1}
        lab = played("science", "lab", task="anomaly", organisation="solo", prices={"default": price})
        people = played("game", "people", group_size=2, model_for={"A2": "human:ann"}, **game)
        chat = budget.metered(
            ChatOpenAI(
                model="shared",
                base_url=server.base_url,
                api_key=SecretStr("none"),
                max_retries=0,
                timeout=5,
                max_completion_tokens=128,
            )
        )

        async def share(_: int) -> None:
            with suppress(Exception):
                await chat.ainvoke([HumanMessage("What is one and one?")])

        with served(openai_upstream(server.base_url, "gateway", price), total=5_000_000, timeout=5.0) as gateway:
            async with httpx2.AsyncClient(timeout=30, headers={"x-api-key": gateway.key()}) as client:

                async def ask(number: int) -> None:
                    asked = [{"role": "user", "content": "What is one and one?"}]
                    body = {"model": "gateway", "messages": asked, "max_tokens": 128, "stream": number % 2 == 1}
                    with suppress(httpx2.HTTPError):
                        await client.post(f"{gateway.url}/v1/chat/completions", json=body)

                human = asyncio.create_task(until_all(book, "people", people))
                await asyncio.gather(
                    until_all(book, "lab", lab),
                    until_all(book, "game", played("game", "game", group_size=4, **game)),
                    until_all(book, "gateway", ask),
                    until_all(book, "shared", share),
                    human,
                    answering(store, human),
                )
        ledgers = {door: [*paid_in(store, door)] for door in ("lab", "game", "people")}
    ledgers["gateway"] = [
        Paid((each.usage.input_tokens, each.usage.output_tokens), each.cost, each.note)
        for each in gateway.exchanges
        if each.usage is not None
    ]
    ledgers["shared"] = [
        Paid((line.input_tokens, line.output_tokens), -line.amount, line.note)
        for line in budget.journal
        if line.kind == "charge"
    ]
    assert {line.door for line in book.lines} == ledgers.keys()
    for door, paid in ledgers.items():
        agrees([line for line in book.lines if line.door == door], paid)
    assert gateway.seats.ledger.spent == sum(paid.amount for paid in ledgers["gateway"])
    assert budget.spent == sum(paid.amount for paid in ledgers["shared"])


def agrees(lines: list[Line], paid: list[Paid]) -> None:
    """Check that each request is a charge of its bill, or is free, or is charged as uncertain, and nothing else is."""
    told = {line.tokens: line.billed for line in lines if line.kind == "told"}
    doubtful = [each for each in paid if each.doubt]
    for each in paid:
        if not each.doubt:
            assert told.pop(each.tokens) == each.amount
    # A busy machine may give up a call whose reply is on its way, or whose request the server has not read.
    late = sum("no answer" in each.doubt or "Timeout" in each.doubt for each in doubtful)
    unknown = sum(line.kind in ("lost", "unsaid") for line in lines) + len(told)
    assert unknown <= len(doubtful) <= unknown + late
    assert len(paid) - len(doubtful) > len(lines) / 2
    assert sum(each.amount for each in paid) >= sum(line.billed for line in lines)
