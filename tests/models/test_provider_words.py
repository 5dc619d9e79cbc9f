"""Every documented word of the providers means what the table says, in the answers of a real server."""

from __future__ import annotations

import asyncio
import csv
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from pydantic import SecretStr

from labmates.budgets.budget import LostAttempt, free_meter
from labmates.models.catalog import Catalog
from labmates.models.errors import ContextOverflowError, EndpointError, ModelPausedError
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.models.provider_words import words
from labmates.models.reply import listening
from tests.models.conftest import QUICK
from tests.support.anthropic_server import AnthropicServer
from tests.support.cloud_server import CloudServer
from tests.support.openai_server import Answer, Json, OpenAIServer, fault

TABLE = list(
    csv.DictReader(files("labmates.models").joinpath("provider_words.csv").read_text(encoding="utf-8").splitlines())
)
USAGE = {"inputTokens": 9, "outputTokens": 1, "totalTokens": 10, "promptTokenCount": 9, "candidatesTokenCount": 1}


def of(kind: str, provider: str = "") -> dict[str, str]:
    """The meanings of the words of a kind, of one provider or of all."""
    rows = (row for row in TABLE if row["kind"] == kind and provider in ("", *row["providers"].split("; ")))
    return {row["word"]: row["meaning"] for row in rows}


def later(known: Mapping[str, str]) -> list[str]:
    """The words that stop all calls of a model."""
    return [word for word, meaning in known.items() if meaning == "later"]


@dataclass(frozen=True)
class Came:
    """What came of a call: the faults of its reply or its error, and its attempts."""

    what: Any
    attempts: int


async def outcomes(
    server: OpenAIServer, answers: Mapping[str, Answer], name: str = "openai:m", apart: Collection[str] = ()
) -> dict[str, Came]:
    """What comes of a call that is answered thus at first, and well afterwards, by key.

    Calls in `apart` have models of their own: each stops all calls of its model.
    """
    asked = dict.fromkeys(answers, 0)
    numbered = dict(enumerate(answers))

    def behave(request: Json, number: int) -> Answer:
        # The prompt is the key's number, wherever a protocol has it.
        text = str(request.get("messages") or request.get("contents"))
        key = numbered[int(re.findall(r"Word (\d+)", text)[-1])]
        asked[key] += 1
        return answers[key] if asked[key] == 1 else Answer(text="well", usage=USAGE)

    server._behaviour = behave
    with server:
        catalog = Catalog(named={})
        plain = name.startswith("openai:")
        models = {
            key: name.replace(":m", f":w{number}" if key in apart else ":m").format(url=server.base_url)
            for number, key in numbered.items()
        }
        named = models if plain else {key: catalog.name_of(model) for key, model in models.items()}
        options = ModelOptions(base_url=server.base_url) if plain else catalog.options()
        async with ModelHub(options, backoff=QUICK) as hub:

            async def ask(number: int, key: str) -> Came:
                prompt = [HumanMessage(f"Word {number}")]
                try:
                    reply = await hub.call(named[key], prompt, seed=1, max_output_tokens=50, insist=False)
                except EndpointError:
                    return Came("refused", asked[key])
                except ContextOverflowError:
                    return Came("overflow", asked[key])
                except ModelPausedError:
                    return Came("later", asked[key])
                return Came((reply.text, reply.finish, reply.faults), reply.attempts)

            came = await asyncio.gather(*(ask(number, key) for number, key in numbered.items()))
    return dict(zip(answers, came, strict=True))


ENDED: dict[str, Came] = {
    "stop": Came(("some", "stop", ()), 1),
    "length": Came(("some", "length", ("cut",)), 1),
    "tool_calls": Came(("some", "tool_calls", ()), 1),
    "content_filter": Came(("some", "content_filter", ("filtered",)), 1),
    "bad_tool_call": Came(("some", "tool_calls", ("bad_tool_call",)), 1),
    "server": Came(("well", "stop", ()), 2),
}
WITHOUT_TEXT: dict[str, Came] = {
    "content_filter": Came(("", "content_filter", ("filtered",)), 1),
    "bad_tool_call": Came(("", "tool_calls", ("bad_tool_call",)), 1),
    "server": ENDED["server"],
}
FAILED: dict[str, Came] = {
    "retry": Came(("well", "stop", ()), 2),
    "later": Came("later", 1),
    "refused": Came("refused", 1),
    "overflow": Came("overflow", 1),
    "filtered": Came(("", "content_filter", ("filtered",)), 1),
}


async def test_every_finish_reason_means_what_the_table_says() -> None:
    answers = {word: Answer(text="some", finish=word) for word in of("finish")}
    assert await outcomes(OpenAIServer(), answers) == {word: ENDED[meaning] for word, meaning in of("finish").items()}


