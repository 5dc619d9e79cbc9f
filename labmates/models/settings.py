"""Settings of a model that change its replies, and the notation ``provider:name?setting=value&…``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal
from urllib.parse import quote, unquote

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from labmates.errors import UsageError
from labmates.models.servers import SERVERS
from labmates.util.safe_text import PLAIN_LETTERS

JSON_FIELDS: Final = ("extra_body", "chat_template_kwargs", "response_format")
"""Settings whose parts are JSON values: ``chat_template_kwargs.enable_thinking=true``."""
Thoughts = Literal["tools", "turn", "all"]
"""Which replies are sent back with their attachments: those of turns with tool calls, of the current turn, or all.

A turn lasts from one message of the user to the next. DeepSeek requires the first, and ignores the thoughts of turns
without tool calls; all documented providers require those of the current turn.
"""
_OURS: Final = {"model", "messages", "tools", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens"}
"""Members of a request that `extra_body` can't set."""


class ModelSettings(BaseModel):
    """Settings that change a model's replies. They are part of its name, and so of a condition's key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: float | None = Field(None, ge=0, le=2, description="Sampling temperature; before the condition's.")
    top_p: float | None = Field(None, gt=0, le=1, description="Nucleus sampling: share of the probability mass.")
    max_output_tokens: int | None = Field(
        None, ge=64, le=1_000_000, description="Output limit of one reply, in tokens; before the condition's."
    )
    reasoning_effort: str | None = Field(
        None, description="Reasoning effort, in the provider's terms: low, medium, high."
    )
    thinking_budget: int | None = Field(None, ge=0, description="Maximum number of reasoning tokens in one reply.")
    extra_body: dict[str, Any] | None = Field(
        None, description="Further members of the request's JSON, for instance extra_body.top_k=20."
    )
    chat_template_kwargs: dict[str, Any] | None = Field(
        None, description="Arguments of the chat template (vLLM, SGLang, llama.cpp), for instance enable_thinking."
    )
    seed: int | None = Field(
        None, ge=0, lt=2**63, description="The same sampling seed for every call; else it derives from the run's."
    )
    stop: tuple[str, ...] | None = Field(None, max_length=16, description="Texts at which a reply ends; repeatable.")
    response_format: dict[str, Any] | None = Field(None, description="OpenAI's response_format, by its members.")
    structured: bool | None = Field(
        None, description="Of a judge's model: its server holds answers to their JSON schema (response_format)."
    )
    context_tokens: int | None = Field(
        None, ge=1024, description="Context of the model in tokens; longer transcripts are compacted before a call."
    )
    persona: str | None = Field(
        None, description="Text at the end of its system message, for instance: You care about what everyone earns."
    )
    seconds: float | None = Field(
        None, gt=0, le=604_800, description="Of a person: time limit of one reply, in seconds; 3600 by default."
    )
    variant: str | None = Field(
        None,
        description="Label for models with otherwise equal names, for instance a quantisation.",
    )

    @model_validator(mode="before")
    @classmethod
    def _short_name(cls, values: Any) -> Any:
        if isinstance(values, dict) and "context" in values:
            values = {"context_tokens" if name == "context" else name: value for name, value in values.items()}
        return values

    @field_validator("reasoning_effort", "variant")
    @classmethod
    def _is_word(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z0-9._-]+", value):
            raise ValueError(f"expected a word of {PLAIN_LETTERS}, digits, '.', '_' and '-'")
        return value

    @field_validator("stop", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator(*JSON_FIELDS, "structured")
    @classmethod
    def _says_something(cls, value: Any) -> Any:
        return value or None

    @field_validator("extra_body")
    @classmethod
    def _leaves_the_rest(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        if taken := sorted((_OURS | ModelSettings.model_fields.keys()) & (value or {}).keys()):
            raise ValueError(f"{', '.join(taken)} can't be set here: labmates sets it, or has a setting for it")
        return value

    def given(self) -> dict[str, Any]:
        """The given settings as JSON data."""
        return self.model_dump(mode="json", exclude_none=True)


NO_SETTINGS: Final = ModelSettings()


def write_query(values: Mapping[str, Any]) -> str:
    """Settings as ``name=value&name=value``, sorted; members of objects as ``name.member=value``.

    >>> write_query({"top_p": 0.9, "chat_template_kwargs": {"enable_thinking": True}})
    'chat_template_kwargs.enable_thinking=true&top_p=0.9'
    """
    return "&".join(f"{path}={quote(text, safe='/:')}" for path, text in sorted(_leaves(values)))


def read_query(text: str, query: str) -> dict[str, Any]:
    """Parse ``name=value&name=value`` of the model `text`; a repeated ``stop`` gives a list.

    Raises `UsageError` if a part is malformed or contradicts another one.
    """
    settings: dict[str, Any] = {}
    for part in query.split("&"):
        path, equals, value = part.partition("=")
        names = [unquote(name) for name in path.strip().split(".")]
        if not equals or not all(names):
            hint = "; name a file with ? in its path in models.yaml" if text.partition(":")[0] in SERVERS else ""
            raise UsageError(f"model '{text}': '{part}' is not NAME=VALUE (settings: ?NAME=VALUE&NAME=VALUE){hint}")
        at: dict[str, Any] = settings
        for name in names[:-1]:
            at = at.setdefault(name, {})
            if not isinstance(at, dict):
                raise UsageError(f"model '{text}': '{path}' is given twice, in different ways")
        last, read = names[-1], unquote(value)
        if names[0] in JSON_FIELDS and _is_json(read):
            read = json.loads(read)
        if last not in at:
            at[last] = read
        elif names == ["stop"]:
            at[last] = [*(at[last] if isinstance(at[last], list) else [at[last]]), read]
        else:
            raise UsageError(f"model '{text}': '{path}' is given twice")
    return settings


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        path = prefix + quote(str(name), safe="").replace(".", "%2E")
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{path}.")
        elif path == "stop":
            yield from ((path, str(stop)) for stop in value)
        else:
            yield path, value if isinstance(value, str) and not (prefix and _is_json(value)) else json.dumps(value)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
