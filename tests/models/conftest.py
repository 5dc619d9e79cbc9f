"""What the tests of models share: a fake key in the environment, and asking a test server through a hub."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage

from labmates.models.connection import Backoff
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.models.reply import Reply
from tests.support.openai_server import OpenAIServer

KEY = "sk-test-0123456789abcdefGHIJ"
QUICK = Backoff(first=0.001, longest=0.01)

Ask = Callable[..., Awaitable[Reply]]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> str:
    """A fake key, and no server address from outside; returns the key."""
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return KEY


@pytest.fixture
def ask() -> Ask:
    """Asks a server once, through a hub of its own: ``await ask(server, stream=True, max_retries=0, seed=3, …)``."""

    async def ask_once(
        server: OpenAIServer, messages: Sequence[BaseMessage] = (HumanMessage("Hi"),), **given: Any
    ) -> Reply:
        settings = {name: given.pop(name) for name in list(given) if name in ModelOptions.model_fields}
        options = ModelOptions(**{"base_url": server.base_url, "max_retries": 1, "call_timeout": 20, **settings})
        call = {"seed": 7, "max_output_tokens": 100, **given}
        async with ModelHub(options, backoff=QUICK) as hub:
            return await hub.call("openai:test-model", messages, **call)

    return ask_once