async def test_without_text_a_filter_or_an_invalid_call_is_the_model_s_and_a_stop_of_the_server_is_not() -> None:
    known = {word: meaning for word, meaning in of("finish").items() if meaning in WITHOUT_TEXT}
    answers = {word: Answer(text=None, finish=word.upper(), usage=None) for word in known}
    assert await outcomes(OpenAIServer(), answers) == {word: WITHOUT_TEXT[meaning] for word, meaning in known.items()}


CLASSES: dict[str, tuple[type[OpenAIServer], str, str, str]] = {
    "Anthropic": (AnthropicServer, "anthropic:m?base_url={url}&api_key_env=LAB_KEY", "langchain_anthropic", ""),
    "Google": (CloudServer, "google_genai:m?base_url={url}&api_key_env=LAB_KEY", "langchain_google_genai", "upper"),
    "Bedrock": (CloudServer, "bedrock_converse:m?base_url={url}", "langchain_aws", ""),
}


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LAB_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "key-of-the-lab")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")


@pytest.mark.parametrize("provider", CLASSES)
async def test_finish_reasons_mean_the_same_through_langchain_s_classes(provider: str) -> None:
    server, name, package, case = CLASSES[provider]
    pytest.importorskip(package)
    known = of("finish", provider)
    answers = {
        word: Answer(text="some", finish=word.upper() if case == "upper" else word, usage=USAGE) for word in known
    }
    assert await outcomes(server(), answers, name) == {word: ENDED[meaning] for word, meaning in known.items()}


async def test_every_code_of_an_error_means_what_the_table_says() -> None:
    """With the status of its meaning, and within an answer with status 200."""
    statuses = {"retry": 429, "later": 429, "refused": 401, "overflow": 400, "filtered": 400}
    known = of("error")
    answers = {
        f"{place} {word}": Answer(
            status=200 if place == "200" else statuses[meaning],
            body={"error": {"message": "no", "type": "x", "code": word} if place == "code" else {"type": word}},
        )
        for word, meaning in known.items()
        for place in ("code", "type", "200")
    }
    expected = {key: FAILED[known[key.partition(" ")[2]]] for key in answers}
    apart = [key for key, came in expected.items() if came.what == "later"]
    assert await outcomes(OpenAIServer(), answers, apart=apart) == expected


async def test_every_status_means_what_the_table_says() -> None:
    known = of("status") | {"401": "refused", "403": "refused", "404": "refused", "418": "refused", "599": "retry"}
    answers = {status: fault(int(status)) for status in known}
    found = await outcomes(OpenAIServer(), answers, apart=["402"])
    assert found == {status: FAILED[meaning] for status, meaning in known.items()}


TEXTS: dict[str, tuple[int, str]] = {
    "This model's maximum context length is 4096 tokens.": (400, "overflow"),
    "The prompt is longer than the maximum model length.": (400, "overflow"),
    "prompt is too long: 210000 tokens > 200000 maximum": (400, "overflow"),
    "Input is too long for requested model.": (400, "overflow"),
    "The request exceeds the available context size.": (400, "overflow"),
    "context window exceeded": (500, "overflow"),
    "The input token count (9) exceeds the maximum number of tokens allowed (8).": (400, "overflow"),
    "Your request exceeded model token limit: 8192": (400, "overflow"),
    "`inputs` tokens + `max_new_tokens` must be <= 4096.": (422, "overflow"),
    "The prompt triggered Azure OpenAI's content management policy.": (400, "filtered"),
    "Filtered due to the prompt.": (400, "filtered"),
    "Output blocked by content filtering policy": (400, "filtered"),
    "Your prompt was flagged as potentially violating our usage policy.": (400, "filtered"),
    "Content violates usage guidelines. Failed check: SAFETY": (403, "filtered"),
    "This model requires moderation and your input was flagged": (403, "filtered"),
    "System detected potentially unsafe or sensitive content in input.": (400, "filtered"),
    "Input data may contain inappropriate content.": (400, "filtered"),
    "Your credit balance is too low to access the API.": (400, "later"),
    "You have reached your specified API usage limits.": (400, "later"),
    "Insufficient Balance": (402, "later"),
    "This request requires more credits, or fewer max_tokens.": (402, "later"),
    "Your account is in arrears, please recharge and try again.": (429, "later"),
    "Too many tokens per day, please wait before trying again.": (429, "later"),
    "Model is overloaded, try again in 0.01s": (429, "retry"),
    "Loading model": (503, "retry"),
}


