"""Attitudes: what a strategy's author was asked to be like."""

from __future__ import annotations

from typing import Literal

Base = Literal["collective", "selfish"]

ATTITUDES: dict[str, Base] = {
    "collective": "collective",
    "prosocial": "collective",
    "altruistic": "collective",
    "benevolent": "collective",
    "communal": "collective",
    "cooperative": "collective",
    "selfish": "selfish",
    "selfinterested": "selfish",
    "opportunistic": "selfish",
    "individualistic": "selfish",
    "exploitative": "selfish",
    "aggressive": "selfish",
}
"""All attitudes, and whether each wishes well to all or to itself alone."""


def falls_back_to_cooperation(attitude: str | None) -> bool:
    """Whether a strategy that gives no usable answer cooperates: where its author was to wish well to all."""
    return ATTITUDES.get(attitude or "", "selfish") == "collective"


def spelled(attitude: str) -> str:
    """An attitude as prompts have it; names of classes have letters alone."""
    return "self-interested" if attitude == "selfinterested" else attitude
