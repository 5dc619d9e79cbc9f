"""Structured output: replies that follow a JSON schema, by ``response_format`` of OpenAI's protocol."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from labmates.errors import UsageError
from labmates.models.names import parse_model
from labmates.models.servers import SERVERS

PROVIDERS = ("openai", "azure_openai", "together", "upstage", "xai")
"""Providers with OpenAI's protocol that enforce schemas, beside the servers of this machine."""
_NOT_STRICT = {"minLength", "maxLength"}
"""Keywords that OpenAI's strict mode refuses; labmates checks them itself."""


def format_of(form: type[BaseModel]) -> dict[str, Any]:
    """The ``response_format`` of a request whose reply has this form; strict if every field is required."""
    schema = form.model_json_schema()
    strict = set(schema.get("required", ())) == set(schema.get("properties", ()))
    if strict:
        schema = _closed(schema)
    return {"type": "json_schema", "json_schema": {"name": form.__name__, "strict": strict, "schema": schema}}


def _closed(schema: Any) -> Any:
    """A schema for strict mode: closed objects, without unsupported keywords."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(part) for name, part in schema.items() if name not in _NOT_STRICT}
    return {**closed, "additionalProperties": False} if "properties" in schema else closed


def check_structured(model: str) -> None:
    """Check that a model supports schemas; scripted models need none.

    Raises `UsageError` if its provider takes no schema, or its settings name another format.
    """
    name, able = parse_model(model), (*PROVIDERS, *SERVERS)
    if not name.scripted and name.provider not in able:
        raise UsageError(
            f"structured: the provider '{name.provider}' of {model} takes no response_format (these do: "
            f"{', '.join(able)}); leave structured out, or reach the model through an OpenAI-compatible server"
        )
    if name.settings.response_format is not None:
        raise UsageError(f"structured: {model} sets response_format itself; use one of the two")
