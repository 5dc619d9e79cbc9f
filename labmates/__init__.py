"""labmates measures how well teams of language-model agents work together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labmates._version import __version__
from labmates.errors import LabmatesError, UsageError

if TYPE_CHECKING:
    from labmates.api import arun, load_runs, profile, run

__all__ = ["LabmatesError", "UsageError", "__version__", "arun", "load_runs", "profile", "run"]


def __getattr__(name: str) -> Any:
    # Imported when first used: `labmates --help` must not wait for LangGraph and pandas.
    if name in ("arun", "load_runs", "profile", "run"):
        from labmates import api

        return getattr(api, name)
    raise AttributeError(f"module 'labmates' has no attribute '{name}'")
