"""The hub: a client per event loop, a limit on calls in flight, servers' dialects, other providers, tracing."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import repeat
from typing import Any, ClassVar

import pytest
from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run

from labmates.budgets.tokens import Usage
from labmates.errors import UsageError
from labmates.models.errors import EndpointError
from labmates.models.hub import ModelHub
from labmates.models.names import name_given
from labmates.models.options import ModelOptions
from labmates.models.reply import LISTENER, Piece, Reply
from labmates.registry import Registry
from tests.models.conftest import QUICK, Ask
from tests.support.openai_server import Answer, Call, Json, OpenAIServer, fault

HI = [HumanMessage("Hi")]


async def test_the_limit_on_calls_in_flight_holds_for_all_models_of_an_endpoint() -> None:
    with OpenAIServer(Answer(delay=0.03)) as server:
        options = ModelOptions(base_url=server.base_url, max_concurrent_calls=3)
        async with ModelHub(options) as hub:
            calls = [hub.call(f"openai:model-{n % 2}", HI, seed=n, max_output_tokens=5) for n in range(12)]
            replies = await asyncio.gather(*calls)
    assert [reply.text for reply in replies] == ["ok"] * 12
    assert server.peak == 3


async def test_calls_run_together_up_to_the_limit() -> None:
    """Far more than the hundred connections of a client's usual pool."""
    all_there = asyncio.Event()

    async def behave(_request: Json, before: int) -> Answer:
        if before == 119:
            all_there.set()
        await asyncio.wait_for(all_there.wait(), 100)  # nobody is answered before all have asked
        return Answer()

    with OpenAIServer(behave) as server:
        options = ModelOptions(base_url=server.base_url, max_concurrent_calls=200, max_retries=0, call_timeout=200)
        async with ModelHub(options) as hub:
            await asyncio.gather(*[hub.call("openai:m", HI, seed=n, max_output_tokens=5) for n in range(120)])
    assert server.peak == 120


def test_two_event_loops_in_one_process_both_work() -> None:
    async def once(server: OpenAIServer) -> str:
        async with ModelHub(ModelOptions(base_url=server.base_url, max_retries=0)) as hub:
            first = await hub.call("openai:m", HI, seed=1, max_output_tokens=5)
            second = await hub.call("openai:m", HI, seed=1, max_output_tokens=5)
            return first.text + second.text

    with OpenAIServer(Answer(text="fine")) as server:
        assert [asyncio.run(once(server)) for _ in range(2)] == ["finefine"] * 2


async def test_connections_are_used_again_and_closed_with_the_hub() -> None:
    with OpenAIServer() as server:
        async with ModelHub(ModelOptions(base_url=server.base_url)) as hub:
            for _ in range(3):
                await hub.call("openai:m", HI, seed=1, max_output_tokens=5)
            assert server.connections == 1
        with pytest.raises(RuntimeError, match="async with"):
            await hub.call("openai:m", HI, seed=1, max_output_tokens=5)
        async with hub:
            assert (await hub.call("openai:m", HI, seed=1, max_output_tokens=5)).text == "ok"
        while server.connections:  # noqa: ASYNC110 (the server, another thread, takes a moment to see it)
            await asyncio.sleep(0.01)


def picky(**unsupported: str) -> Any:
    """Return the behaviour of a server that refuses parameters, each with its own words."""

    def behave(request: Json, number: int) -> Answer:
        for name, message in unsupported.items():
            if name in request:
                return fault(400, {"error": {"message": message, "param": None}})
        return Answer(text="fine")

    return behave


