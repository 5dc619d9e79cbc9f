"""How models are reached: the settings of a session that do not belong to an experiment's condition."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class ModelOptions(BaseModel):
    """Connection settings, shared by all models of a session."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    base_url: str | None = Field(
        None, description="Address of an OpenAI-compatible server, for instance http://127.0.0.1:8000/v1."
    )
    api_key_env: str = Field(
        "OPENAI_API_KEY", description="Environment variable that holds the key of the server at base_url."
    )
    call_timeout: float = Field(
        120.0, gt=0, le=3600, description="Time limit of one attempt of a model call, in seconds."
    )
    max_retries: int = Field(
        4, ge=0, le=20, description="Further attempts after a failed one (429, 5xx, cut or slow connection)."
    )
    max_concurrent_calls: int = Field(32, ge=1, le=4096, description="Model calls in flight at once, per endpoint.")
    stream: bool = Field(False, description="Ask the server to stream its replies.")