async def test_texts_of_errors_without_a_code_are_understood() -> None:
    """As OpenAI's error, and as plain text."""
    answers = {
        f"{form} {text}": fault(status, {"error": {"message": text}} if form == "json" else text)
        for text, (status, _) in TEXTS.items()
        for form in ("json", "text")
    }
    expected = {key: FAILED[TEXTS[key.partition(" ")[2]][1]] for key in answers}
    apart = [key for key, came in expected.items() if came.what == "later"]
    assert await outcomes(OpenAIServer(), answers, apart=apart) == expected
    for pattern, meaning in words("text").items():
        assert any(re.search(pattern, text, re.IGNORECASE) for text, (_, own) in TEXTS.items() if own == meaning), (
            pattern
        )


async def test_errors_mean_the_same_through_anthropic_s_class() -> None:
    pytest.importorskip("langchain_anthropic")
    known = of("error", "Anthropic")
    statuses = {"retry": 529, "later": 402, "refused": 401}
    answers = {
        word: fault(statuses[meaning], {"type": "error", "error": {"type": word, "message": "no"}})
        for word, meaning in known.items()
    }
    found = await outcomes(AnthropicServer(), answers, CLASSES["Anthropic"][1], later(known))
    assert found == {word: FAILED[meaning] for word, meaning in known.items()}


async def test_an_error_event_in_a_stream_of_anthropic_is_a_failed_attempt_that_is_not_billed() -> None:
    pytest.importorskip("langchain_anthropic")
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    events = f"event: error\ndata: {json.dumps(error)}\n\n"
    lost: list[LostAttempt] = []
    with AnthropicServer([Answer(body=events, headers={"content-type": "text/event-stream"}), Answer()]) as server:
        catalog = Catalog(named={})
        name = catalog.name_of(CLASSES["Anthropic"][1].format(url=server.base_url))
        async with ModelHub(catalog.options(), backoff=QUICK) as hub:
            with listening(lambda _: None):
                meter = free_meter(lost.append)
                reply = await hub.call(name, [HumanMessage("Hi")], seed=1, max_output_tokens=50, meter=meter)
    assert (reply.text, reply.errors, lost) == ("ok", ("Overloaded",), [])


async def test_errors_and_filters_mean_the_same_through_google_s_class() -> None:
    pytest.importorskip("langchain_google_genai")
    known = {word: meaning for word, meaning in of("error", "Google").items() if word == word.lower()}
    statuses = {"retry": 429, "later": 429, "refused": 400}
    answers = {
        word: fault(statuses[meaning], {"error": {"code": statuses[meaning], "message": "no", "status": word.upper()}})
        for word, meaning in known.items()
    }
    answers["blocked"] = Answer(body={"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": USAGE})
    answers["empty"] = Answer(body={"candidates": [], "usageMetadata": USAGE})
    expected = {word: FAILED[meaning] for word, meaning in known.items()}
    expected |= {"blocked": FAILED["filtered"], "empty": FAILED["retry"]}
    assert await outcomes(CloudServer(), answers, CLASSES["Google"][1], later(known)) == expected


async def test_errors_mean_the_same_through_bedrock_s_class() -> None:
    pytest.importorskip("langchain_aws")
    known = of("error", "Bedrock")
    statuses = {"retry": 429, "later": 400, "refused": 403}
    answers = {
        word: fault(statuses[meaning], {"message": "no"}, x_amzn_errortype=word) for word, meaning in known.items()
    }
    found = await outcomes(CloudServer(), answers, CLASSES["Bedrock"][1], later(known))
    assert found == {word: FAILED[meaning] for word, meaning in known.items()}


async def test_an_odd_answer_with_status_200_is_a_failed_attempt_through_langchain_s_openai_class() -> None:
    from langchain_openai import ChatOpenAI

    empty = {"content": "", "role": "assistant"}
    bodies: dict[str, Json] = {
        "an error": {"error": {"message": "worker died"}},
        "no choices": {"id": "x"},
        "null choices": {"choices": None},
        "empty choices": {"choices": []},
        "an error in the choice": {
            "choices": [{"error": {"message": "died"}, "finish_reason": "error", "message": empty}]
        },
        "an empty message": {"choices": [{"message": empty}]},
        "no credit": {"error": {"message": "no", "code": "insufficient_quota"}},
    }
    came = {}
    for key, body in bodies.items():
        with OpenAIServer([Answer(body=body), Answer(text="well")]) as server:
            chat = ChatOpenAI(model="m", base_url=server.base_url, api_key=SecretStr("none"), max_retries=0)
            catalog = Catalog(named={})
            async with ModelHub(catalog.options(), backoff=QUICK) as hub:
                try:
                    reply = await hub.call(catalog.name_of(chat), [HumanMessage("Hi")], seed=1, max_output_tokens=50)
                    came[key] = Came(reply.text, reply.attempts)
                except ModelPausedError:
                    came[key] = Came("later", len(server.requests))
    assert came == {key: Came("well", 2) for key in bodies} | {"no credit": Came("later", 1)}
