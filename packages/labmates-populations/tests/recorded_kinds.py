"""The recorded runs of this package's kinds, for the core's tests of all kinds (`tests.support.recorded`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.recorded import OtherKind
from tests.support.strategies import library

BODIES = {"collective": "return C", "exploitative": "return D if history.round_number else C"}


def population(folder: Path) -> dict[str, Any]:
    """Parameters of games of a library with two strategies."""
    place = folder / "strategies"
    return {"strategies": str(place if place.exists() else library(place, "public-goods", one=BODIES)), "rounds": 3}


KINDS: Mapping[str, OtherKind] = {
    "selfplay": OtherKind(
        lambda folder: {"game": "public-goods", "samples": 4, **population(folder)},
        told="Mixtures|share of selfish players|Welfare|How strategies were played",
        forged={"invalid": "nobody likes it"},
        field="invalid",
    ),
    "evolution": OtherKind(
        lambda folder: {"game": "public-goods", "population": 16, "elite": 4, "generations": 4, **population(folder)},
        told="Generations|one/collective|Most frequent at the end|Cooperation|How strategies were played",
        forged={"metrics": "error_rate"},
        field="metrics.error_rate",
    ),
    "mixedplay": OtherKind(
        lambda folder: {
            "game": "public-goods",
            "model": "scripted:conditional",
            "groups": 1,
            **population(folder),
        },
        told="one:Strategy_|chat cooperation|Earnings of each player",
        forged={"metrics": "error_rate"},
        field="metrics.error_rate",
    ),
    "strategies": OtherKind(
        lambda _: {"model": "scripted:author", "game": "public-goods", "attitude": "collective", "number": 1},
        told="Strategies|Strategy_COLLECTIVE_1|def __call__",
        forged={"models": ["scripted:author", "openai:gpt"]},
        field="models",
    ),
}
