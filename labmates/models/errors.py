"""Errors of model calls without a reply, and the limit that keeps a reply within the context."""

from __future__ import annotations

from typing import Final

from labmates.errors import LabmatesError


class ModelCallError(LabmatesError):
    """A model call ended without a reply.

    Attributes
    ----------
    model
        The model as the caller named it, ``provider:name``.
    endpoint
        Where it was asked: the address of the server, or the provider's name.
    status
        HTTP status of the last answer; None if there was none.
    attempts
        Number of HTTP attempts made.
    errors
        What went wrong at each failed attempt, in order; one line each, free of secrets.
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
        # Every keyword has a default, so that the error survives pickling (which calls the class with the text alone).
        super().__init__(text)
        self.model = model
        self.endpoint = endpoint
        self.status = status
        self.attempts = attempts
        self.errors = errors


class EndpointError(ModelCallError):
    """The server refused the call, or failed at every attempt."""


class UnpaidCallError(ModelCallError):
    """The call may cost more than its payer has."""


class ContextOverflowError(ModelCallError):
    """The prompt, or prompt and reply together, are longer than the model's context.

    Attributes
    ----------
    limit
        Tokens that the model takes; None if the server did not tell.
    requested
        Tokens that the call needs, as the server counts them; None if it did not tell.
    """

    limit: int | None = None
    requested: int | None = None


LEAST_REPLY: Final = 256
"""A prompt that leaves fewer tokens for the reply is too long, unless the limit on the reply is even lower."""


def reply_limit(wanted: int, prompt: int, window: int | None, model: str) -> int:
    """The limit on a reply, lowered to what a prompt leaves of a context window; all in tokens.

    Parameters
    ----------
    window
        None where it is not known: then nothing is lowered.

    Raises
    ------
    ContextOverflowError
        If that is too little for a reply.
    """
    if window is None:
        return wanted
    left = window - prompt
    if left < min(wanted, LEAST_REPLY):
        error = ContextOverflowError(
            f"{model}: the prompt of about {prompt:,} tokens leaves no room for a reply in a context of {window:,}",
            model=model,
        )
        error.limit, error.requested = window, prompt
        raise error
    return min(wanted, left)
