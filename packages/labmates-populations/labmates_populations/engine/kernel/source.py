"""Files of strategies, read without execution: their classes, and facts about each."""

from __future__ import annotations
import __future__

import ast
import gc
import marshal
import re
import resource
import socket
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from io import StringIO
from itertools import accumulate
from types import CodeType
from typing import Any

from labmates_populations.engine.kernel.guards import guarded
from labmates_populations.engine.kernel.harmless import harmless
from labmates_populations.engine.kernel.needs import Needs, draws, names_of_chance
from labmates_populations.engine.kernel.syntax import IMPORTS, UnfitError
from labmates_populations.engine.kernel.ways import COMPILED, PROCESS
from labmates_populations.engine.kernel.wire import receive, send

_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_NAMED = re.compile(r"Strategy_(?P<attitude>[A-Za-z]+)_(?P<number>\d+)$")
_MOST_CLASSES = 20_000
_MOST_CHARACTERS = 200_000
_MOST_CODE = 1_000_000
"""Maximum bytes of a strategy's code: nested blocks can need a thousand times the size of their text."""
_READING_SECONDS = 60
"""Limit of processor time per million characters of a file."""


@dataclass(frozen=True)
class Found:
    """Facts about a strategy's class.

    Attributes
    ----------
    name
        The name of the class.
    line, end
        Its first and last lines.
    attitude, number
        From its name; empty and 0 for a nonstandard name.
    paper
        Whether it has the paper's form.
    random
        Whether it may draw random numbers; otherwise it is declared deterministic.
    arguments
        Number of a decision's arguments: 1 for the history, 2 with a stock or a state.
    problems
        Problems from the static checks; a class with problems is never run.
    way, why
        How it is played (see `ways`), and the line and reason for which it is not played in a faster way.
    """

    name: str
    line: int
    end: int
    attitude: str
    number: int
    paper: bool
    random: bool
    arguments: int
    problems: tuple[str, ...]
    way: str
    why: str


@dataclass(frozen=True)
class Source:
    """A strategy from a file.

    Attributes
    ----------
    code
        For `marshal`: facts for the process of its players, and its code; of a harmless strategy also `copied` and
        `is_named`. Empty if there are problems.
    """

    found: Found
    code: bytes

    @property
    def playable(self) -> bool:
        """Whether it may be run."""
        return not self.found.problems


class UnreadableError(Exception):
    """A file is not valid Python, or too large."""


