"""Servers fail in many ways: what is worth another attempt gets one, and what is not ends with a clear error."""

from __future__ import annotations

import asyncio
import pickle
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx2
import pytest
from langchain_core.messages import HumanMessage

from labmates.models import openai_chat
from labmates.models.connection import Backoff
from labmates.models.errors import ContextOverflowError, EndpointError, ModelPausedError
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.models.reply import Reply
from tests.models.conftest import KEY, QUICK, Ask
from tests.support.openai_server import Answer, Json, OpenAIServer, fault

BOTH = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
HTML = "<!DOCTYPE html><html><head>\n<title>502 Bad Gateway</title></head><body><h1>nginx</h1></body></html>"

PASSING: dict[str, tuple[Answer, str]] = {
    "429": (fault(429, {"error": {"message": "Slow down."}}), "HTTP 429: Slow down."),
    "408": (fault(408), "HTTP 408: fault 408"),
    "409": (fault(409), "HTTP 409: fault 409"),
    "500": (fault(500), "HTTP 500: fault 500"),
    "503 without a body": (fault(503, ""), "HTTP 503: Error code: 503"),
    "502 with a page": (fault(502, HTML), "HTTP 502: 502 Bad Gateway"),
    "500 with a detail": (fault(500, {"detail": "out of memory"}), "HTTP 500: out of memory"),
    "500 with an error text": (fault(500, {"error": "model crashed"}), "HTTP 500: model crashed"),
    "500 of older servers": (fault(500, {"object": "error", "message": "oops", "code": 500}), "HTTP 500: oops"),
    "cut before the answer": (Answer(cut="before"), ""),
    "cut within the answer": (Answer(text="A long answer", cut="within"), "peer closed connection"),
    "cut within an answer of unknown length": (Answer(text="A long answer", cut="within", content_length=False), ""),
    "no JSON": (Answer(body='{"choices": [{'), "the answer is not JSON"),
    "JSON of another shape": (Answer(body=[1, 2]), "the answer is not a JSON object"),
    "no chat completion": (Answer(body={"text": "hello"}), "the answer has no choices"),
    "choices of a wrong type": (Answer(body={"choices": None}), "the answer has no choices"),
    "a page with status 200": (Answer(body=HTML), "the address answers with a page, not as a model's server: 502 Bad"),
    "no choice": (Answer(choices=False), "the answer has no choice"),
    "a choice without message": (Answer(body={"choices": [{}]}), "an empty answer without finish reason"),
    "an error in the choice": (
        Answer(body={"choices": [{"error": {"message": "upstream died", "code": 502}, "finish_reason": "error"}]}),
        "HTTP 502: upstream died",
    ),
    "an error of older servers with status 200": (Answer(body={"object": "error", "message": "oops"}), "oops"),
    "a detail with status 200": (Answer(body={"detail": "no worker"}), "no worker"),
    "an error with status 200": (Answer(body={"error": {"message": "worker died"}}), "worker died"),
}


@BOTH
@pytest.mark.parametrize("case", PASSING)
async def test_a_passing_failure_is_tried_again(ask: Ask, case: str, stream: bool) -> None:
    answer, reason = PASSING[case]
    with OpenAIServer([answer, answer, Answer(text="at last")]) as server:
        reply = await ask(server, stream=stream, max_retries=2)
    assert reply.text == "at last"
    assert reply.attempts == len(server.requests) == 3
    assert len(reply.errors) == 2
    assert reply.errors[0].startswith(reason)


@pytest.mark.parametrize("case", PASSING)
async def test_a_failure_that_stays_ends_with_an_endpoint_error(ask: Ask, case: str) -> None:
    answer, reason = PASSING[case]
    with OpenAIServer(answer) as server, pytest.raises(EndpointError) as caught:
        await ask(server, max_retries=1)
    error = caught.value
    assert len(server.requests) == error.attempts == len(error.errors) == 2
    assert error.status == (answer.status if answer.status != 200 else 502 if "HTTP 502" in reason else None)
    assert error.endpoint == server.base_url
    assert error.model == "openai:test-model"
    assert reason in str(error)
    assert "\n" not in str(error)
    assert "<" not in str(error)


