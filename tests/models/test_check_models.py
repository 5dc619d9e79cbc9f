"""Before a run: a wrong name, a missing key or a dead server is found at once."""

from __future__ import annotations

import asyncio
import os
import re
import socket

import pytest

from labmates.errors import UsageError
from labmates.models import check
from labmates.models.check import check_models
from labmates.models.options import ModelOptions
from tests.support.openai_server import OpenAIServer


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_a_listening_server_passes_with_and_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer() as server:
        await check_models(["openai:a", "openai:b", "openai:a"], ModelOptions(base_url=server.base_url))
        monkeypatch.delenv("OPENAI_API_KEY")
        await check_models(["openai:a"], ModelOptions(base_url=server.base_url + "/"))


async def test_a_server_that_lists_no_models_passes() -> None:
    with OpenAIServer() as server:
        await check_models(["openai:a"], ModelOptions(base_url=server.base_url.replace("/v1", "/elsewhere")))


async def test_the_address_in_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{free_port()}/v1")
    with pytest.raises(UsageError, match="can't reach http://127"):
        await check_models(["openai:a"], ModelOptions())


async def test_nobody_listening_is_told() -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    with pytest.raises(UsageError, match=rf"can't reach {url} \(connection refused\)"):
        await check_models(["openai:a"], ModelOptions(base_url=url))


async def test_an_unknown_host_is_told() -> None:
    with pytest.raises(UsageError, match=r"can't reach http://no-such-host\.invalid/v1 \(.+\)"):
        await check_models(["openai:a"], ModelOptions(base_url="http://no-such-host.invalid/v1"))


async def test_a_server_that_does_not_speak_http_is_told() -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail ready\r\n")
        writer.close()

    mail = await asyncio.start_server(greet, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{mail.sockets[0].getsockname()[1]}/v1"
    async with mail:
        with pytest.raises(UsageError, match="it doesn't speak HTTP"):
            await check_models(["openai:a"], ModelOptions(base_url=url))


async def test_a_server_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "PATIENCE", 0.2)
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        with pytest.raises(UsageError, match=r"no answer within 0\.2 s"):
            await check_models(["openai:a"], ModelOptions(base_url=f"http://127.0.0.1:{mute.getsockname()[1]}/v1"))


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("127.0.0.1:8000/v1", "must begin with http:// or https://"),
        ("ftp://127.0.0.1/v1", "must begin with http:// or https://"),
        ("http:///v1", "name a host"),
        ("http://127.0.0.1:99999/v1", "is malformed"),
        ("http://[::1/v1", "is malformed"),
        ("http://user:secret-word@127.0.0.1/v1", "holds a name or password"),
        ("http://127.0.0.1/v1?key=hunter2", "'http://127.0.0.1/v1' must have no query"),
        ("http://127.0.0.1/v1#hunter2", "'http://127.0.0.1/v1' must have no query"),
        ("ftp://127.0.0.1/v1?key=hunter2", "'ftp://127.0.0.1/v1' must begin with http"),
        ("user:hunter2@127.0.0.1/v1", "holds a name or password"),
        ("http://[hunter2/v1", "is malformed"),
        ("http://127.0.0.1/ v1", "must have no query, fragment or space"),
    ],
)
async def test_a_malformed_base_url_is_told(url: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        await check_models(["openai:a"], ModelOptions(base_url=url))
    assert not {"secret-word", "hunter2"} & set(re.findall(r"[\w-]+", str(caught.value)))


async def test_a_missing_key_of_a_hosted_service_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("XAI_API_KEY", raising=False)
    with pytest.raises(
        UsageError, match="needs a key: set the environment variable OPENAI_API_KEY; for a server of your"
    ):
        await check_models(["openai:gpt-4o"], ModelOptions())
    with pytest.raises(UsageError, match="set the environment variable TEAM_KEY"):
        await check_models(["openai:gpt-4o"], ModelOptions(api_key_env="TEAM_KEY"))
    with pytest.raises(UsageError, match="set the environment variable XAI_API_KEY"):
        await check_models(["xai:grok-5"], ModelOptions())


@pytest.mark.parametrize("key", ["schlüssel-geheim", "geheim\x00", "first\ngeheim"])
async def test_a_key_that_no_header_can_hold_is_told_and_not_shown(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setattr("os.environ", {**os.environ, "TEAM_KEY": key})
    with pytest.raises(UsageError, match="the key in TEAM_KEY can't be sent") as caught:
        await check_models(["openai:gpt-4o"], ModelOptions(api_key_env="TEAM_KEY"))
    assert "geheim" not in str(caught.value)


async def test_a_hosted_service_with_a_key_is_not_contacted(monkeypatch: pytest.MonkeyPatch) -> None:
    """If it were, that would fail on any machine: the way out is closed."""
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{free_port()}")
    await check_models(["openai:gpt-4o"], ModelOptions())


async def test_a_wrong_name_is_found_before_any_server_is_asked() -> None:
    nobody = ModelOptions(base_url=f"http://127.0.0.1:{free_port()}/v1")
    with pytest.raises(UsageError, match="has no provider"):
        await check_models(["openai:a", "b"], nobody)
