"""Payoffs of a user's own game of cooperators and defectors, by how many cooperate, from YAML.

A file has two lists. With three players::

    cooperate: [0, 2, 4]  # what a cooperator gets when 1, 2, 3 cooperate
    defect: [1, 1, 1]     # what a defector gets when 0, 1, 2 cooperate

or, for two players, what the player in the row gets: ``matrix: [[3, 0], [5, 1]]`` (cooperation first).
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from labmates.bounded_yaml import compose_yaml
from labmates.games.repeated import MOST_PLAYERS

_EXAMPLE = "cooperate: [0, 2, 4] and defect: [1, 1, 1], or matrix: [[3, 0], [5, 1]]"


def read_payoffs(value: str) -> str:
    """The payoffs as JSON with both lists, from a file of YAML or from such a text.

    Raises
    ------
    ValueError
        If the file can't be read, or does not hold such payoffs.
    """
    import yaml

    text = value
    if not value.lstrip().startswith("{"):
        try:
            text = Path(value).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{value} can't be read: {getattr(error, 'strerror', 'it is not UTF-8')}") from error
    try:
        compose_yaml(text)
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"not YAML: {' '.join(str(error).split())[:200]}") from error
    return json.dumps(_lists(data))


def _lists(data: Any) -> dict[str, list[float]]:
    if not isinstance(data, dict) or set(data) not in ({"cooperate", "defect"}, {"matrix"}):
        raise ValueError(f"payoffs need two lists by the number of cooperators, or a matrix ({_EXAMPLE})")
    if "matrix" in data:
        rows = data["matrix"]
        if not isinstance(rows, list) or len(rows) != 2 or any(not isinstance(r, list) or len(r) != 2 for r in rows):
            raise ValueError("matrix: two rows of two payoffs, [[CC, CD], [DC, DD]]")
        data = {"cooperate": rows[0][::-1], "defect": rows[1][::-1]}
    for name, payoffs in data.items():
        if not isinstance(payoffs, list) or not all(map(_is_number, payoffs)):
            raise ValueError(f"{name}: a list of finite numbers")
    players = len(data["cooperate"])
    if len(data["defect"]) != players or not 2 <= players <= MOST_PLAYERS:
        raise ValueError(f"cooperate and defect need as many payoffs as there are players, 2 to {MOST_PLAYERS}")
    return {name: [float(payoff) for payoff in data[name]] for name in ("cooperate", "defect")}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def rules_of(payoffs: str | None) -> dict[str, Any]:
    """The rules of the game ``by-count`` with these payoffs; none where there are none."""
    return {} if payoffs is None else dict(json.loads(payoffs))