@BOTH
async def test_a_server_that_never_answers_runs_into_the_time_limit(ask: Ask, stream: bool) -> None:
    with OpenAIServer([Answer(silent=True), Answer(text="awake")]) as server:
        reply = await ask(server, stream=stream, call_timeout=2)  # the second answer needs some of it
    assert reply.text == "awake"
    assert reply.errors == ("no answer within 2 s",)


async def test_a_stream_that_only_pings_runs_into_the_time_limit(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte arrives in time, but never the reply: the limit is one for the whole attempt."""
    monkeypatch.setattr(openai_chat, "patience", lambda _: httpx2.Timeout(None))  # a busy machine may connect late
    with OpenAIServer(Answer(pings=0.05)) as server, pytest.raises(EndpointError, match="no answer within") as caught:
        await ask(server, stream=True, call_timeout=0.3, max_retries=0)
    assert str(caught.value).endswith("no reply after 1 attempt; the last one: no answer within 0.3 s")


async def test_a_stream_that_ends_without_its_end_is_cut(ask: Ask) -> None:
    whole = Answer(text="A long answer in many pieces")
    cut = Answer(text=whole.text, cut="within", content_length=False)
    with OpenAIServer([cut, whole]) as server:
        reply = await ask(server, stream=True)
    assert reply.text == whole.text
    assert reply.errors == ("the connection was cut within the reply",)


async def test_a_stream_cut_after_its_last_piece_is_whole(ask: Ask) -> None:
    with OpenAIServer(Answer(text="All of it", cut="before_done", content_length=False)) as server:
        reply = await ask(server, stream=True)
    assert (reply.text, reply.finish, reply.attempts) == ("All of it", "stop", 1)


BEGUN = 'data: {"choices": [{"delta": {"content": "He"}}]}\n\n'
EVENTS: dict[str, tuple[str, str]] = {
    "an error": ('data: {"error": {"message": "GPU lost"}}\n\n', "GPU lost"),
    "an error and the end": ('data: {"error": {"message": "GPU lost"}}\n\ndata: [DONE]\n\n', "GPU lost"),
    "an event called error": ('event: error\ndata: {"message": "GPU lost"}\n\n', "GPU lost"),
    "an error in the choice": (
        'data: {"choices": [{"delta": {}, "error": {"message": "GPU lost"}, "finish_reason": "error"}]}\n\n',
        "GPU lost",
    ),
    "a finish reason": (
        'data: {"choices": [{"delta": {}, "finish_reason": "abort"}]}\n\ndata: [DONE]\n\n',
        "the server stopped: finish reason 'abort'",
    ),
}


@pytest.mark.parametrize("begun", ["", BEGUN], ids=["at the start", "after text"])
@pytest.mark.parametrize("case", EVENTS)
async def test_an_error_within_a_stream_is_tried_again(ask: Ask, case: str, begun: str) -> None:
    body, reason = EVENTS[case]
    failing = Answer(body=begun + body, headers={"content-type": "text/event-stream"})
    with OpenAIServer([failing, Answer(text="Hello")]) as server:
        reply = await ask(server, stream=True)
    assert reply.text == "Hello"
    assert reply.errors == (reason,)


async def test_a_server_that_dies_half_way_is_given_up_after_all_attempts() -> None:
    with OpenAIServer([Answer(), Answer(silent=True)]) as server:
        options = ModelOptions(base_url=server.base_url, max_retries=1)
        async with ModelHub(options, backoff=QUICK) as hub:
            messages = [HumanMessage("Hi")]
            await hub.call("openai:m", messages, seed=1, max_output_tokens=5)
            calls = [hub.call("openai:m", messages, seed=seed, max_output_tokens=5) for seed in range(4)]
            waiting = asyncio.gather(*calls, return_exceptions=True)
            while len(server.requests) < 5:  # noqa: ASYNC110 (the server is another thread)
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.die)
            errors = await waiting
    assert all(isinstance(error, EndpointError) and error.attempts == 2 for error in errors)
    assert "onnection" in str(errors[0])


REFUSED: dict[str, tuple[int, Json, str]] = {
    "a wrong key": (401, {"error": {"message": "bad key"}}, "the server refused the key in OPENAI_API_KEY (bad key)"),
    "no right to it": (403, {"error": {"message": "not yours"}}, "the key in OPENAI_API_KEY may not use this model"),
    "an unknown model": (404, {"detail": "no such model"}, "the server doesn't know the model 'test-model'"),
    "a wrong request": (400, {"error": {"message": "bad tools"}}, "refused the call (HTTP 400: bad tools)"),
    "invalid fields": (
        422,
        {"detail": [{"loc": ["body", "messages"], "msg": "Field required", "type": "missing"}]},
        "body.messages: Field required",
    ),
}


@BOTH
@pytest.mark.parametrize("case", REFUSED)
async def test_what_no_retry_cures_is_not_tried_again(ask: Ask, case: str, stream: bool) -> None:
    status, body, text = REFUSED[case]
    with OpenAIServer(fault(status, body)) as server, pytest.raises(EndpointError) as caught:
        await ask(server, stream=stream, max_retries=5)
    assert len(server.requests) == caught.value.attempts == 1
    assert caught.value.status == status
    assert text in str(caught.value)


async def test_a_refusal_for_want_of_a_key_names_the_variable(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with OpenAIServer(fault(401)) as server, pytest.raises(EndpointError, match="wants a key, and MY_KEY is not set"):
        await ask(server, api_key_env="MY_KEY")


async def test_a_status_in_a_body_with_status_200_counts(ask: Ask) -> None:
    hidden = Answer(body={"error": {"message": "no such model", "code": 404}})
    with OpenAIServer(hidden) as server, pytest.raises(EndpointError, match="doesn't know the model"):
        await ask(server, max_retries=3)
    assert len(server.requests) == 1


OVERFLOWS: dict[str, tuple[int, Json, int | None, int | None]] = {
    "llama.cpp": (
        400,
        {
            "error": {
                "code": 400,
                "message": "request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 5000,
                "n_ctx": 4096,
            }
        },
        4096,
        5000,
    ),
    "vLLM": (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
                "(4500 in the messages, 500 in the completion). Please reduce the length of the messages.",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        },
        4096,
        5000,
    ),
    "vLLM, limit on the reply": (
        400,
        {
            "object": "error",
            "message": "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context "
            "length is 4096 tokens and your request has 500 input tokens (5000 > 4096 - 500).",
        },
        4096,
        None,
    ),
    "OpenAI": (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 128000 tokens. However, your messages resulted in "
                "130001 tokens. Please reduce the length of the messages.",
                "type": "invalid_request_error",
                "param": "messages",
                "code": "context_length_exceeded",
            }
        },
        128000,
        130001,
    ),
    "Anthropic behind a proxy": (
        413,
        {"error": {"message": "prompt is too long: 210,000 tokens > 200,000 maximum"}},
        200000,
        210000,
    ),
    "Groq, beyond the tokens a minute": (
        413,
        {
            "error": {
                "message": "Request too large on tokens per minute (TPM): Limit 6000, Requested 6294, please reduce",
                "code": "rate_limit_exceeded",
            }
        },
        6000,
        6294,
    ),
    "a code alone": (400, {"error": {"message": "no", "code": "context_length_exceeded"}}, None, None),
    "as a server error": (500, {"error": "input exceeds the context window of this model"}, None, None),
}


@pytest.mark.parametrize("case", OVERFLOWS)
async def test_a_prompt_that_is_too_long_is_told_apart(ask: Ask, case: str) -> None:
    status, body, limit, requested = OVERFLOWS[case]
    with OpenAIServer(fault(status, body)) as server, pytest.raises(ContextOverflowError) as caught:
        await ask(server, max_retries=3)
    assert len(server.requests) == 1
    assert (caught.value.limit, caught.value.requested) == (limit, requested)
    assert "too long" in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.limit, again.attempts) == (str(caught.value), limit, 1)


async def test_retry_after_in_seconds_is_waited_for(ask: Ask) -> None:
    with OpenAIServer([fault(429, retry_after="0.2"), Answer()]) as server:
        reply = await ask(server)
    assert reply.seconds >= 0.2


async def test_retry_after_as_a_date_is_waited_for(ask: Ask) -> None:
    moment = datetime.now(UTC) + timedelta(seconds=2)  # HTTP dates have whole seconds.
    with OpenAIServer([fault(503, retry_after=format_datetime(moment, usegmt=True)), Answer()]) as server:
        await ask(server)
    assert datetime.now(UTC) >= moment.replace(microsecond=0)


QUOTA = {"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}
DAILY = {"error": {"message": "Rate limit reached on tokens per day (TPD): Limit 500, Used 500, Requested 5"}}
LATER: dict[str, tuple[Answer, str]] = {
    "Retry-After of hours": (
        fault(429, retry_after="18750"),
        r"until 2\d{3}-\d\d-\d\d \d\d:\d\d UTC \(5 h 13 min after",
    ),
    "a wait in the text": (fault(429, {"error": {"message": "Please try again in 5h12m."}}), r"UTC \(5 h 12 min after"),
    "Google's delay": (
        fault(429, {"error": {"message": "Quota.", "details": [{"retryDelay": "36000s"}]}}),
        r"UTC \(10 h 0 min after the refusal\): HTTP 429: Quota\.",
    ),
    "a quota a day": (fault(429, DAILY), "takes no calls until its quota or credit is renewed: HTTP 429: Rate limit"),
    "no credit": (fault(429, QUOTA), "until its quota or credit is renewed: HTTP 429: You exceeded your current quota"),
    "no money": (fault(402), "takes no calls until its quota or credit is renewed"),
    "no credit, with status 200": (Answer(body=QUOTA), "takes no calls until its quota or credit is renewed"),
}


@pytest.mark.parametrize("case", LATER)
async def test_a_wait_of_hours_stops_all_calls_of_the_model_and_says_when_to_resume(case: str) -> None:
    """A call in its backoff is not sent again either; another model of the same server is."""
    answer, text = LATER[case]

    async def behave(request: Json, number: int) -> Answer:
        if request["model"] == "n":
            return Answer(text="fine")
        if number == 0:
            return fault(503, retry_after="500")
        return answer

    with OpenAIServer(behave) as server:
        async with ModelHub(ModelOptions(base_url=server.base_url)) as hub:

            async def ask(model: str, seed: int) -> Reply:
                return await hub.call(model, [HumanMessage("Hi")], seed=seed, max_output_tokens=5)

            first = asyncio.create_task(ask("openai:m", 1))
            while not server.requests:  # noqa: ASYNC110 (the server is another thread)
                await asyncio.sleep(0.01)
            for seed in (2, 3):
                with pytest.raises(ModelPausedError, match=text):
                    await ask("openai:m", seed)
            with pytest.raises(ModelPausedError, match=text):
                await first
            assert len(server.requests) == 2
            assert (await ask("openai:n", 4)).text == "fine"


async def test_a_refusal_for_want_of_credit_with_a_short_wait_is_tried_again(ask: Ask) -> None:
    with OpenAIServer([fault(402, retry_after="0.01"), Answer(text="fine")]) as server:
        assert (await ask(server)).text == "fine"


async def test_a_page_of_another_service_is_named_and_not_tried_again(ask: Ask) -> None:
    page = Answer(body="<html><head><title>Sign in to Campus WLAN</title></head><body>…</body></html>")
    with OpenAIServer(page) as server, pytest.raises(EndpointError, match="Sign in to Campus WLAN") as caught:
        await ask(server, max_retries=5)
    assert len(server.requests) == caught.value.attempts == 1


FILTERED: dict[str, Answer] = {
    "Azure": fault(
        400,
        {
            "error": {
                "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management "
                "policy.",
                "code": "content_filter",
                "status": 400,
                "innererror": {"code": "ResponsibleAIPolicyViolation"},
            }
        },
    ),
    "OpenRouter": fault(403, {"error": {"message": "no", "code": 403, "metadata": {"flagged_input": "Hi"}}}),
    "with status 200": Answer(body={"error": {"message": "no", "type": "content_filter"}}),
    "of the reply": Answer(text=None, finish="content_filter"),
}


@pytest.mark.parametrize("case", FILTERED)
async def test_a_filter_brings_a_faulty_reply_and_no_error(ask: Ask, case: str) -> None:
    with OpenAIServer(FILTERED[case]) as server:
        reply = await ask(server)
    assert len(server.requests) == 1
    assert (reply.text, reply.faults, reply.finish) == ("", ("filtered",), "content_filter")
    assert len(reply.notes) == (case != "of the reply")


async def test_no_slot_is_held_while_waiting_for_retry_after() -> None:
    """With one slot, a call that waits would block all others if it kept the slot."""

    def behave(request: Json, number: int) -> Answer:
        busy = request["messages"][0]["content"] == "first" and number == 0
        return fault(429, retry_after="30") if busy else Answer(text=request["messages"][0]["content"])

    with OpenAIServer(behave) as server:
        options = ModelOptions(base_url=server.base_url, max_concurrent_calls=1)
        async with ModelHub(options) as hub:
            first = asyncio.create_task(hub.call("openai:m", [HumanMessage("first")], seed=1, max_output_tokens=5))
            while not server.requests:  # noqa: ASYNC110 (the server is another thread)
                await asyncio.sleep(0.01)
            second = await hub.call("openai:m", [HumanMessage("second")], seed=1, max_output_tokens=5)
            assert second.text == "second"
            assert not first.done()
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first


ECHOES: dict[str, Answer] = {
    "whole": fault(401, {"error": {"message": f"Incorrect API key provided: {KEY}."}}),
    "masked in part": fault(401, {"error": {"message": f"Incorrect API key provided: {KEY[:11]}*******{KEY[-4:]}."}}),
    "a piece": fault(401, {"error": f"unknown key …{KEY[-12:]}"}),
    "in a header's form": fault(403, {"detail": f"Bearer {KEY} has no access"}),
    "in a page": fault(500, f"<html><title>dump</title>{KEY}</html>"),
    "in plain text": fault(500, f"trace: authorization={KEY.upper()}"),
    "in the code": fault(400, {"error": {"message": "no", "code": KEY, "type": KEY}}),
    "with status 200": Answer(body={"error": {"message": f"key {KEY} refused", "code": 401}}),
    "past the cut": fault(400, {"error": {"message": "x" * 290 + KEY}}),
}


@BOTH
@pytest.mark.parametrize("case", ECHOES)
async def test_no_piece_of_the_key_is_in_an_error_or_log(
    ask: Ask, case: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    with OpenAIServer(ECHOES[case]) as server, pytest.raises(EndpointError) as caught:
        await ask(server, stream=stream, max_retries=1)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    shown = f"{caught.value!r} {caught.value.errors} {caught.value.__cause__!r} {caplog.text}".lower()
    for start in range(len(KEY) - 5):
        assert KEY[start : start + 6].lower() not in shown


async def test_no_key_is_in_what_a_tracer_sees(ask: Ask) -> None:
    """A tracer writes down the failed attempt's error with its causes, and what the model was built with."""
    from langchain_core.tracers.base import BaseTracer
    from langchain_core.tracers.schemas import Run

    seen: list[Run] = []

    class Tracer(BaseTracer):
        def _persist_run(self, run: Run) -> None:
            seen.append(run)

    with OpenAIServer(ECHOES["whole"]) as server, pytest.raises(EndpointError):
        await ask(server, config={"callbacks": [Tracer()]})
    assert "Incorrect API key provided: [key]" in str(seen[0].error)
    assert KEY not in repr([seen[0].error, seen[0].inputs, seen[0].extra, seen[0].serialized])


async def test_the_waits_repeat_for_the_same_seed_and_differ_for_another() -> None:
    backoff = Backoff()
    delays: list[Any] = [[backoff.delay(seed, n) for n in range(1, 9)] for seed in (1, 1, 2)]
    assert delays[0] == delays[1] != delays[2]
    assert all(0.25 * 2**n <= delay <= 0.5 * 2**n for n, delay in enumerate(delays[0][:6]))
    assert max(delays[0]) <= backoff.longest
    assert backoff.delay(1, 3, retry_after=7.0) >= 7.0
    assert backoff.delay(1, 3, retry_after=9e9) <= 1.1 * backoff.longest_asked
