"""Providers of other packages (entry point ``labmates.providers``), and providers whose package is missing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from labmates.errors import MissingExtraError, UsageError
from labmates.models import names
from labmates.models.catalog import Catalog
from labmates.models.check import check_models
from labmates.models.hub import ModelHub
from labmates.models.names import PLUGINS, parse_model
from tests.support.openai_server import Answer, OpenAIServer
from tests.support.plugins import install

CODE = """
from langchain_openai import ChatOpenAI


def make(*, model, base_url=None, api_key=None, max_tokens=None, temperature=None, seed=None):
    return ChatOpenAI(
        model="own-" + model, base_url=base_url, api_key=api_key, max_tokens=max_tokens, temperature=temperature,
        seed=seed, max_retries=0,
    )


class Chat(ChatOpenAI):
    pass


def unlimited(*, model, base_url, api_key):
    return ChatOpenAI(model=model, base_url=base_url, api_key=api_key, max_retries=0)


def broken(*, model):
    raise OSError("no such cluster")
"""
Install = Callable[[dict[str, str]], None]


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Installs a package that declares providers: name to attribute."""

    def declare(points: dict[str, str]) -> None:
        named = {name: f"lab_models:{attribute}" for name, attribute in points.items()}
        monkeypatch.syspath_prepend(
            install(tmp_path, "lab-models", {"labmates.providers": named}, {"lab_models": CODE})
        )
        monkeypatch.delitem(sys.modules, "lab_models", raising=False)
        monkeypatch.setattr(PLUGINS, "_plugins", None)
        monkeypatch.setattr(PLUGINS, "_loaded", {})

    return declare


@pytest.mark.parametrize(("attribute", "sent_as"), [("make", "own-tiny"), ("Chat", "tiny")])
async def test_a_provider_of_a_package_is_asked_with_its_settings(
    plugin: Install, monkeypatch: pytest.MonkeyPatch, attribute: str, sent_as: str
) -> None:
    plugin({"mine": attribute})
    monkeypatch.setenv("LAB_KEY", "key-of-the-lab")
    with OpenAIServer(Answer(text="ready")) as server:
        catalog = Catalog(named={})
        name = catalog.name_of(f"mine:tiny?base_url={server.base_url}&api_key_env=LAB_KEY&seed=3")
        await check_models([name], catalog.options())
        async with ModelHub(catalog.options()) as hub:
            reply = await hub.call(name, [HumanMessage("Hi")], seed=1, max_output_tokens=90, temperature=0.5)
    [request] = server.requests
    assert reply.text == "ready"
    assert request.headers["authorization"] == "Bearer key-of-the-lab"
    limit = request.body.get("max_tokens") or request.body.get("max_completion_tokens")
    assert (request.body["model"], limit, request.body["temperature"], request.body["seed"]) == (sent_as, 90, 0.5, 3)


async def test_a_setting_that_a_plug_in_does_not_declare_is_an_error_before_the_first_call(plugin: Install) -> None:
    plugin({"mine": "make"})
    with pytest.raises(UsageError, match="the provider mine takes no top_p; leave it out"):
        await check_models(["mine:tiny?top_p=0.5"], Catalog(named={}).options())


async def test_a_plug_in_that_limits_nothing_is_asked_without_a_limit(plugin: Install) -> None:
    plugin({"mine": "unlimited"})
    with OpenAIServer(Answer(text="ready")) as server:
        catalog = Catalog(named={})
        name = catalog.name_of(f"mine:tiny?base_url={server.base_url}")
        async with ModelHub(catalog.options()) as hub:
            assert (await hub.call(name, [HumanMessage("Hi")], seed=1, max_output_tokens=90)).text == "ready"
            with pytest.raises(UsageError, match="the provider mine takes no temperature; leave it out"):
                await hub.call(name, [HumanMessage("Hi")], seed=1, max_output_tokens=90, temperature=0.5)
    [request] = server.requests
    assert not request.body.keys() & {"max_tokens", "max_completion_tokens"}


async def test_a_plug_in_that_breaks_is_named_with_its_package(plugin: Install) -> None:
    plugin({"mine": "broken", "lost": "nothing"})
    catalog = Catalog(named={})
    async with ModelHub(catalog.options()) as hub:
        for model, told in (("mine:tiny", "no such cluster"), ("lost:tiny", "can't be imported")):
            with pytest.raises(UsageError, match=rf"lab-models 1\.0, entry point labmates\.providers.*{told}"):
                await hub.call(model, [HumanMessage("Hi")], seed=1, max_output_tokens=90)


def test_a_provider_that_nobody_declares_is_unknown(plugin: Install) -> None:
    plugin({"mine": "make"})
    with pytest.raises(UsageError, match=r"unknown model provider 'mines'\. Did you mean 'mine'"):
        parse_model("mines:tiny")


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No package of a provider."""
    for package in {provider.package for provider in names.PROVIDERS.values()}:
        monkeypatch.setitem(sys.modules, package, None)
    names._is_installed.cache_clear()
    yield
    names._is_installed.cache_clear()


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize(
    ("model", "extra"),
    [
        ("anthropic:m", "anthropic"),
        ("google_genai:m", "google"),
        ("bedrock_converse:m", "bedrock"),
        ("anthropic_bedrock:m", "bedrock"),
    ],
)
def test_a_provider_without_its_package_names_the_extra(model: str, extra: str) -> None:
    with pytest.raises(MissingExtraError, match=rf"model '{model}' needs the extra '{extra}'.*labmates\[{extra}\]"):
        parse_model(model)


@pytest.mark.usefixtures("nothing_installed")
def test_a_provider_without_an_extra_names_its_package() -> None:
    with pytest.raises(UsageError, match="needs the package langchain-mistralai: pip install langchain-mistralai"):
        parse_model("mistralai:m")
