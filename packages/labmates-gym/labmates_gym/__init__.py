"""Environments for reinforcement learning, played by the engine of labmates.

verifiers finds its environment, its tasks and its harness here by the name ``labmates-gym``.
"""

from typing import Any

__all__ = ["GymEnv", "GymTaskset", "SeatHarness"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from labmates_gym import rollouts

    return getattr(rollouts, name)
