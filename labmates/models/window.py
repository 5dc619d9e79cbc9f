"""A model's context window: what a prompt leaves of it for the reply."""

from __future__ import annotations

from typing import Final

from labmates.models.errors import ContextOverflowError

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
