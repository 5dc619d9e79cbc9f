"""A small folder in the form of CoopEval's published data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

AGENTS: list[dict[str, Any]] = [{"llm": {"model": f"lab/{name}"}, "type": "CoTAgent"} for name in ("dove", "hawk")]
NAMES = ("lab/dove(CoT)", "lab/hawk(CoT)")
PAYOFFS = ((2, 2), (0, 3), (3, 0), (1, 1))
"""Of the matches of two agents: doves cooperate, hawks don't."""
SEATS = ((0, 0), (0, 1), (1, 0), (1, 1))


def moves(seats: tuple[int, int], payoffs: tuple[int, int], **more: Any) -> list[dict[str, Any]]:
    """Return the recorded moves of one round."""
    return [
        {
            "player": f"{NAMES[model]}#P{at}",
            "action": f"PrisonersDilemmaAction.{('COOPERATE', 'DEFECT')[model]}",
            "points": points,
            **more,
        }
        for at, (model, points) in enumerate(zip(seats, payoffs, strict=True), 1)
    ]


def published(folder: Path, run: str, mechanism: str = "NoMechanism", **files: object) -> Path:
    """Write a cell, two agents in a prisoner's dilemma; other files as given, a text as it is, None for no file."""
    matches = list(zip(SEATS, PAYOFFS, strict=True))
    profile = [{"players": [AGENTS[seat] for seat in seats], "payoffs": [[payoffs]]} for seats, payoffs in matches]
    by_agent = {
        name: dict(zip(NAMES, values, strict=True))
        for name, values in {"agent_average_payoff": (1.0, 2.0), "deviation_ratings": (-1.0, 0.0)}.items()
    }
    data = {
        "config": {"game": {"type": "PrisonersDilemma"}, "mechanism": {"type": mechanism}, "agents": AGENTS},
        "matchup_payoffs": {"discount": 1.0, "profile": profile},
        "records": "\n".join(json.dumps(moves(*match)) for match in matches),
        **by_agent,
        **files,
    }
    place = folder / run / f"{mechanism}_prisoners"
    place.mkdir(parents=True)
    for name, value in data.items():
        if value is not None:
            path = place / (f"{name}.jsonl" if name == "records" else f"{name}.json")
            path.write_text(value if isinstance(value, str) else json.dumps(value))
    return place
