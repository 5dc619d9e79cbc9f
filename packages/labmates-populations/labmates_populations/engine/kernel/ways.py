"""The ways to play a strategy."""

from __future__ import annotations

from collections.abc import Mapping

COMPILED = "compiled"
"""As compiled Python, in a process that all compiled strategies share."""
PROCESS = "process"
"""As ordinary Python, in a process that the strategy's players share."""
PROCESSES = "process per player"
"""As any Python, in a process for each of the strategy's players."""
WAYS = (COMPILED, PROCESS, PROCESSES)
"""From the fastest to the slowest."""
_TOLD = {
    COMPILED: "compiled",
    PROCESS: "in one process per strategy",
    PROCESSES: "in one process per player",
}


def slower(way: str) -> str:
    """What a slower way to play is."""
    return f"played {_TOLD[way]}"


def told(ways: Mapping[str, int], costs: Mapping[str, float] | None = None) -> str:
    """How many strategies are played how, and the microseconds that a decision takes, if they are known."""
    costs = costs or {}
    parts = [f"{ways[way]} {_TOLD[way]}" + (f" ({costs[way]:.1f} µs a decision)" if way in costs else "")
             for way in WAYS if ways.get(way)]  # fmt: skip
    return f"played {', '.join(parts)}"