@pytest.mark.parametrize("stream", [False, True])
async def test_parameters_that_a_server_refuses_are_left_out_and_remembered(stream: bool) -> None:
    behave = picky(
        seed="Unknown field 'seed'",
        temperature="Unsupported value: 'temperature' does not support 0.0 with this model.",
        max_tokens="Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
        stream_options="body.stream_options: Extra inputs are not permitted",
    )
    refused = 4 if stream else 3
    with OpenAIServer(behave) as server:
        options = ModelOptions(base_url=server.base_url, max_retries=0, stream=stream)
        async with ModelHub(options) as hub:
            first = await hub.call("openai:m", HI, seed=1, max_output_tokens=5, temperature=0.0, insist=False)
            second = await hub.call("openai:m", HI, seed=1, max_output_tokens=5, temperature=0.0, insist=False)
    assert first.text == second.text == "fine"
    assert (first.attempts, second.attempts) == (refused + 1, 1)
    assert len(first.errors) == refused
    sent = server.requests[-1].body
    assert sent["max_completion_tokens"] == 5
    assert not {"seed", "temperature", "max_tokens", "stream_options"} & set(sent)


async def test_refusals_of_validating_servers_are_understood(ask: Ask) -> None:
    body = {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}
    with OpenAIServer([fault(422, body), Answer(text="fine")]) as server:
        reply = await ask(server)
    assert (reply.text, reply.attempts) == ("fine", 2)
    assert "seed" not in server.requests[1].body


async def test_calls_at_once_learn_from_the_same_refusals() -> None:
    behave = picky(seed="Unrecognized request argument: seed", max_tokens="max_tokens is no longer supported")
    with OpenAIServer(behave) as server:
        async with ModelHub(ModelOptions(base_url=server.base_url, max_retries=0)) as hub:
            calls = [hub.call("openai:m", HI, seed=n, max_output_tokens=5) for n in range(8)]
            replies = await asyncio.gather(*calls)
    assert all(reply.text == "fine" and reply.attempts <= 3 for reply in replies)


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "max_tokens is too large: 90000", "param": "max_tokens", "code": "invalid_value"}},
        {"error": {"message": "unknown tool 'seeds'", "param": "tools"}},
        {"error": {"message": "unsupported content type"}},
    ],
    ids=str,
)
async def test_other_refusals_are_not_taken_for_unsupported_parameters(ask: Ask, body: Json) -> None:
    with OpenAIServer(fault(400, body)) as server, pytest.raises(EndpointError, match="refused the call"):
        await ask(server, max_retries=3)
    assert len(server.requests) == 1


async def test_a_server_that_refuses_both_names_of_the_limit_is_given_up(ask: Ask) -> None:
    behave = picky(max_tokens="unknown: max_tokens", max_completion_tokens="unknown: max_completion_tokens")
    with OpenAIServer(behave) as server, pytest.raises(EndpointError, match="max_completion_tokens"):
        await ask(server)
    assert len(server.requests) == 2


class Echo(BaseChatModel):
    """Tells what it was given."""

    @property
    def _llm_type(self) -> str:
        return "echo"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        told = f"{messages[-1].text} {sorted(kwargs.items())}"
        return ChatResult(generations=[ChatGeneration(message=AIMessage(told))])


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> str:
    """Registers the scripted model `Echo` and returns its name."""
    baselines: Registry[Any] = Registry("scripted baseline", "labmates.models")
    baselines.register("echo", Echo)
    monkeypatch.setattr("labmates.models.scripted.BASELINES", baselines)
    return "scripted:echo"


async def test_a_scripted_model_gets_seed_limit_and_tools(echo: str) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    async with ModelHub(ModelOptions()) as hub:
        plain = await hub.call(echo, HI, seed=3, max_output_tokens=90)
        tooled = await hub.call(echo, HI, seed=3, max_output_tokens=90, tools=[tool], temperature=0.5)
    assert plain.text == "Hi [('max_tokens', 90), ('seed', 3)]"
    assert tooled.text == f"Hi [('max_tokens', 90), ('seed', 3), ('tools', [{tool!r}])]"
    assert plain.usage.estimated
    assert plain.usage.input_tokens > 0
    assert plain.attempts == 1


