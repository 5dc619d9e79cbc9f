"""Model names: LangChain's ``provider:name``, with optional ``?setting=value``."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple

from labmates.errors import MissingExtraError, UsageError, unknown_name
from labmates.models.entries import DEFAULT_ACCESS, read_reference
from labmates.models.servers import SERVERS
from labmates.models.settings import NO_SETTINGS, ModelSettings, write_query
from labmates.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langchain_core.language_models import BaseChatModel


SCRIPTED = "scripted"
"""The provider of scripted baselines: offline chat models."""

HUMAN = "human"
"""The provider of people, who answer on the page of a run: ``human:NAME``."""

SEAT = "seat"
"""In records, instead of a provider: an outside agent on a seat, with a model of its own."""


RECORDED = "recorded"
"""The provider of replies of another run: ``recorded:RUN`` gives a seat what its namesake replied there."""


class Provider(NamedTuple):
    """A provider that LangChain knows."""

    package: str
    key_name: str = ""  # environment variable of its key; others use other credentials (cloud profiles) or none
    extra: str = ""  # our extra that installs the package
    url: str = ""  # base URL, with variables, of an API in OpenAI's protocol, which labmates calls without the package


PROVIDERS: Final[Mapping[str, Provider]] = {
    "anthropic": Provider("langchain_anthropic", "ANTHROPIC_API_KEY", "anthropic"),
    "anthropic_bedrock": Provider("langchain_aws", extra="bedrock"),
    "azure_ai": Provider("langchain_azure_ai"),
    "azure_openai": Provider("langchain_openai", "AZURE_OPENAI_API_KEY", url="$AZURE_OPENAI_ENDPOINT/openai/v1"),
    "baseten": Provider("langchain_baseten", "BASETEN_API_KEY"),
    "bedrock": Provider("langchain_aws", extra="bedrock"),
    "bedrock_converse": Provider("langchain_aws", extra="bedrock"),
    "cohere": Provider("langchain_cohere", "COHERE_API_KEY"),
    "deepseek": Provider("langchain_deepseek", "DEEPSEEK_API_KEY", url="https://api.deepseek.com/v1"),
    "fireworks": Provider("langchain_fireworks", "FIREWORKS_API_KEY"),
    "google_anthropic_vertex": Provider("langchain_google_vertexai"),
    "google_genai": Provider("langchain_google_genai", "GOOGLE_API_KEY", "google"),
    "google_vertexai": Provider("langchain_google_vertexai"),
    "groq": Provider("langchain_groq", "GROQ_API_KEY"),
    "huggingface": Provider("langchain_huggingface", "HUGGINGFACEHUB_API_TOKEN"),
    "ibm": Provider("langchain_ibm"),
    "litellm": Provider("langchain_litellm"),
    "mistralai": Provider("langchain_mistralai", "MISTRAL_API_KEY"),
    "nvidia": Provider("langchain_nvidia_ai_endpoints", "NVIDIA_API_KEY"),
    "ollama": Provider("langchain_ollama"),
    "openai": Provider("langchain_openai"),
    "openrouter": Provider("langchain_openrouter", "OPENROUTER_API_KEY"),
    "perplexity": Provider("langchain_perplexity", "PPLX_API_KEY"),
    "together": Provider("langchain_together", "TOGETHER_API_KEY", url="https://api.together.xyz/v1"),
    "upstage": Provider("langchain_upstage", "UPSTAGE_API_KEY", url="https://api.upstage.ai/v1"),
    "xai": Provider("langchain_xai", "XAI_API_KEY", url="https://api.x.ai/v1"),
}
"""Source: LangChain's table (a test compares them), whose import takes over a second, too long for commands that list
or check names."""
PLUGINS: Registry[Callable[..., BaseChatModel]] = Registry("model provider", "labmates.providers")
"""Providers of other packages (entry point ``labmates.providers``): classes of chat models, or functions that make one.

They are called with the keywords that they declare among ``model``, ``base_url``, ``api_key``, ``timeout``,
``max_retries``, ``max_tokens``, ``temperature`` and the names of `ModelSettings`. An undeclared setting is an error
before the first call.
"""


@dataclass(frozen=True)
class ModelName:
    """The parts of a model's name; ``str()`` joins them."""

    provider: str
    name: str
    settings: ModelSettings = NO_SETTINGS

    def __str__(self) -> str:
        given = self.settings.given()
        return f"{self.provider}:{self.name}{'?' if given else ''}{write_query(given)}"

    @property
    def scripted(self) -> bool:
        """Whether the model is a scripted baseline."""
        return self.provider == SCRIPTED


def has_own_chat(provider: str) -> bool:
    """Whether labmates calls a provider by its own chat model."""
    return provider == "openai" or provider in SERVERS or bool(provider in PROVIDERS and PROVIDERS[provider].url)


def is_outside(text: str) -> bool:
    """Whether a name denotes no model: a person, an outside agent on a seat, or the record of a run."""
    return text.partition(":")[0] in (HUMAN, SEAT, RECORDED)


