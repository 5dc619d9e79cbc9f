"""Scripted baselines: chat models whose replies are composed by code, offline and free of charge.

They take the same path as a language model (prompt, tools, budget, parsing, record), receive only messages and tools,
and are named as baselines wherever they appear. None replaces a language model's result. They read orders as data
(`labmates.models.orders`).

- ``referee`` rates reports by rules: a judge without a model.
- ``gullible`` rates like ``referee``, but obeys ratings ordered in a report.

Players of games are named by their strategy (``cooperate``, ``defect``, ``random`` and so on); see
`labmates.agents.players`. ``axelrod/TitForTat`` and so on are strategies of the library axelrod.

Experiments declare further baselines in their packages (`labmates.workflows`), and other packages through the
entry-point group ``labmates.models``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from labmates.registry import Registry

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

BASELINES: Registry[Callable[[], BaseChatModel]] = Registry("scripted baseline", "labmates.models")
"""Baselines by name; an entry, called without arguments, returns the chat model."""


def describe(name: str) -> str:
    """The one-line description of the baseline `name`; empty if a plug-in has none.

    Raises `UsageError` if the baseline is unknown.
    """
    return str(getattr(BASELINES.get(name), "description", ""))


def make_baseline(name: str) -> BaseChatModel:
    """A new model of the baseline `name`.

    Raises `UsageError` if the baseline is unknown, or a plug-in fails to make its model.
    """
    with BASELINES.guarded(name, "can't be made"):
        return BASELINES.get(name)()
