"""Static checks: forbidden operations of a strategy, reported before it runs.

They are no protection: a strategy's access is limited only by its process (`confine`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator

from labmates_populations.engine.kernel.exposed import EXPOSED
from labmates_populations.engine.kernel.names import MODULES

_FORBIDDEN_NAMES = frozenset({
    "__builtins__", "__import__", "__loader__", "__spec__", "breakpoint", "compile", "dir", "eval", "exec", "exit",
    "globals", "help", "input", "locals", "memoryview", "open", "quit", "vars",
})  # fmt: skip
_MODULES = MODULES | EXPOSED.keys()
_ALLOWED = f"; allowed are {', '.join(sorted(name for name in _MODULES if name[0] != '_' and '.' not in name))}"
MOST_CHARACTERS = 200_000

Problem = tuple[int, str]
"""A line and its problem."""


def problems_of(statements: Iterable[ast.stmt], size: int) -> list[str]:
    """Problems of a strategy's code (a class, or the code before the classes of a file) of `size` characters."""
    if size > MOST_CHARACTERS:
        return [f"has {size} characters; at most {MOST_CHARACTERS} are allowed"]
    found = {problem for statement in statements for node in ast.walk(statement) for problem in _of(node)}
    return [f"line {line}: {what}" for line, what in sorted(found)]


def _of(node: ast.AST) -> Iterator[Problem]:
    match node:
        case ast.Import(names=names):
            unknown = [alias.name for alias in names if alias.name not in _MODULES]
            yield from ((node.lineno, f"imports '{name}'{_ALLOWED}") for name in unknown)
        case ast.ImportFrom(module=module, level=level, names=names):
            if level or module not in _MODULES:
                yield node.lineno, f"imports '{module or '.'}'{_ALLOWED}"
            elif any(alias.name == "*" for alias in names):
                yield node.lineno, f"imports everything from '{module}'"
        case ast.Name(id=name) if name in _FORBIDDEN_NAMES:
            yield node.lineno, f"uses '{name}'"
        case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
            yield node.lineno, "is asynchronous"


def draws(source: str, names: Collection[str] = ()) -> bool:
    """Whether a strategy may draw random numbers, by its text without imports and the names of `names_of_chance`."""
    return "random" in source or any(re.search(rf"\b{re.escape(name)}\b", source) for name in names)


def names_of_chance(imports: Iterable[ast.Import | ast.ImportFrom]) -> set[str]:
    """Aliases in imports of modules and functions that draw random numbers."""
    found = {
        alias.asname or alias.name
        for node in imports
        for alias in node.names
        if "random" in f"{getattr(node, 'module', '')}.{alias.name}"
    }
    return {name for name in found if "random" not in name}
