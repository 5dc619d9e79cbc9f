"""The cap of a study is a limit, whatever models and servers do."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from labmates.budgets.money import parse_dollars
from labmates.cli.main import run_command
from labmates.cli.study import _report
from labmates.models.connection import Backoff
from labmates.records.claims import Claims
from labmates.records.events import ChargeEvent, LLMCallEvent, WarningEvent
from labmates.records.run import STOPPED, RunRecord
from labmates.records.store import Store
from labmates.records.studies import Counts, retry_failed, study_counts
from labmates.studies.audit import audit, overspent
from labmates.studies.replay import replay
from labmates.studies.spec import StudySpec, read_spec
from labmates.studies.study import Bound, enter, work_on
from labmates.util.bounded_yaml import Source
from tests.support.form_filler import FormFiller
from tests.support.openai_server import Answer, Call, Json, OpenAIServer, completion, fault, serve_model
from tests.support.steps import append, finish
from tests.support.studies import conditions_of

LONG = "word " * 4_000_000


def whole(answer: Answer) -> Answer:
    """Return an answer that need not be written anew each time."""
    return Answer(body=json.dumps(completion(answer, {})).encode())


HUGE = {"prompt_tokens": 99_000_000, "completion_tokens": 99_000_000, "total_tokens": 198_000_000}
FAULTS: dict[str, Answer] = {
    "20 MB": whole(Answer(text=LONG)),
    "20 MB of tool call": whole(Answer(text="", calls=(Call("play", LONG),))),
    "20 MB of reasoning": whole(Answer(reasoning=LONG)),
    "20 MB of an error": fault(500, LONG),
    "20 MB that are no JSON": Answer(body=LONG),
    "limit ignored": Answer(text="word " * 2_000),
    "limit ignored in secret": Answer(text="word " * 2_000, usage={"prompt_tokens": 5, "completion_tokens": 5}),
    "limit ignored without usage": Answer(text="word " * 2_000, usage=None),
    "absurd usage": Answer(usage=HUGE),
    "usage beyond any number": Answer(usage={"prompt_tokens": 1e300, "completion_tokens": float("inf")}),
    "negative usage": Answer(usage={"prompt_tokens": -5, "completion_tokens": -5}),
    "usage of text": Answer(usage={"prompt_tokens": "many", "completion_tokens": None}),
    "no usage": Answer(usage=None),
    "429": fault(429, retry_after="0"),
    "500": fault(500),
    "503": fault(503, "<html>busy</html>"),
    "504": fault(504),
    "silent": Answer(silent=True),
    "slow": Answer(delay=30),
    "cut before": Answer(cut="before"),
    "cut within": Answer(text="A long answer", cut="within"),
    "cut within, no length": Answer(text="A long answer", cut="within", content_length=False),
    "no JSON": Answer(body='{"choices": [{'),
    "a page": Answer(body="<html>welcome</html>"),
    "no object": Answer(body=[1, 2]),
    "no choices": Answer(body={"text": "hello"}),
    "no choice": Answer(choices=False),
    "an error in disguise": Answer(body={"error": {"message": "worker died"}}),
    "empty": Answer(text=""),
    "no text": Answer(text=None),
    "parts": Answer(text=[{"type": "text", "text": "?"}, 7]),
    "cut by its limit": Answer(text="I think", finish="length"),
}
REFUSED = {"20 MB of an error", "429", "500", "503", "an error in disguise"}
"""Faults that no provider bills."""


class Faulty:
    """Answers in turn with a fault and twice as a player would; counts what it did."""

    def __init__(self, faults: dict[str, Answer]) -> None:
        self.done: Counter[str] = Counter()
        self.is_well = False
        self._names = list(faults)
        self._faults = faults
        self._well = serve_model(FormFiller(), latency=0)

    async def __call__(self, request: Json, number: int) -> Answer:
        if number % 3 or self.is_well:
            self.done["well"] += 1
            answer = self._well(request, number)
            return answer if isinstance(answer, Answer) else await answer
        name = self._names[number // 3 % len(self._names)]
        self.done[name] += 1
        return self._faults[name]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/runs.db") as store:
        yield store


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setattr("labmates.models.hub.Backoff", lambda: Backoff(first=0.001, longest=0.002, longest_asked=0.002))


def study(kind: str, server: OpenAIServer | None, *, stream: bool = False, **more: Any) -> StudySpec:
    url = "http://127.0.0.1:9/v1" if server is None else server.base_url
    connection = {"base_url": url, "call_timeout": 1.0, "max_retries": 2, "stream": stream}
    data = {
        "name": kind,
        "kind": kind,
        "connection": connection,
        "concurrency": {"max_concurrent_runs": 4, "max_concurrent_calls": 16},
        **more,
    }
    return read_spec(Source(f"{kind}.yaml", data, {}))


PRICE = "price.input=0.5&price.output=3"
STUDIES: dict[str, dict[str, Any]] = {
    "game": {
        "models": ["openai:m"],
        "fixed": {"game": "public-goods", "rounds": 2, "group_size": 3, "groups": 1, "max_output_tokens": 128},
        "replicates": 8,
        "bound": 0.01,
        "cap": 0.05,
    },
    "dilemma": {
        "fixed": {"game": "prisoners", "entrants": "openai:m,openai:n", "max_output_tokens": 128},
        "replicates": 6,
        "stream": True,
        "bound": 0.012,
        "cap": 0.04,
    },
    "tournament": {
        "models": [f"openai:m?{PRICE}"],
        "fixed": {
            "structure": "ri",
            "team_size": "1",
            "rounds": 2,
            "critique_turns": 0,
            "comprehension": "skipped",
            "max_output_tokens": 128,
        },
        "replicates": 6,
        "bound": 0.01,
        "cap": 0.05,
    },
}


async def test_no_fault_of_a_server_overdraws_a_cap_and_what_stopped_goes_on(store: Store) -> None:
    faulty = Faulty(FAULTS)
    stopped = 0
    with OpenAIServer(faulty) as server:
        for kind, data in STUDIES.items():
            spec = study(kind, server, **data)
            enter(store, spec)
            await work_on(store, spec)
            counts = study_counts(store, kind)
            assert counts.spent == counts.committed <= parse_dollars(data["cap"])
            assert counts.total == data["replicates"]
            assert counts.of("running") == 0
            stopped += check_runs(store, kind, parse_dollars(data["bound"]))
        assert set(faulty.done) >= set(FAULTS)
        assert stopped
        check_bill(store, server, faulty)
        faulty.is_well = True
        for kind, data in STUDIES.items():
            enter(store, more := study(kind, server, **{**data, "bound": 1, "cap": 50}))
            await work_on(store, more)
            retry_failed(store, kind)
            await work_on(store, more)
            assert study_counts(store, kind).runs == {"completed": data["replicates"]}
        check_bill(store, server, faulty)
    for run in store.runs():
        assert (await replay(store, run)).is_same, run
    assert list(overspent(store)) == []


def test_a_bill_beyond_what_a_call_may_cost_is_a_fault_and_breaks_no_cap(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    long = Answer(text="word " * 2_000, usage={"prompt_tokens": 300, "completion_tokens": 2_500, "total_tokens": 2_800})
    models = {**STUDIES["game"], "models": [f"openai:m?{PRICE}"], "replicates": 3, "bound": 0.008, "cap": 0.02}
    with OpenAIServer([long]) as server:
        spec = study("game", server, **models)
        enter(store, spec)
        asyncio.run(work_on(store, spec))
    counts = study_counts(store, "game")
    assert counts.spent <= parse_dollars(0.02)
    runs = [run for run in store.runs(study="game") if run.status == "exhausted"]
    assert len(runs) == 2  # The cap can't pay the bound of a third one.
    for run in runs:
        paid = charges(store, run)
        # Three players ask at once: the third bill is more than what is left.
        assert sum(charge.real_cost for charge in paid) == store.run(run.id).spent == 8_000 == run.most
        assert [charge.bill for charge in paid] == [7_650] * len(paid)
        assert sum(charge.excess for charge in paid) == 7_650 * len(paid) - 8_000 > 0
        assert "providers charge $0.0" in str(run.invalid)
        assert "more than its bound of $0.0080 could pay" in str(run.invalid)
    assert run_command(["store", "check", "--store", store.url]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "more than its bound could pay; its study doesn't count $0.0150 of that" in said
    assert _report(store, "game", stopped=False, as_json=False) == 1
    assert "more than its bound of $0.0080 could pay" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("price", ["", f"?{PRICE}"], ids=["unknown price", "known price"])
async def test_a_cap_counts_what_the_server_says_that_it_costs(store: Store, price: str) -> None:
    play = serve_model(FormFiller(), latency=0)

    async def dear(request: Json, number: int) -> Answer:
        return replace(await play(request, number), usage={"prompt_tokens": 300, "completion_tokens": 9, "cost": 0.25})

    fixed = {"game": "public-goods", "rounds": 1, "group_size": 2, "groups": 1, "max_output_tokens": 128}
    data: Any = {"models": [f"openai:m{price}"], "fixed": fixed, "replicates": 6, "bound": 0.3, "cap": 1}
    with OpenAIServer(dear) as server:
        spec = study("game", server, **data)
        spec = spec.model_copy(update={"concurrency": spec.concurrency.model_copy(update={"max_concurrent_runs": 1})})
        enter(store, spec)
        await work_on(store, spec)
    runs = [run for run in store.runs(study="game") if run.status != "planned"]
    assert len(runs) == 2  # Each costs $0.50, of which its bound could pay $0.30; the cap can't pay a third bound.
    assert study_counts(store, "game").spent == 1_000_000 == 250_000 * len(server.requests)
    for run in runs:
        assert (run.status, run.bill) == ("completed", "0.5")
        assert [(c.bill, c.bill_from, c.real_cost) for c in charges(store, run)] == [(250_000, "server", 250_000)] * 2
        assert sum(charge.excess for charge in charges(store, run)) == 200_000
        assert "providers charge $0.2000 more than its bound of $0.3000 could pay" in str(run.invalid)
        [(_, [fault])] = audit(store, [run.id])
        assert fault.text == "its providers charge $0.2000 more than its bound could pay"
        assert (await replay(store, run)).is_same


async def test_what_is_reserved_holds_any_prompt_and_reply_that_keep_to_the_limit(store: Store) -> None:
    most = Answer(text='{"contribution": 1}', usage={"prompt_tokens": 99_000_000, "completion_tokens": 128})
    data = {**STUDIES["game"], "models": [f"openai:m?{PRICE}"], "replicates": 4, "cap": 1}
    with OpenAIServer([most]) as server:
        spec = study("game", server, **data)
        enter(store, spec)
        await work_on(store, spec)
    for run in store.runs(study="game"):
        assert not any(charge.excess or charge.uncovered for charge in charges(store, run))
        assert 0 < store.run(run.id).spent <= 10_000
        # It stopped at a call that the bound could not pay while others were under way.
        assert run.status == "exhausted"
        assert (await replay(store, run)).is_same


@pytest.mark.parametrize(
    "model", ["openai:dear?price.input=5&price.output=30", "openai:cheap?price.input=0&price.output=1"]
)
def test_the_bound_of_a_dilemma_has_the_longest_reply_of_each_entrant(model: str) -> None:
    def bound(entrants: str) -> int:
        spec = study("dilemma", None, fixed={"game": "prisoners", "entrants": entrants, "max_output_tokens": 128})
        [condition] = conditions_of(spec)
        return Bound(spec).of(condition)

    usual, longer = (bound(f"openai:m,{model}{more}") for more in ("", "&max_output_tokens=65536"))
    tries = 4 * 2 * 3
    assert longer - usual >= tries * (65_536 - 128) * 3
    assert bound(f"openai:m,{model}&max_output_tokens=64") <= usual


def charges(store: Store, run: RunRecord) -> list[ChargeEvent]:
    return [event for event in store.events(run.id) if isinstance(event, ChargeEvent)]


def check_runs(store: Store, kind: str, bound: int) -> int:
    """Check that each run is within its bound and says how it ended; return how many stopped at it."""
    stopped = 0
    runs = list(store.runs(study=kind))
    faults = {run: faults for run, faults in audit(store, [run.id for run in runs]) if faults}
    assert set(faults) == {run.id for run in runs if any(charge.excess for charge in charges(store, run))}
    for run in runs:
        assert run.most == bound
        spent = sum(charge.amount for charge in charges(store, run))
        assert spent == store.run(run.id).spent <= bound
        if run.status == "exhausted":
            assert run.invalid is not None
            assert run.invalid.startswith(f"{STOPPED} of ${bound / 1e6:.4f}")
            stopped += 1
    return stopped


def check_bill(store: Store, server: OpenAIServer, faulty: Faulty) -> None:
    """Check that each request is a recorded call, was refused, or is charged as uncertain.

    Also charged are attempts that were given up before the server had read their requests.
    """
    usages = [run.usage for run in store.runs()]
    refused = sum(faulty.done[name] for name in REFUSED)
    recorded = sum(usage.llm_calls + usage.uncertain_attempts for usage in usages)
    late = [event for run in store.runs() for event in charges(store, run) if event.reason.startswith("no answer")]
    assert len(server.requests) <= recorded + refused <= len(server.requests) + len(late)


async def test_what_a_server_says_of_its_tokens_is_not_believed_beyond_what_there_can_be(store: Store) -> None:
    with OpenAIServer([Answer(text='{"contribution": 1}', usage=HUGE)]) as server:
        data = {**STUDIES["game"], "replicates": 1, "bound": 1, "cap": 1}
        spec = study("game", server, **data)
        enter(store, spec)
        await work_on(store, spec)
    [run] = store.runs()
    events = store.events(run.id)
    calls = [event for event in events if isinstance(event, LLMCallEvent)]
    assert {call.output_tokens for call in calls} == {128}
    assert all(call.estimated and call.input_tokens < 12_000 for call in calls)
    warnings = [event.text for event in events if isinstance(event, WarningEvent)]
    assert len(warnings) == 2 * len(calls)
    assert "the server reported 99,000,000 output tokens, of which there can't have been more than 128" in warnings[1]


async def test_a_text_beyond_its_limit_enters_no_prompt(store: Store) -> None:
    with OpenAIServer([Answer(text="no " * 5_000, usage=None), Answer(text='{"contribution": 1}')]) as server:
        spec = study("game", server, **{**STUDIES["game"], "replicates": 1, "bound": 1, "cap": 1})
        enter(store, spec)
        await work_on(store, spec)
    assert max(len(str(request.body["messages"])) for request in server.requests) < 5_000
    [run] = store.runs()
    [first, *_] = [event for event in store.events(run.id) if isinstance(event, LLMCallEvent) and event.notes]
    assert first.faults == ["cut"]
    assert "ignored the limit of 128 tokens" in first.notes[0]


async def test_a_call_that_is_cancelled_on_the_wire_is_charged_as_uncertain(store: Store) -> None:
    loop, asked = asyncio.get_running_loop(), asyncio.Event()

    def silent(request: Json, number: int) -> Answer:
        del request
        if number == 2:
            loop.call_soon_threadsafe(asked.set)
        return Answer(silent=True)

    with OpenAIServer(silent) as server:
        spec = study("game", server, **{**STUDIES["game"], "replicates": 1, "bound": 1, "cap": 1})
        enter(store, spec)
        working = asyncio.create_task(work_on(store, spec))
        await asked.wait()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    [run] = store.runs()
    charged = charges(store, run)
    assert [(charge.uncertain, charge.reason) for charge in charged] == [(True, "cancelled")] * 3
    assert study_counts(store, "game").spent == sum(charge.amount for charge in charged) > 0


def test_a_cap_that_was_overspent_is_a_fault(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    spec = study("game", None, **{**STUDIES["game"], "cap": 1})
    enter(store, spec)
    [run] = Claims(store, "w").next("game", 1, attempts=5)
    append(store, run, [(0, ChargeEvent(step="a", amount=1_020_000))], [])
    finish(store, replace(run, status="completed"), [], [])
    assert run_command(["study", "status", "--store", store.url]) == 0
    assert "fault: $0.0200 more than the cap were spent" in capsys.readouterr().out
    assert run_command(["store", "check", "--store", store.url]) == 1
    assert "study game: it has spent $1.0200, $0.0200 more than its cap" in capsys.readouterr().out
    assert _report(store, "game", stopped=False, as_json=False) == 1


def test_a_cap_is_overspent_by_what_was_spent_and_holds_back_by_what_may_be() -> None:
    counts = Counts({"running": 1, "planned": 1}, spent=5, committed=9, next_cost=2)
    assert [counts.overspent(cap) for cap in (None, 6, 5, 4)] == [0, 0, 0, 1]
    assert [counts.cannot_go_on(cap) for cap in (None, 11, 10)] == [False, False, True]
    assert not replace(counts, next_cost=None).cannot_go_on(10)
