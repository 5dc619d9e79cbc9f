"""The numbers that code states, which it therefore does not compute."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

from labmates.judges.rows import NOTHING, read_numbers, words_of
from labmates.util.python_text import statements

SHORT: Final = 3
"""Most letters of a word that tells nothing of what a text of the code is about."""
LONG: Final = 4
"""Digits of a stated number that may be printed rounded."""

Told = dict[float, list[frozenset[str]]]
"""The numbers in texts of code, with the longer words of each text."""


def is_telling(value: float) -> bool:
    """Whether a number is long enough not to agree with a computed one by chance."""
    return value % 1 != 0 or abs(value) >= 100


def literals(code: str) -> tuple[set[float], Told, frozenset[str]]:
    """Numbers that code states: those with decimals or three digits; all in its texts, with the words of each; words.

    A number that is printed as it stands, also under a name, or is an entry of a dict, counts as one of a text.
    """
    if (read := statements(code)) is None:
        return set(), {number.value: [NOTHING] for number in read_numbers(code)}, words_of(code)
    nodes = [node for statement in read for node in ast.walk(statement)]
    constants = [node.value for node in nodes if isinstance(node, ast.Constant)]
    plain = [value for value in constants if isinstance(value, int | float) and not isinstance(value, bool)]
    texts = [value for value in constants if isinstance(value, str)]
    shown = [value for node in nodes for value in _as_it_stands(node)]
    named = {value.id for value in shown if isinstance(value, ast.Name)}
    shown += [node.value for node in nodes if isinstance(node, ast.Assign) and named & _plain_names(node.targets)]
    direct = [value for value in shown if isinstance(value, ast.Constant)]
    told: Told = {}
    for text in [*texts, *(str(value.value) for value in direct)]:
        words = frozenset(word for word in words_of(text) if len(word) > SHORT and not word.isdigit())
        for number in read_numbers(text):
            told.setdefault(number.value, []).append(words)
    exact = {float(n) for n in plain if is_telling(n)}
    rounded = {
        round(n, places)
        for n in exact
        if len(f"{abs(n):g}".replace(".", "").lstrip("0")) >= LONG
        for places in (1, 2, 3)
    }
    return exact | rounded, told, words_of(" ".join(texts))


def _plain_names(targets: Sequence[ast.expr]) -> set[str]:
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _as_it_stands(node: ast.AST) -> list[ast.expr]:
    """What a call of print, a dict or a formatted text holds."""
    match node:
        case ast.FormattedValue(value=value):
            return [value]
        case ast.Call(func=ast.Name("print"), args=args):
            return args
        case ast.Dict(values=values):
            return values
    return []
