"""The ways to play a strategy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

COMPILED = "compiled"
"""As compiled Python, in a process that all compiled strategies share."""
PROCESS = "process"
"""As ordinary Python, in a process that the strategy's players share."""
WAYS = (COMPILED, PROCESS)
"""From the fastest to the slowest."""
_TOLD = {COMPILED: "compiled", PROCESS: "in one process per strategy"}
_MOST_LINES = 20


def slower(whys: Mapping[str, str]) -> Iterator[str]:
    """Lines that say which strategies are not compiled, and why; `whys` are the reasons by name."""
    for name, why in list(whys.items())[:_MOST_LINES]:
        yield f"{name}: played {_TOLD[PROCESS]} ({why})"
    if len(whys) > _MOST_LINES:
        yield f"{len(whys) - _MOST_LINES} more are played {_TOLD[PROCESS]}; --json says why"


def told(ways: Mapping[str, int], costs: Mapping[str, float] | None = None) -> str:
    """How many strategies are played how, and the microseconds that a decision takes, if they are known."""
    costs = costs or {}
    parts = [f"{ways[way]} {_TOLD[way]}" + (f" ({costs[way]:.1f} µs a decision)" if way in costs else "")
             for way in WAYS if ways.get(way)]  # fmt: skip
    return f"played {', '.join(parts)}"