def parse_model(text: str) -> ModelName:
    """Parse a model's full name: ``openai:gpt-5.4-mini``, ``ollama:qwen3:4b?top_p=0.9``, ``scripted:diligent``.

    Raises `UsageError` if the provider or the name is missing, the provider or the scripted baseline is unknown, the
    provider's package is not installed, or a setting is invalid.
    """
    model = _split(text)
    provider, name = model.provider, model.name
    if not any(provider in known for known in ((SCRIPTED, GIVEN, HUMAN, RECORDED), PROVIDERS, SERVERS, PLUGINS)):
        for registry in (SERVERS, PLUGINS):
            registry.refuse_missing(provider)
        raise unknown_name("model provider", provider, [*PROVIDERS, SCRIPTED, HUMAN, *SERVERS, *PLUGINS])
    if model.settings != NO_SETTINGS:
        _check_settings(text, model)
    if not name or not name.isprintable():
        raise UsageError(f"model '{text}' has no usable name after '{provider}:'; for instance {provider}:NAME")
    if provider == SCRIPTED:
        _check_baseline(name)
    elif provider == GIVEN:
        given_chat(name)
    elif provider in PROVIDERS and not (PROVIDERS[provider].url or _is_installed(PROVIDERS[provider].package)):
        if extra := PROVIDERS[provider].extra:
            raise MissingExtraError(f"model '{text}'", extra)
        package = PROVIDERS[provider].package.replace("_", "-")
        raise UsageError(f"model '{text}' needs the package {package}: pip install {package}")
    return model


def full_name(text: str) -> str:
    """A model's name in records: the name of a strategy's file is followed by the digest of its content.

    Raises `UsageError` if the file is missing.
    """
    start = f"{SCRIPTED}:code/"
    if not text.startswith(start) or "@" in text:
        return text
    from labmates.models.scripted import BASELINES

    return f"{SCRIPTED}:{getattr(BASELINES.get(text.removeprefix(f'{SCRIPTED}:')), 'baseline', '')}"


def _check_settings(text: str, model: ModelName) -> None:
    given = model.settings.given().keys()
    if model.provider in (SCRIPTED, GIVEN):
        raise UsageError(f"model '{text}': a model of {model.provider}: takes no settings")
    if model.provider == HUMAN and given != {"seconds"}:
        raise UsageError(f"model '{text}': a person has one setting, the time limit of a reply: human:NAME?seconds=600")
    if model.provider != HUMAN and "seconds" in given:
        raise UsageError(f"model '{text}': 'seconds' is a setting of people: human:NAME?seconds=600")


@lru_cache(maxsize=4096)
def _split(text: str) -> ModelName:
    settings = NO_SETTINGS
    if "?" in text:
        entry = read_reference(text, {})
        if entry.access != DEFAULT_ACCESS:
            raise UsageError(f"model '{text}': connection settings are not part of a model's name")
        settings = ModelSettings.model_validate(entry.model_dump(include=set(ModelSettings.model_fields)))
    provider, colon, name = (part.strip() for part in text.partition("?")[0].partition(":"))
    if not colon:
        raise UsageError(
            f"model '{text}' has no provider: write provider:name, for instance openai:{text or 'NAME'}, or the name "
            "of an entry of models.yaml"
        )
    return ModelName(provider, name, settings)


@cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


def is_own_baseline(text: str) -> bool:
    """Whether a model is one of the project's scripted baselines, so that its code can be trusted."""
    from labmates.models.scripted import BASELINES

    model = parse_model(text)
    return model.scripted and BASELINES.is_own(model.name)


def _check_baseline(name: str) -> None:
    from labmates.models.scripted import BASELINES

    if name not in BASELINES:
        raise unknown_name(BASELINES.what, name, BASELINES.names())
    if BASELINES.in_family(name):
        BASELINES.get(name)  # raises if unknown


GIVEN: Final = "object"
"""The provider of chat models passed as objects."""

_GIVEN: dict[str, BaseChatModel] = {}


def name_given(chat: object) -> str:
    """The name of a chat model object: its model name and a hash of its parameters.

    Raises `UsageError` if it is not a LangChain chat model.
    """
    from langchain_core.language_models import BaseChatModel

    if not isinstance(chat, BaseChatModel):
        raise UsageError(f"a model is a name (provider:name) or a LangChain chat model, not {type(chat).__name__}")
    kind = type(chat)
    parameters = {"class": f"{kind.__module__}.{kind.__qualname__}", **chat._identifying_params}
    text = json.dumps(parameters, sort_keys=True, default=lambda value: type(value).__qualname__)
    own = getattr(chat, "model_name", None) or getattr(chat, "model", None) or kind.__name__
    name = f"{re.sub(r'[^A-Za-z0-9._/-]', '_', str(own))}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    _GIVEN[name] = chat
    return f"{GIVEN}:{name}"


def given_chat(name: str) -> BaseChatModel:
    """The chat model object of this name. Raises `UsageError` if this process received no object of that name."""
    if name not in _GIVEN:
        raise UsageError(
            f"model '{GIVEN}:{name}' is an object of another program: pass it again (labmates.run(model=…))"
        )
    return _GIVEN[name]
