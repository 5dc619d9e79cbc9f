"""Errors of model calls without a reply."""

from __future__ import annotations

from labmates.errors import LabmatesError


class ModelCallError(LabmatesError):
    """A model call ended without a reply.

    `model` is the caller's name for the model, `endpoint` the server's address or the provider's name. `status` is the
    last HTTP status (None without an answer), `attempts` the number of HTTP attempts, and `errors` has one line per
    failed attempt, free of secrets.
    """

    def __init__(
        self,
        text: str,
        *,
        model: str = "",
        endpoint: str = "",
        status: int | None = None,
        attempts: int = 0,
        errors: tuple[str, ...] = (),
    ) -> None:
        # Pickling calls the class with the text alone, so every keyword has a default.
        super().__init__(text)
        self.model = model
        self.endpoint = endpoint
        self.status = status
        self.attempts = attempts
        self.errors = errors


class EndpointError(ModelCallError):
    """The server refused the call, or failed at every attempt."""


class ModelPausedError(ModelCallError):
    """The server takes no calls of the model for hours, or until it is paid; nothing further is sent to it.

    `resume` is the Unix time from which it may take calls, if the server said so.
    """

    resume: float | None = None


class UnpaidCallError(ModelCallError):
    """The call may cost more than its payer has left."""


class ContextOverflowError(ModelCallError):
    """The prompt, or prompt and reply together, exceed the model's context."""

    limit: int | None = None  # the model's context in tokens; None if the server did not report it
    requested: int | None = None  # tokens that the call needs, by the server's count; None if not reported
