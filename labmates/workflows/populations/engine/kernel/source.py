"""Files of strategies, read without running anything: which classes they hold, and what can be said of each."""

from __future__ import annotations
import __future__

import ast
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from types import CodeType
from typing import Any

from labmates.workflows.populations.engine.kernel.static import draws, names_of_chance, nodes_of, problems_of, shares

_NAMED = re.compile(r"Strategy_(?P<attitude>[A-Za-z]+)_(?P<number>\d+)$")
_MOST_CLASSES = 20_000


@dataclass(frozen=True)
class Found:
    """What is known of a strategy's class.

    Attributes
    ----------
    name
        The name of the class.
    line
        Where it begins.
    attitude, number
        As its name says; empty and 0 for a class of another name.
    paper
        Whether it is of the paper's form.
    random
        Whether it may draw random numbers; if not, it declares to be deterministic.
    shares
        Whether it may keep something beyond one player, so that it is made anew for each.
    arguments
        How many arguments a decision has: 1 for the history, 2 with a stock or a state.
    problems
        What the static checks find wrong; a class with problems is never run.
    """

    name: str
    line: int
    attitude: str
    number: int
    paper: bool
    random: bool
    shares: bool
    arguments: int
    problems: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as an object of JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Code:
    """A strategy's class that can be made.

    Attributes
    ----------
    before
        What stands in the file before and between its strategies.
    body
        The class itself.
    source
        Its text, to see which parts of a history it asks for.
    """

    found: Found
    before: CodeType
    body: CodeType
    source: str


class UnreadableError(Exception):
    """A file is no Python that can be read."""


def read_source(text: str, name: str) -> Iterator[Code | Found]:
    """Return the strategies of a file: those whose checks found something as what is known of them alone.

    Raises
    ------
    UnreadableError
        If the file is no Python, or too much of it.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        what = error.msg if isinstance(error, SyntaxError) else str(error) or type(error).__name__
        raise UnreadableError(f"{name} can't be read as Python{line}: {what}") from error
    lines = text.splitlines(keepends=True)
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    strategies = [node for node in classes if _is_strategy(node)]
    if len(strategies) > _MOST_CLASSES:
        raise UnreadableError(f"{name} holds {len(strategies)} strategies; at most {_MOST_CLASSES} are allowed")
    rest = [node for node in tree.body if node not in strategies] if len(strategies) < 4 else _without(tree, strategies)
    before = ast.Module(body=rest, type_ignores=[])
    chance = names_of_chance(node for node in rest if isinstance(node, (ast.Import, ast.ImportFrom)))
    shared_source = "".join(_text(lines, node) for node in rest if not isinstance(node, (ast.Import, ast.ImportFrom)))
    try:
        shared_nodes = nodes_of(before)
        problems = problems_of(shared_nodes, len(shared_source))
        shared = shares(before, shared_nodes)
        code = _compiled(before, name)
        for node in strategies:
            source = _text(lines, node)
            nodes = nodes_of(node)
            own = problems_of(nodes, len(source))
            random = draws(source + shared_source, chance)
            found = _found(node, random, [*problems, *own], shared or shares(node, nodes))
            if found.problems:
                yield found
            else:
                body = _compiled(ast.Module(body=[node], type_ignores=[]), name)
                yield Code(found, code, body, source + shared_source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableError(f"{name} can't be compiled: {error}") from error


def _compiled(tree: ast.Module, name: str) -> CodeType:
    # Annotations are not evaluated: nothing of what a strategy does depends on them.
    flags = __future__.annotations.compiler_flag
    code: CodeType = compile(tree, name, "exec", flags=flags, dont_inherit=True)
    return code


def _without(tree: ast.Module, strategies: list[ast.ClassDef]) -> list[ast.stmt]:
    left_out = set(map(id, strategies))
    return [node for node in tree.body if id(node) not in left_out]


def _text(lines: list[str], node: ast.stmt) -> str:
    return "".join(lines[node.lineno - 1 : node.end_lineno])


def _is_strategy(node: ast.ClassDef) -> bool:
    """Whether a class is a strategy: it says so by its name or its base, or it can be called."""
    bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
    return bool(_NAMED.match(node.name)) or "BaseStrategy" in bases


def _found(node: ast.ClassDef, random: bool, problems: list[str], shared: bool) -> Found:
    named = _NAMED.match(node.name)
    methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef)}
    call = methods.get("__call__")
    if call is None:
        problems.append(f"line {node.lineno}: has no method __call__")
    names = [one.arg for one in [*call.args.posonlyargs, *call.args.args]][1:] if call is not None else ["history"]
    if call is not None and not 1 <= len(names) <= 2 and call.args.vararg is None:
        problems.append(f"line {call.lineno}: a decision has {len(names)} arguments, not a history and perhaps a stock")
    return Found(
        name=node.name,
        line=node.lineno,
        attitude=named["attitude"].lower() if named else "",
        number=int(named["number"]) if named else 0,
        paper=call is not None and _is_paper(call, names),
        random=random,
        shares=shared,
        arguments=max(1, len(names)),
        problems=tuple(dict.fromkeys(problems)),
    )


def _is_paper(call: ast.FunctionDef, names: list[str]) -> bool:
    """Whether a decision is asked for with a state first, then the history."""
    if len(names) != 2:
        return False
    first = [*call.args.posonlyargs, *call.args.args][1]
    said = ast.unparse(first.annotation) if first.annotation is not None else ""
    return names[0] in ("state", "game_state", "_state") or said.strip("'\"").endswith("State") or names[1] == "history"
