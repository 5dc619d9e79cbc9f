"""How models are reached: the settings of a session that do not belong to an experiment's condition."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from labmates.models.entries import Access


class ModelOptions(BaseModel):
    """Connection settings, shared by all models of a session."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str | None = Field(
        None,
        description="Address of the openai: models that name none themselves (MODEL?base_url=URL), for instance "
        "http://127.0.0.1:8000/v1.",
    )
    api_key_env: str = Field("OPENAI_API_KEY", description="Environment variable that holds the key for these models.")
    call_timeout: float = Field(
        120.0, gt=0, le=3600, description="Time limit of one attempt of a model call, in seconds."
    )
    max_retries: int = Field(
        4, ge=0, le=20, description="Further attempts after a failed one (429, 5xx, cut or slow connection)."
    )
    max_concurrent_calls: int = Field(32, ge=1, le=4096, description="Model calls in flight at once, per endpoint.")
    stream: bool = Field(False, description="Ask the server to stream its replies.")
    entries: dict[str, Access] = Field(
        {},
        description="How single models are reached, by name; from the models file or written with the model.",
        json_schema_extra={"recorded": True},
    )

    @model_serializer(mode="wrap")
    def _without_empty(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = dump(self)
        entries = {name: access.model_dump(mode="json", exclude_none=True) for name, access in self.entries.items()}
        values.pop("entries", None)
        return {**values, "entries": entries} if entries else values
