"""Stating findings: the instructions for agents, and the handling of a statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stated:
    """Findings that an agent stated.

    Attributes
    ----------
    values
        The fields that are stated, as JSON data.
    repaired
        What was mended in their form, as JSON data.
    told
        What the agent is told.
    """

    values: Mapping[str, Any]
    repaired: tuple[Mapping[str, str], ...]
    told: str


@dataclass(frozen=True)
class FindingsForm:
    """The form of a project's findings.

    Attributes
    ----------
    parameters
        Their fields as a JSON schema.
    check
        Returns what is stated by the arguments of a call; raises `desk.ToolError` if they are not valid.
    """

    parameters: Mapping[str, Any]
    check: Callable[[Mapping[str, Any]], Stated]
