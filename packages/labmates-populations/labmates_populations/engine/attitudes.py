"""Attitudes: the disposition that a strategy's author was asked to express."""

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
"""All attitudes, each prosocial (collective) or selfish."""


def falls_back_to_cooperation(attitude: str | None) -> bool:
    """Whether a strategy without a usable answer cooperates: if its attitude is collective."""
    return ATTITUDES.get(attitude or "", "selfish") == "collective"


def spelled(attitude: str) -> str:
    """An attitude as spelled in prompts; names of classes have only letters."""
    return "self-interested" if attitude == "selfinterested" else attitude
