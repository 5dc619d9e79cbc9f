"""Reference strategies with known behaviour, as code like other strategies.

The first five are from the paper (section 4.2), with its names A-C, A-D, Rnd(p), CC(n) and CD(n).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from labmates.errors import UsageError, unknown_name

PREFIX = "reference:"


@dataclass(frozen=True)
class Reference:
    """A reference strategy.

    Attributes
    ----------
    title
        Its behaviour in a sentence.
    body
        The code of a decision; ``{p}`` stands for the parameter.
    parameter
        Name of the parameter; empty if there is none.
    cooperates
        Whether it falls back to cooperation.
    """

    title: str
    body: str
    parameter: str = ""
    cooperates: bool = False


REFERENCES: dict[str, Reference] = {
    "cooperate": Reference("Cooperates always.", "return C", cooperates=True),
    "defect": Reference("Defects always.", "return D"),
    "random": Reference("Cooperates with probability P.", "return C if random.random() < {p} else D", "P"),
    "cc": Reference(
        "Cooperates first, then if at least N others did in the last round.",
        "return C if t == 0 or history.opponent_cooperators[-1] >= {p} else D",
        "N",
        cooperates=True,
    ),
    "cd": Reference(
        "Defects first, then if at least N others cooperated in the last round.",
        "return D if t == 0 or history.opponent_cooperators[-1] >= {p} else C",
        "N",
    ),
    "grim": Reference(
        "Cooperates until anybody defects, then never again.",
        "return C if all(history.opponent_cooperators == self.n - 1) else D",
        cooperates=True,
    ),
    "majority": Reference(
        "Cooperates first, then if at least half of the others did in the last round.",
        "return C if t == 0 or 2 * history.opponent_cooperators[-1] >= self.n - 1 else D",
        cooperates=True,
    ),
    "last-defect": Reference(
        "Cooperates in all rounds but the last.", "return C if t < self.rounds - 1 else D", cooperates=True
    ),
    "action": Reference("Takes action A always, in games of named actions (0 is the first).", "return {p}", "A"),
    "alternate": Reference("Cooperates in every other round, first in the first.", "return C if t % 2 == 0 else D"),
    "win-stay": Reference(
        "Cooperates first; repeats an action that paid more than the one before, else switches.",
        "return C if t == 0 else (C if history.my_actions[-1] else D)"
        " if t == 1 or history.my_payoffs[-1] >= history.my_payoffs[-2] else (D if history.my_actions[-1] else C)",
    ),
}
"""All reference strategies by name."""

_HEAD = "import random\nfrom labmates.strategies import C, D, BaseStrategy\n"
_CLASS = """
class {name}(BaseStrategy):
    def __init__(self, game_description):
        self.n, self.rounds = game_description.n_players, game_description.n_rounds

    def __call__(self, history):
        t = history.round_number
        {body}
"""
_GIVEN = re.compile(r"(?P<name>[a-z-]+?)(-(?P<value>\d+(\.\d+)?))?$")


def reference_source(names: Sequence[str]) -> str:
    """A file with reference strategies such as ``"random-0.5"`` or ``"cc-2"``, with class names by `class_name`.

    Raises
    ------
    UsageError
        If there is no such strategy, or its parameter is missing or wrong.
    """
    return _HEAD + "".join(_CLASS.format(name=class_name(name), body=_body(name)) for name in dict.fromkeys(names))


def class_name(name: str) -> str:
    """The name of the class of a reference strategy."""
    reference, _ = _read(name)
    return f"Strategy_{'COLLECTIVE' if reference.cooperates else 'SELFISH'}_0_" + re.sub(r"\W", "_", name)


def _body(name: str) -> str:
    reference, value = _read(name)
    return reference.body.format(p=value)


def _read(name: str) -> tuple[Reference, str]:
    found = _GIVEN.match(name)
    if found is None or found["name"] not in REFERENCES:
        raise unknown_name("reference strategy", name, [_spelled(reference) for reference in REFERENCES])
    reference, value = REFERENCES[found["name"]], found["value"]
    if bool(reference.parameter) != (value is not None):
        raise UsageError(f"the reference strategy is written {_spelled(found['name'])}, not '{name}'")
    if reference.parameter == "P" and float(value) > 1:
        raise UsageError(f"the probability of the reference strategy '{name}' must be from 0 to 1")
    if reference.parameter in ("N", "A") and not value.isdigit():
        raise UsageError(f"the number in the name of the reference strategy '{name}' must be a whole number")
    return reference, value or ""


def _spelled(name: str) -> str:
    parameter = REFERENCES[name].parameter
    return f"{name}-{parameter}" if parameter else name
