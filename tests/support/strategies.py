"""Strategies to test with: a file with one class, of which only the interesting part is written out."""

from __future__ import annotations

import textwrap
from pathlib import Path

HEAD = """import math
import random
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from emergent_llm.common import Action, C, D, GameState, PlayerHistory
from emergent_llm.games import CollectiveRiskDescription, CommonPoolDescription, CommonPoolState, PublicGoodsDescription
from emergent_llm.players import BaseStrategy
"""


def strategy(body: str, *, name: str = "Strategy_SELFISH_1", init: str = "pass", arguments: str = "history") -> str:
    """Return a class whose decision has this body."""
    return (
        f"\nclass {name}(BaseStrategy):\n    def __init__(self, game_description):\n"
        f"        self.game_description = game_description\n{textwrap.indent(textwrap.dedent(init), ' ' * 8)}\n"
        f"    def __call__(self, {arguments}):\n{textwrap.indent(textwrap.dedent(body), ' ' * 8)}\n"
    )


def write(folder: Path, *classes: str, file: str = "model.py") -> Path:
    """Write a file of strategies and return its path."""
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + "".join(classes), encoding="utf-8")
    return path


def library(folder: Path, game: str, **models: dict[str, str]) -> Path:
    """Write a library: for each model, the body of the decision of each of its attitudes' strategies."""
    for model, attitudes in models.items():
        classes = [
            strategy(body, name=f"Strategy_{attitude.upper()}_{number}", arguments="history, *stock")
            for attitude, body in attitudes.items()
            for number in range(1, 9)
        ]
        write(folder / game, *classes, file=f"{model}.py")
    return folder


def write_library(folder: Path) -> None:
    """Write the strategies that the ready studies of populations need."""
    for game in ("public-goods", "collective-risk", "common-pool"):
        names = (f"Strategy_{kind}_{number}" for kind in ("COLLECTIVE", "EXPLOITATIVE") for number in range(1, 257))
        write(folder / game, *(strategy("return C", name=name) for name in names), file="gpt.py")
