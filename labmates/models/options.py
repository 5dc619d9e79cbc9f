"""Connection settings of a session, separate from an experiment's condition."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from labmates.models.entries import Access

_GONE: Final = ("batch", "batch_window", "batch_poll")


def without_batches(data: Any) -> Any:
    """Settings without those of batch APIs, which older records have; a batch that was asked for stays, as unknown."""
    if not isinstance(data, dict) or data.get("batch"):
        return data
    return {name: value for name, value in data.items() if name not in _GONE}


class ModelOptions(BaseModel):
    """Connection settings, shared by all models of a session."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str | None = Field(
        None,
        description="Base URL of openai: models that have none of their own, for example http://127.0.0.1:8000/v1.",
    )
    api_key_env: str = Field("OPENAI_API_KEY", description="Environment variable with the API key for these models.")
    call_timeout: float = Field(
        120.0, gt=0, le=3600, description="Time limit of one attempt of a model call, in seconds."
    )
    max_retries: int = Field(
        4, ge=0, le=20, description="Retries after a failed attempt (429, 5xx, dropped or slow connection)."
    )
    max_concurrent_calls: int = Field(32, ge=1, le=4096, description="Model calls in flight at once, per endpoint.")
    stream: bool = Field(False, description="Ask the server to stream its replies.")
    entries: dict[str, Access] = Field(
        {},
        description="Connections of single models, by name; from the models file or written with the model.",
        json_schema_extra={"recorded": True},
    )

    _of_older_records = model_validator(mode="before")(without_batches)

    @model_serializer(mode="wrap")
    def _with_given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = dump(self)
        entries = {name: access.model_dump(mode="json", exclude_none=True) for name, access in self.entries.items()}
        values.pop("entries", None)
        return {**values, "entries": entries} if entries else values