class Meeting(Echo):
    """Replies only while two calls are under way."""

    both: ClassVar[asyncio.Barrier]

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        await asyncio.wait_for(self.both.wait(), 60)
        return await super()._agenerate(*args, **kwargs)


async def test_calls_of_scripted_models_wait_for_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    Meeting.both = asyncio.Barrier(2)
    baselines: Registry[Any] = Registry("scripted baseline", "labmates.models")
    baselines.register("meeting", Meeting)
    monkeypatch.setattr("labmates.models.scripted.BASELINES", baselines)
    async with ModelHub(ModelOptions(max_concurrent_calls=1)) as hub:
        calls = [hub.call("scripted:meeting", HI, seed=n, max_output_tokens=5) for n in range(2)]
        assert len(await asyncio.gather(*calls)) == 2


async def test_an_unknown_scripted_model_is_refused_with_the_known_ones(echo: str) -> None:
    async with ModelHub(ModelOptions()) as hub:
        with pytest.raises(UsageError, match="unknown scripted baseline 'ecko'"):
            await hub.call("scripted:ecko", HI, seed=1, max_output_tokens=5)


class Tracer(BaseTracer):
    """Keeps the finished runs."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.runs.append(run)


async def test_each_attempt_is_one_named_run_in_the_trace(ask: Ask) -> None:
    tracer = Tracer()
    config = {"run_name": "plan", "tags": ["data"], "metadata": {"agent": "lead"}, "callbacks": [tracer]}
    with OpenAIServer([fault(500), Answer(text="fine")]) as server:
        await ask(server, config=config)
    failed, done = tracer.runs
    assert failed.name == done.name == "plan"
    assert "HTTP 500" in str(failed.error)
    assert done.error is None
    assert done.tags == ["data"]
    assert [run.extra["metadata"]["attempt"] for run in tracer.runs if run.extra] == [1, 2]
    assert done.extra is not None
    assert done.extra["metadata"]["agent"] == "lead"
    assert done.outputs is not None
    message = done.outputs["generations"][0][0]["message"]["kwargs"]
    assert message["content"] == "fine"
    assert message["usage_metadata"]["output_tokens"] > 0
    assert config["metadata"] == {"agent": "lead"}


async def test_callbacks_around_a_call_follow_it_and_do_not_change_the_reply(ask: Ask, echo: str) -> None:
    from langchain_core.callbacks import get_usage_metadata_callback

    answer = Answer(text="Hello", calls=(Call("run_code", {"code": "print(1)"}),))
    with OpenAIServer(lambda request, n: answer) as server:
        plain = await ask(server)
        with get_usage_metadata_callback() as usage:
            followed = await ask(server)
    assert replace(followed, seconds=plain.seconds) == plain
    assert [tokens["output_tokens"] for tokens in usage.usage_metadata.values()] == [plain.usage.output_tokens]
    tracer = Tracer()
    async with ModelHub(ModelOptions()) as hub:
        await hub.call(echo, HI, seed=1, max_output_tokens=50)
        await hub.call(echo, HI, seed=1, max_output_tokens=50, config={"callbacks": [tracer]})
    assert [run.run_type for run in tracer.runs] == ["llm"]


async def test_a_streaming_consumer_around_the_call_does_not_change_the_reply() -> None:
    """LangGraph's ``stream_mode="messages"`` makes LangChain models stream unasked, past our reader."""
    from langchain_core.runnables import RunnableLambda

    with OpenAIServer(Answer(text="<think>hm</think>fine", finish="length")) as server:
        async with ModelHub(ModelOptions(base_url=server.base_url)) as hub:

            async def node(question: str) -> str:
                reply = await hub.call("openai:m", [HumanMessage(question)], seed=1, max_output_tokens=5)
                return f"{reply.text} {reply.faults}"

            events = [event async for event in RunnableLambda(node).astream_events("Hi", version="v2")]
    assert events[-1]["data"]["output"] == "fine ('cut',)"
    assert server.requests[0].body["stream"] is False


