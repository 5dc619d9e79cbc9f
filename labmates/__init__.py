"""labmates measures how well teams of language-model agents work together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labmates._version import __version__
from labmates.errors import LabmatesError, UsageError

if TYPE_CHECKING:
    from labmates.api import (
        ajudge,
        analyze,
        arun,
        fork,
        judge,
        load_decisions,
        load_events,
        load_payoffs,
        load_players,
        load_runs,
        load_scores,
        profile,
        replay,
        report,
        resume,
        run,
        screen,
        study,
    )

__all__ = [
    "LabmatesError",
    "UsageError",
    "__version__",
    "ajudge",
    "analyze",
    "arun",
    "fork",
    "judge",
    "load_decisions",
    "load_events",
    "load_payoffs",
    "load_players",
    "load_runs",
    "load_scores",
    "profile",
    "replay",
    "report",
    "resume",
    "run",
    "screen",
    "study",
]


def __getattr__(name: str) -> Any:
    # Imported when first used: `labmates --help` must not wait for LangGraph and pandas.
    if name in __all__:
        from labmates import api

        return getattr(api, name)
    raise AttributeError(f"module 'labmates' has no attribute '{name}'")
