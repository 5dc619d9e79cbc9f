"""What a strategy needs of its file: imports, functions, classes and values that it never names are left out.

A player that shares a process with others executes this code anew, so helpers of other strategies would cost it time.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeGuard

from labmates.util.grouping import grouped
from labmates_populations.engine.kernel.syntax import IMPORTS, assignments, nodes_in


class Needs:
    """What the strategies of a file need of its other statements.

    Parameters
    ----------
    chance
        Names that may draw random numbers, so that the next draw depends on it.
    """

    def __init__(self, statements: Sequence[ast.stmt], chance: Collection[str]) -> None:
        self._statements = statements
        self._named = [frozenset(_named(one)) for one in statements]
        self._binding = grouped((name, at) for at, one in enumerate(statements) for name in _bound(one))
        made = {name for one in statements if not isinstance(one, IMPORTS) for name in _bound(one)}
        acting = {*chance, "random", *(one.name for one in statements if _is_called(one))}
        self._always = {at for at, one in enumerate(statements) if not _bound(one) or _acts(one, made, acting)}

    def of(self, node: ast.ClassDef) -> list[ast.stmt]:
        """The statements that a class needs, in their order: those that do more than bind a name are always needed."""
        kept, known = {*self._always}, {node.name}
        waiting = [*_named(node), *(name for at in kept for name in self._named[at])]
        while waiting:
            name = waiting.pop()
            new = set() if name in known else {*self._binding.get(name, ())} - kept
            known.add(name)
            kept |= new
            waiting += (each for at in new for each in self._named[at])
        return [self._statements[at] for at in sorted(kept)]


def _bound(statement: ast.stmt) -> list[str]:
    """The names that a statement binds; none if it does more."""
    match statement:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            return [alias.asname or alias.name.partition(".")[0] for alias in aliases if alias.name != "*"]
    return [name for name, _ in assignments(statement)]


def _acts(statement: ast.stmt, made: Collection[str], acting: Collection[str]) -> bool:
    """Whether its execution may change more than its names: it calls the file's code, or names what may be called."""
    for child in (child for one in _executed(statement) for child in ast.walk(one)):
        match child:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in acting:
                return True
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name))) if name in made:
                return True
    return False


def _is_called(statement: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.ClassDef]:
    """Whether it is a function, or a class that acts when it gets a subclass."""
    if isinstance(statement, ast.ClassDef):
        return any(isinstance(one, ast.FunctionDef) and one.name == "__init_subclass__" for one in statement.body)
    return isinstance(statement, ast.FunctionDef)


def _executed(statement: ast.stmt) -> Iterator[ast.AST]:
    """What of a statement is executed when it is: not the bodies of functions."""
    match statement:
        case ast.FunctionDef(args=arguments, decorator_list=decorators):
            yield from (*decorators, *arguments.defaults, *(one for one in arguments.kw_defaults if one))
        case ast.ClassDef(bases=bases, keywords=keywords, body=body, decorator_list=decorators):
            yield from (*decorators, *bases, *keywords, *(part for one in body for part in _executed(one)))
        case ast.Import() | ast.ImportFrom():
            pass
        case _:
            yield from (value for _, value in assignments(statement))
            if not assignments(statement):
                yield statement


def _named(node: ast.AST) -> Iterator[str]:
    for child in nodes_in(node):
        if isinstance(child, ast.Name):
            yield child.id
        elif isinstance(child, ast.Attribute):
            yield child.attr


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
