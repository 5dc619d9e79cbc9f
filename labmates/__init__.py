"""labmates measures how well teams of language-model agents work together."""

from __future__ import annotations

from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING, Any

from labmates._version import __version__
from labmates.errors import LabmatesError, UsageError

if TYPE_CHECKING:
    from labmates.api import (
        ajudge,
        analyze,
        arun,
        compare,
        fork,
        judge,
        load,
        plan,
        replay,
        report,
        resume,
        run,
        show,
        study,
    )
    from labmates.budgets.shared_budget import SharedBudget
    from labmates.games.base import Game
    from labmates.judges.base import Judge
    from labmates.mechanisms.base import Mechanism
    from labmates.studies.result import Run
    from labmates.tasks.base import Task
    from labmates.workflows.protocol.analysis import Analysis, Result
    from labmates.workflows.protocol.experiment import Condition, Experiment

__path__ = extend_path(__path__, __name__)  # other packages may bring modules of this name

__all__ = [
    "Analysis",
    "Condition",
    "Experiment",
    "Game",
    "Judge",
    "LabmatesError",
    "Mechanism",
    "Result",
    "Run",
    "SharedBudget",
    "Task",
    "UsageError",
    "__version__",
    "ajudge",
    "analyze",
    "arun",
    "compare",
    "fork",
    "judge",
    "load",
    "plan",
    "replay",
    "report",
    "resume",
    "run",
    "show",
    "study",
]

_HOMES = {
    "Analysis": "labmates.workflows.protocol.analysis",
    "Condition": "labmates.workflows.protocol.experiment",
    "Experiment": "labmates.workflows.protocol.experiment",
    "Game": "labmates.games.base",
    "Judge": "labmates.judges.base",
    "Mechanism": "labmates.mechanisms.base",
    "Result": "labmates.workflows.protocol.analysis",
    "Run": "labmates.studies.result",
    "SharedBudget": "labmates.budgets.shared_budget",
    "Task": "labmates.tasks.base",
}
"""Modules of the public types; all other names are in `labmates.api` or belong to a verb."""

_VERBS = "labmates.workflows.protocol.verb"


def __getattr__(name: str) -> Any:
    # Imported when first used: `labmates --help` must not wait for LangGraph and pandas.
    if name in __all__ or (not name.startswith("_") and name in import_module(_VERBS).VERBS):
        return getattr(import_module(_HOMES.get(name, "labmates.api")), name)
    raise AttributeError(f"module 'labmates' has no attribute '{name}'")


def __dir__() -> list[str]:
    """The public names, and the functions of verbs: shells complete them."""
    api, look_at_all = import_module("labmates.api"), import_module("labmates.registry").look_at_all
    brought = look_at_all(import_module(_VERBS).VERBS, lambda name: hasattr(api, name), lambda _: None)
    return sorted({*__all__, *(name for name, is_function in brought.items() if is_function)})