async def twice(hub: ModelHub, model: str) -> tuple[Reply, Reply, list[Piece | None]]:
    """The replies to the same call, of which the second one is listened to."""
    heard: list[Piece | None] = []
    whole = await hub.call(model, [HumanMessage("Hi")], seed=1, max_output_tokens=50)
    token = LISTENER.set(heard.append)
    watched = await hub.call(model, [HumanMessage("Hi")], seed=1, max_output_tokens=50)
    LISTENER.reset(token)
    return whole, replace(watched, seconds=whole.seconds), heard


@pytest.mark.parametrize("model", ["openai:m", "azure_openai:m"])
async def test_a_watched_reply_is_streamed_and_stays_the_same(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key-0123456789")
    answer = Answer(text="Hello there", reasoning="hm", calls=(Call("run_code", {"code": "print(1)"}),))
    with OpenAIServer(lambda request, n: answer) as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.base_url.removesuffix("/v1"))
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        async with ModelHub(ModelOptions()) as hub:
            whole, watched, heard = await twice(hub, model)
    assert [bool(request.body.get("stream")) for request in server.requests] == [False, True]
    assert watched == whole
    assert heard[0] is None
    text = "".join(map(str, heard[1:]))
    assert text.startswith("hmHello there\nrun_code: ")
    assert json.loads(text.partition("run_code: ")[2]) == {"code": "print(1)"}


async def test_a_chat_model_of_a_program_streams_a_watched_reply_unless_it_refuses() -> None:
    for refuses in (False, True):
        chat = GenericFakeChatModel(messages=iter(repeat("Hello you there")), disable_streaming=refuses)
        async with ModelHub(ModelOptions()) as hub:
            whole, watched, heard = await twice(hub, name_given(chat))
        assert watched == whole
        pieces = [] if refuses else ["Hello", " ", "you", " ", "there"]
        assert [str(piece) for piece in heard if piece is not None] == pieces


async def test_another_provider_goes_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key-0123456789")
    answers = [
        fault(503),
        fault(400, {"error": {"message": "seed is not supported"}}),
        Answer(text="<think>hm</think>Hi"),
    ]
    for _ in range(2):  # In two event loops, this one and that of a thread.
        with OpenAIServer(answers) as server:
            monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.base_url.removesuffix("/v1"))

            async def once() -> Any:
                async with ModelHub(ModelOptions(), backoff=QUICK) as hub:
                    return await hub.call("azure_openai:gpt", HI, seed=4, max_output_tokens=6)

            reply = await asyncio.to_thread(asyncio.run, once())
        assert (reply.text, reply.reasoning, reply.attempts) == ("Hi", "hm", 3)
        assert isinstance(reply.usage, Usage)
        assert server.requests[0].path.startswith("/openai/v1/chat/completions")
        assert server.requests[0].headers["authorization"] == "Bearer azure-key-0123456789"
        assert server.requests[0].body["seed"] == 4
        assert "seed" not in server.requests[2].body


async def test_a_provider_without_its_address_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "")
    async with ModelHub(ModelOptions()) as hub:
        with pytest.raises(UsageError, match=r"'azure_openai:gpt' needs an address: set .* AZURE_OPENAI_ENDPOINT"):
            await hub.call("azure_openai:gpt", HI, seed=1, max_output_tokens=5)


async def test_the_hosted_service_gets_the_newer_name_of_the_limit() -> None:
    async with ModelHub(ModelOptions()) as hub:
        hub._connect("openai:gpt-5.4-mini")
        connection = hub._connections["openai:gpt-5.4-mini"]
    assert connection.endpoint.address == "https://api.openai.com/v1"
    assert connection.dialect.limit == "max_completion_tokens"


async def test_a_mistake_in_the_caller_is_not_hidden_as_a_failure_of_the_server(ask: Ask) -> None:
    with OpenAIServer() as server, pytest.raises(TypeError):
        await ask(server, tools=[{"type": "function", "function": object()}])
    assert server.requests == []
