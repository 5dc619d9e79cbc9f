"""The text of replies under way, for whoever watches the agents of a run."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

Listener = Callable[[str | None], None]
"""Takes the next piece of a reply; None where an attempt begins, and the text with it."""

LISTENER: Final[ContextVar[Listener | None]] = ContextVar("listener", default=None)
"""Set for the time of a call that is watched. Its reply is streamed where the server follows OpenAI's protocol."""
