"""Connection settings of a session, separate from an experiment's condition."""

from __future__ import annotations

from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from labmates.models.entries import Access

BATCH_HOURS: Final = 24
"""The providers' time limit for a batch."""
MOST_BATCHED: Final = 100_000
"""Maximum number of batched calls in progress."""


class ModelOptions(BaseModel):
    """Connection settings, shared by all models of a session."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str | None = Field(
        None,
        description="Address of openai: models without ?base_url=URL, for example http://127.0.0.1:8000/v1.",
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
    batch: bool = Field(
        False,
        description="Use the providers' batch APIs (openai: and anthropic: models): half the price, "
        f"replies within {BATCH_HOURS} hours.",
        json_schema_extra={"negatable": True},
    )
    batch_window: float = Field(
        5.0, gt=0, le=600, description="Submit a batch after this many seconds without a new call."
    )
    batch_poll: float = Field(30.0, gt=0, le=3600, description="Seconds between checks of a batch.")
    entries: dict[str, Access] = Field(
        {},
        description="Connections of single models, by name; from the models file or written with the model.",
        json_schema_extra={"recorded": True},
    )

    @model_validator(mode="after")
    def _is_not_streamed(self) -> Self:
        if self.batch and self.stream:
            raise ValueError("stream and batch exclude each other: replies of a batch come whole")
        return self

    @property
    def calls_at_once(self) -> int:
        """Maximum number of calls in progress per endpoint; practically unlimited with batches."""
        return MOST_BATCHED if self.batch else self.max_concurrent_calls

    @model_serializer(mode="wrap")
    def _with_given(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values: dict[str, Any] = dump(self)
        entries = {name: access.model_dump(mode="json", exclude_none=True) for name, access in self.entries.items()}
        values.pop("entries", None)
        return {**values, "entries": entries} if entries else values
