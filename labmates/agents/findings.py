"""Findings stated by agents, and their schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stated:
    """Findings stated by an agent.

    Attributes
    ----------
    values
        The stated fields, as JSON data.
    repaired
        Format repairs, as JSON data.
    answer
        The tool's answer to the agent.
    """

    values: Mapping[str, Any]
    repaired: tuple[Mapping[str, str], ...]
    answer: str


@dataclass(frozen=True, eq=False)
class FindingsForm:
    """The form of a project's findings.

    Attributes
    ----------
    parameters
        JSON schema of the fields.
    check
        Parses the arguments of a call; raises `tools.ToolError` if they are invalid.
    """

    parameters: Mapping[str, Any]
    check: Callable[[Mapping[str, Any]], Stated]