def serve(connection: socket.socket, _settings: dict[str, Any]) -> None:
    """Read one file, in a separate process that it may crash."""
    send(connection, {"ready": True})
    head, data = receive(connection)
    most = _READING_SECONDS * (1 + len(data) // 1_000_000)
    resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    gc.disable()
    try:
        sources = read_source(data.decode("utf-8", "surrogatepass"), head["name"])
    except UnreadableError as error:
        send(connection, {"error": str(error)})
        return
    codes = [source.code for source in sources]
    found = [vars(source.found) for source in sources]
    send(connection, {"found": found, "sizes": [len(code) for code in codes]}, b"".join(codes))


def received_sources(told: Mapping[str, Any], data: bytes) -> list[Source]:
    """The strategies in a message of `serve`."""
    sizes = told["sizes"]
    codes = (data[end - size : end] for end, size in zip(accumulate(sizes), sizes, strict=True))
    found = (Found(**{**one, "problems": tuple(one["problems"])}) for one in told["found"])
    return list(map(Source, found, codes))


def read_source(text: str, name: str) -> list[Source]:
    """The strategies of a file; UnreadableError for invalid or too large files."""
    try:
        statements = ast.parse(text).body
    except _UNREADABLE as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        what = error.msg if isinstance(error, SyntaxError) else str(error) or type(error).__name__
        raise UnreadableError(f"{name} can't be read as Python{line}: {what}") from error
    strategies = _strategies(statements)
    if len(strategies) > _MOST_CLASSES:
        raise UnreadableError(f"{name} holds {len(strategies)} strategies; at most {_MOST_CLASSES} are allowed")
    try:
        file = _File(text, statements, name)
        last = {node.name: node.lineno for node in strategies}
        return [_source(file, node, last[node.name]) for node in strategies]
    except _UNREADABLE as error:
        raise UnreadableError(f"{name} can't be compiled: {error}") from error


def program_of(text: str, name: str) -> str:
    """The code of a class as other players read it, with the name ``Strategy``."""
    return re.sub(rf"^class {name}\b", "class Strategy", text, count=1).rstrip() + "\n"


def lines_of(text: str) -> list[str]:
    """The lines of a text as counted by Python: for instance, a form feed does not end a line."""
    return list(StringIO(text, newline=""))


class _File:
    """A file, and the statements of it that are no strategies."""

    def __init__(self, text: str, statements: list[ast.stmt], name: str) -> None:
        strategies = _strategies(statements)
        bases = {base for node in statements for base in _bases(node)}
        rest = [one for one in statements if one not in strategies or one.name in bases]
        self.name = name
        self._lines = lines_of(text)
        self.chance = names_of_chance(node for node in rest if isinstance(node, IMPORTS))
        self.classes = {node.name: node for node in rest if isinstance(node, ast.ClassDef)}
        _compiled(rest, name)  # what no strategy needs may be invalid too
        self.needs = Needs(rest, self.chance)

    def text(self, node: ast.stmt) -> str:
        """The text of a statement."""
        return "".join(self._lines[node.lineno - 1 : node.end_lineno])

    def shared(self, statements: Iterable[ast.stmt]) -> str:
        """The text of statements but for imports."""
        return "".join(self.text(node) for node in statements if not isinstance(node, IMPORTS))


def _source(file: _File, node: ast.ClassDef, last: int) -> Source:
    """A strategy, in the first way to play that it fits; of several classes with its name the `last` one counts."""
    needed, text = file.needs.of(node), file.text(node)
    facts, shared = _facts(node, file.classes), file.shared(needed)
    problems, random = facts.pop("problems"), draws(text + shared, file.chance)
    if last != node.lineno:
        problems.append(f"line {node.lineno}: the class is defined again on line {last}, which counts")
    if (size := max(len(text), len(shared))) > _MOST_CHARACTERS:
        problems.append(f"has {size} characters; at most {_MOST_CHARACTERS} are allowed")
    way, why, parts = PROCESS, "", list[Any]()
    try:
        made = harmless(needed, node, paper=facts["paper"])
        way, random = COMPILED, made.draws
        parts = [_compiled(made.statements, file.name), made.copied, made.is_named]
    except (UnfitError, RecursionError) as error:
        why = str(error)
    if way == PROCESS:
        try:
            rewritten, refused = guarded([*deepcopy(needed), node])
            problems += refused
            parts = [] if problems else [_compiled(rewritten, file.name)]
        except RecursionError as error:
            problems.append(str(error))
    way = PROCESS if problems else way
    told = {"name": node.name, "paper": facts["paper"], "random": random, "arguments": facts["arguments"], "way": way}
    code = b"" if problems else marshal.dumps((told, *parts))
    if len(code) > _MOST_CODE:
        code, problems = b"", [f"needs {len(code)} bytes of code; at most {_MOST_CODE} are allowed"]
    return Source(Found(**facts, random=random, problems=tuple(dict.fromkeys(problems)), way=way, why=why), code)


def _compiled(statements: list[ast.stmt], name: str) -> CodeType:
    # Annotations are not evaluated: no behaviour depends on them.
    flags = __future__.annotations.compiler_flag
    code: CodeType = compile(ast.Module(statements, []), name, "exec", flags=flags, dont_inherit=True)
    return code


def _strategies(statements: Iterable[ast.stmt]) -> list[ast.ClassDef]:
    """The classes of strategies: by their names, or by `BaseStrategy` as a base if they are no bases themselves."""
    classes = [node for node in statements if isinstance(node, ast.ClassDef)]
    bases = {base for node in classes for base in _bases(node)}
    return [
        node
        for node in classes
        if _NAMED.match(node.name) or ("BaseStrategy" in _bases(node) and node.name not in bases)
    ]


def _bases(node: ast.stmt) -> set[str]:
    """The names of the bases of a class; none of another statement."""
    bases = node.bases if isinstance(node, ast.ClassDef) else ()
    return {base.id for base in bases if isinstance(base, ast.Name)}


def _called(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> ast.FunctionDef | None:
    """The method of a decision, of a class or of its bases."""
    line = [node]
    for one in line:
        for method in one.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__call__":
                return method
        line += [classes[base] for base in _bases(one) if base in classes and classes[base] not in line]
    return None


def _facts(node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> dict[str, Any]:
    """The facts about a strategy from its interface, with its problems."""
    problems = []
    named = _NAMED.match(node.name)
    call = _called(node, classes)
    if call is None:
        problems.append(f"line {node.lineno}: has no method __call__")
    names = ["history"] if call is None else [arg.arg for arg in [*call.args.posonlyargs, *call.args.args]][1:]
    if call is not None and not 1 <= len(names) <= 2 and call.args.vararg is None:
        problems.append(f"line {call.lineno}: a decision has {len(names)} arguments, not a history and perhaps a stock")
    return {
        "name": node.name,
        "line": node.lineno,
        "end": node.end_lineno or node.lineno,
        "attitude": named["attitude"].lower() if named else "",
        "number": int(named["number"]) if named else 0,
        "paper": call is not None and _is_paper(call, names),
        "arguments": max(1, len(names)),
        "problems": problems,
    }


def _is_paper(call: ast.FunctionDef, names: list[str]) -> bool:
    """Whether the arguments of a decision are a state and a history."""
    if len(names) != 2:
        return False
    first = [*call.args.posonlyargs, *call.args.args][1]
    kind = ast.unparse(first.annotation) if first.annotation is not None else ""
    return names[0] in ("state", "game_state", "_state") or kind.strip("'\"").endswith("State") or names[1] == "history"
