"""Payoffs of a user's own game from YAML, by the actions of the other players.

A file for cooperators and defectors has two lists. With three players::

    cooperate: [0, 2, 4]  # payoff of a cooperator when 1, 2, 3 cooperate
    defect: [1, 1, 1]     # payoff of a defector when 0, 1, 2 cooperate

or, for two players, the payoffs of the row player: ``matrix: [[3, 0], [5, 1]]`` (cooperation first).

A game of named actions has their names, and a matrix for two players or, for more, the payoffs of each action by the
number of other players with each action. With three players and two actions::

    actions: [hunt, gather]
    counts:  # others who hunt, others who gather: payoff of a hunter, payoff of a gatherer
      "2 0": [4, 1]
      "1 1": [0, 1]
      "0 2": [0, 1]

Other packages add payoffs by name (`PAYOFFS`).
"""

from __future__ import annotations

import json
import math
import sys
from itertools import islice
from pathlib import Path
from typing import Any

from labmates.errors import UsageError
from labmates.registry import Registry
from labmates.util.bounded_yaml import compose_yaml, yaml_value
from labmates_populations.repeated import MOST_ACTIONS, MOST_COMPOSITIONS, MOST_PLAYERS, compositions

PAYOFFS: Registry[Any] = Registry("payoffs", "labmates.payoffs")
"""Payoffs of other packages: the path of a YAML file, the content of one, or a function that takes a number of players
and returns either; its name is then followed by the number, as in ``volunteers:5``."""

_EXAMPLE = "cooperate: [0, 2, 4] and defect: [1, 1, 1], or matrix: [[3, 0], [5, 1]]"


def read_payoffs(value: str) -> str:
    """The payoffs as JSON with both lists, or with actions and table, from a name, a YAML file or YAML text.

    Raises
    ------
    ValueError
        If the file can't be read, or its payoffs are invalid.
    """
    name, _, players = value.partition(":")
    if value.lstrip().startswith("{"):
        return _checked(_parsed(value))
    if name not in PAYOFFS:
        return _checked(_of_file(value))
    with PAYOFFS.guarded(name, "can't be used"):
        entry = PAYOFFS.get(name)
        if callable(entry) != bool(players):
            needs = "needs a" if callable(entry) else "takes no"
            raise UsageError(f"'{name}' {needs} number of players ({name}{':4' if callable(entry) else ''})")
        if callable(entry):
            if not (players.isascii() and players.isdecimal() and 2 <= int(players[:9]) <= MOST_PLAYERS):
                raise UsageError(f"'{players}' is not a number of players from 2 to {MOST_PLAYERS}")
            entry = entry(int(players))
        # Tuples, arrays and whole numbers as keys become what YAML has.
        return _checked(
            _of_file(str(entry)) if isinstance(entry, str | Path) else json.loads(json.dumps(entry, default=_plain))
        )


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise UsageError(f"payoffs are numbers, lists and mappings, not {value!r:.80}")


def _of_file(path: str) -> Any:
    try:
        return _parsed(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        names = f"; payoffs by name: {', '.join(PAYOFFS)}" if PAYOFFS.names() else ""
        raise ValueError(f"{path} can't be read: {error.strerror}{names}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} can't be read: it is not UTF-8") from error


def _parsed(text: str) -> Any:
    import yaml

    try:
        return yaml_value(compose_yaml(text))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ValueError(f"not YAML: {' '.join(str(error).split())[:200]}") from error


def _checked(data: Any) -> str:
    return json.dumps(_named(data) if isinstance(data, dict) and "actions" in data else _lists(data))


def _named(data: dict[Any, Any]) -> dict[str, Any]:
    """The names of the actions, and for each the payoffs by composition of the others."""
    actions = data.get("actions")
    if not isinstance(actions, list) or not all(isinstance(name, str) and name.strip() for name in actions):
        raise ValueError("actions: a list of names, for instance [rock, paper, scissors]")
    if len(set(actions)) != len(actions) or not 2 <= len(actions) <= MOST_ACTIONS:
        raise ValueError(f"actions: 2 to {MOST_ACTIONS} different names")
    if set(data) == {"actions", "table"}:  # older conditions
        return {"actions": actions, "table": _rows(data["table"], len(actions), "table")}
    if set(data) == {"actions", "matrix"}:
        rows = _rows(data["matrix"], len(actions), "matrix")
        if any(len(row) != len(actions) for row in rows):
            raise ValueError(f"matrix: {len(actions)} rows of {len(actions)} payoffs, one for each action")
        return {"actions": actions, "table": rows}
    if set(data) != {"actions", "counts"} or not isinstance(data["counts"], dict):
        raise ValueError("a game of named actions needs 'actions' and a 'matrix' or 'counts' of payoffs")
    return {"actions": actions, "table": _by_counts(data["counts"], len(actions))}


def _by_counts(counts: dict[Any, Any], actions: int) -> list[list[float]]:
    """The payoffs of each action, from lists of all actions' payoffs by composition of the others."""
    try:
        given = {tuple(map(int, str(key).split())): key for key in counts}
        others = sum(next(iter(given)))
        wanted = list(islice(compositions(others, actions), MOST_COMPOSITIONS)) if 1 <= others < MOST_PLAYERS else []
    except (ValueError, StopIteration):
        given, wanted = {}, []
    if not wanted or set(given) != set(wanted) or len(given) != len(counts):
        raise ValueError(
            f"counts: a key for each way in which the others can share {actions} actions, for instance "
            f'"{" ".join("1" if not place else "0" for place in range(actions))}" for one other'
        )
    columns = _rows([counts[given[composition]] for composition in wanted], len(wanted), "counts")
    if any(len(column) != actions for column in columns):
        raise ValueError(f"counts: {actions} payoffs for each key, one for each action")
    return [list(row) for row in zip(*columns, strict=True)]


def _rows(data: Any, count: int, name: str) -> list[list[float]]:
    if not isinstance(data, list) or len(data) != count or not all(isinstance(row, list) for row in data):
        raise ValueError(f"{name}: {count} lists of payoffs")
    if not all(_is_number(payoff) for row in data for payoff in row):
        raise ValueError(f"{name}: finite numbers")
    return [[float(payoff) for payoff in row] for row in data]


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
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def players_of(payoffs: str) -> int:
    """The number of players for payoffs of named actions."""
    rules = rules_of(payoffs)
    actions, columns = len(rules["actions"]), len(rules["table"][0])
    return next(n for n in range(2, MOST_PLAYERS + 1) if math.comb(n - 2 + actions, actions - 1) >= columns)


def rules_of(payoffs: str | None) -> dict[str, Any]:
    """The rules of ``by-count`` or ``by-action`` with these payoffs; empty without payoffs."""
    return {} if payoffs is None else dict(json.loads(payoffs))
