"""Model names: ``provider:name``, as LangChain's ``init_chat_model`` has them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec

from labmates.errors import UsageError, unknown_name

SCRIPTED = "scripted"
"""The provider of our own baselines: chat models that follow a script, offline."""

PROVIDERS: dict[str, str] = {
    "anthropic": "langchain_anthropic",
    "anthropic_bedrock": "langchain_aws",
    "azure_ai": "langchain_azure_ai",
    "azure_openai": "langchain_openai",
    "baseten": "langchain_baseten",
    "bedrock": "langchain_aws",
    "bedrock_converse": "langchain_aws",
    "cohere": "langchain_cohere",
    "deepseek": "langchain_deepseek",
    "fireworks": "langchain_fireworks",
    "google_anthropic_vertex": "langchain_google_vertexai",
    "google_genai": "langchain_google_genai",
    "google_vertexai": "langchain_google_vertexai",
    "groq": "langchain_groq",
    "huggingface": "langchain_huggingface",
    "ibm": "langchain_ibm",
    "litellm": "langchain_litellm",
    "mistralai": "langchain_mistralai",
    "nvidia": "langchain_nvidia_ai_endpoints",
    "ollama": "langchain_ollama",
    "openai": "langchain_openai",
    "openrouter": "langchain_openrouter",
    "perplexity": "langchain_perplexity",
    "together": "langchain_together",
    "upstage": "langchain_upstage",
    "xai": "langchain_xai",
}
"""Provider to the package that brings it. LangChain's own table is the source (a test compares them);
importing that one takes more than a second, which a command that only lists or checks names can't afford."""


@dataclass(frozen=True)
class ModelName:
    """A model's name in its two parts; ``str()`` puts them together again."""

    provider: str
    name: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.name}"

    @property
    def scripted(self) -> bool:
        """Whether it is one of our offline baselines (or a plug-in's)."""
        return self.provider == SCRIPTED


def parse_model(text: str) -> ModelName:
    """Read a model's name: ``openai:gpt-5.4-mini``, ``ollama:qwen3:4b``, ``scripted:diligent``.

    Raises
    ------
    UsageError
        If there is no provider or no name, if the provider is unknown or its package is not installed, or if
        there is no such scripted baseline.
    """
    provider, colon, name = (part.strip() for part in text.partition(":"))
    if not colon:
        raise UsageError(f"model '{text}' names no provider: write provider:name, for instance openai:{text or 'NAME'}")
    if provider != SCRIPTED and provider not in PROVIDERS:
        raise unknown_name("model provider", provider, [*PROVIDERS, SCRIPTED])
    if not name or not name.isprintable():
        raise UsageError(f"model '{text}' has no usable name after '{provider}:'; for instance {provider}:NAME")
    if provider == SCRIPTED:
        _check_baseline(name)
    elif not _is_installed(PROVIDERS[provider]):
        package = PROVIDERS[provider].replace("_", "-")
        raise UsageError(f"model '{text}' needs the package {package}: pip install {package}")
    return ModelName(provider, name)


@cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


def is_own_baseline(text: str) -> bool:
    """Tell whether a model is one of the project's own scripted baselines, so that the code it writes is ours too."""
    from labmates.models.scripted import BASELINES

    model = parse_model(text)
    return model.scripted and BASELINES.is_own(model.name)


def _check_baseline(name: str) -> None:
    from labmates.models.scripted import BASELINES

    if name not in BASELINES:
        raise unknown_name(BASELINES.what, name, BASELINES.names())
    if BASELINES.in_family(name):
        BASELINES.get(name)  # knows by itself whether there is such a one
