"""Findings stated by agents, and their schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stated:
    """Findings stated by an agent."""

    values: Mapping[str, Any]  # the stated fields, as JSON data
    repaired: tuple[Mapping[str, str], ...]  # format repairs, as JSON data
    answer: str  # the tool's answer to the agent


@dataclass(frozen=True, eq=False)
class FindingsForm:
    """The form of a project's findings."""

    parameters: Mapping[str, Any]  # JSON schema of the fields
    # Parses the arguments of a call; raises `tools.ToolError` if they are invalid.
    check: Callable[[Mapping[str, Any]], Stated]
