"""Files of strategies, read without execution: their classes, and facts about each."""

from __future__ import annotations
import __future__

import ast
import contextlib
import gc
import marshal
import re
import resource
import socket
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from io import StringIO
from types import CodeType
from typing import Any

from labmates_populations.engine.kernel.compiler import Compiled, FileNames, compile_class, file_names
from labmates_populations.engine.kernel.needs import IMPORTS, Needs
from labmates_populations.engine.kernel.plain import plain
from labmates_populations.engine.kernel.rewriting.guards import guarded
from labmates_populations.engine.kernel.rewriting.nodes import UnfitError
from labmates_populations.engine.kernel.static import MOST_CHARACTERS, draws, names_of_chance, problems_of
from labmates_populations.engine.kernel.ways import COMPILED, PROCESS
from labmates_populations.engine.kernel.wire import Reader, receive, send

_CLASS = "\nclass "
"""Where a file can be split: if this is not between statements, the piece before it is invalid."""
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_NAMED = re.compile(r"Strategy_(?P<attitude>[A-Za-z]+)_(?P<number>\d+)$")
_MOST_CLASSES = 20_000
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
        The code before the class, if any, and of the class, for `marshal`; empty if there are problems.
    """

    found: Found
    code: bytes

    @property
    def compiled(self) -> bool:
        """Whether its code fits the subset of `compiler`."""
        return self.found.way == COMPILED

    @property
    def playable(self) -> bool:
        """Whether it may be run."""
        return not self.found.problems

    def told(self, number: int) -> dict[str, Any]:
        """The facts for a process of players."""
        facts = {name: getattr(self.found, name) for name in ("name", "paper", "random", "arguments", "way")}
        return {"number": number, **facts, "bytes": len(self.code)}


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


def found_in(told: Iterable[Mapping[str, Any]]) -> list[Found]:
    """The facts about strategies in a message of `serve`."""
    return [Found(**{**one, "problems": tuple(one["problems"])}) for one in told]


def received_sources(told: Mapping[str, Any], data: bytes) -> list[Source]:
    """The strategies in a message of `serve`."""
    reader = Reader(data)
    return [
        Source(found, reader.bytes(size)) for found, size in zip(found_in(told["found"]), told["sizes"], strict=True)
    ]


def read_source(text: str, name: str) -> list[Source]:
    """The strategies of a file; UnreadableError for invalid or too large files."""
    if text.count(_CLASS) < _MOST_CLASSES:
        with contextlib.suppress(_UnsplitError, *_UNREADABLE):  # the whole file is read instead, or is the error
            return _once(_read(_pieces(text), name))
    try:
        found = len(_strategies(ast.parse(text).body))
    except _UNREADABLE as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        what = error.msg if isinstance(error, SyntaxError) else str(error) or type(error).__name__
        raise UnreadableError(f"{name} can't be read as Python{line}: {what}") from error
    if found > _MOST_CLASSES:
        raise UnreadableError(f"{name} holds {found} strategies; at most {_MOST_CLASSES} are allowed")
    try:
        return _once(_read([text], name))
    except _UNREADABLE as error:
        raise UnreadableError(f"{name} can't be compiled: {error}") from error


def _once(sources: Iterable[Source]) -> list[Source]:
    """The strategies of a file; of several classes with the same name the last one counts, as in Python."""
    found = list(sources)
    last = {source.found.name: source.found.line for source in found}
    for at, source in enumerate(found):
        if (line := last[source.found.name]) != source.found.line:
            problem = f"line {source.found.line}: the class is defined again on line {line}, which counts"
            found[at] = Source(replace(source.found, problems=(*source.found.problems, problem)), b"")
    return found


def _pieces(text: str) -> Iterator[str]:
    start = 0
    while end := text.find(_CLASS, start) + 1:
        yield text[start:end]
        start = end
    yield text[start:]


class _UnsplitError(Exception):
    """A class of a file is followed by more than strategies, or is the base of one."""


def program_of(text: str, name: str) -> str:
    """The code of a class as other players read it, with the name ``Strategy``."""
    return re.sub(rf"^class {name}\b", "class Strategy", text, count=1).rstrip() + "\n"


def lines_of(text: str) -> list[str]:
    """The lines of a text as counted by Python: for instance, a form feed does not end a line."""
    return list(StringIO(text, newline=""))


class _Piece:
    """The text of some statements of a file."""

    def __init__(self, text: str) -> None:
        self.size = len(text)
        self.breaks = text.count("\n") if "\r" not in text else len(lines_of(text))
        self._text = text

    def text(self, node: ast.stmt) -> str:
        """The text of a statement."""
        return "".join(self._lines[node.lineno - 1 : node.end_lineno])

    @cached_property
    def _lines(self) -> list[str]:
        return lines_of(self._text)


class _File:
    """The parts of a file other than its strategies."""

    def __init__(self, piece: _Piece, rest: list[ast.stmt], name: str) -> None:
        self.name = name
        self._piece = piece
        self.chance = names_of_chance(node for node in rest if isinstance(node, IMPORTS))
        self.classes = {node.name: node for node in rest if isinstance(node, ast.ClassDef)}
        self._problems = problems_of(rest, len(self.shared(rest)))
        _compiled(rest, name)  # what no strategy needs may be invalid too
        self.needs = Needs(rest, self.chance)
        self._names: FileNames | None = None
        with contextlib.suppress(UnfitError):
            self._names = file_names(rest)

    def problems(self, node: ast.ClassDef) -> list[str]:
        """The problems of what a strategy needs of the file."""
        needed = self.needs.of(node) if self._problems else []
        return problems_of(needed, len(self.shared(needed)))

    def names(self, node: ast.ClassDef) -> FileNames:
        """The names that a strategy sees; UnfitError if it needs more than imports and constants."""
        return self._names or file_names(self.needs.of(node))

    def shared(self, statements: Iterable[ast.stmt]) -> str:
        """The text of statements but for imports."""
        return "".join(self._piece.text(node) for node in statements if not isinstance(node, IMPORTS))


def _read(pieces: Iterable[str], name: str) -> Iterator[Source]:
    """The strategies of a file in pieces: small trees take less memory, and stay in the processor's cache."""
    file, before = None, 0
    for text in pieces:
        piece, statements = _Piece(text), ast.parse(text).body
        strategies = _strategies(statements)
        if file is None:
            bases = {base for node in statements for base in _bases(node)}
            rest = [one for one in statements if one not in strategies or one.name in bases]
            file = _File(piece, deepcopy(rest), name)  # `compile_class` will change strategies
        elif len(strategies) < len(statements) or _bases(strategies[0]) - {"BaseStrategy"}:
            raise _UnsplitError
        for node in strategies:
            found = _found(node, file, before)
            try:
                made = _fitting(file, node, piece, found)
            except UnfitError as error:
                yield _ordinary(file, piece.text(node), found, str(error))
            else:
                facts = Found(**found, random=made.draws, way=COMPILED, why="")
                yield Source(facts, marshal.dumps((made.code,)))
        before += piece.breaks


def _fitting(file: _File, node: ast.ClassDef, piece: _Piece, found: dict[str, Any]) -> Compiled:
    """The compiled strategy, rewritten if necessary; UnfitError if it does not fit the subset."""
    line = found["line"]
    if found["problems"]:
        raise UnfitError("")
    if piece.size > MOST_CHARACTERS and len(piece.text(node)) > MOST_CHARACTERS:
        raise UnfitError(f"line {line}: a class of more than {MOST_CHARACTERS} characters")
    names = file.names(node)
    with contextlib.suppress(UnfitError):
        return compile_class(node, names)
    again = _class_at(piece.text(node), line)  # `compile_class` has changed the tree
    try:
        return compile_class(plain(again), names)
    except RecursionError as error:
        raise UnfitError(f"line {line}: {error}") from error


def _class_at(source: str, line: int) -> ast.ClassDef:
    """The tree of a class whose first line in its file is `line`."""
    [node] = ast.parse(source).body
    assert isinstance(node, ast.ClassDef)
    ast.increment_lineno(node, line - 1)
    return node


def _ordinary(file: _File, source: str, found: dict[str, Any], why: str) -> Source:
    """A strategy that does not fit the subset, for the reason `why`."""
    node = _class_at(source, found["line"])
    problems = tuple(dict.fromkeys([*found.pop("problems"), *problems_of([node], len(source))]))
    code, before = b"", file.needs.of(node)
    random = draws(source + file.shared(before), file.chance)
    if not problems:
        try:
            before, node = guarded(deepcopy(before), node)
            code = marshal.dumps((_compiled(before, file.name), _compiled([node], file.name)))
        except (UnfitError, RecursionError) as error:
            problems = (str(error),)
    if len(code) > _MOST_CODE:
        code, problems = b"", (f"needs {len(code)} bytes of code; at most {_MOST_CODE} are allowed",)
    return Source(Found(**found, random=random, problems=problems, way=PROCESS, why=why), code)


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


def _found(node: ast.ClassDef, file: _File, lines_before: int) -> dict[str, Any]:
    """The facts about a strategy from its syntax: all but whether it is random."""
    problems, line = file.problems(node), node.lineno + lines_before
    named = _NAMED.match(node.name)
    call = _called(node, file.classes)
    if call is None:
        problems.append(f"line {line}: has no method __call__")
    names = ["history"] if call is None else [arg.arg for arg in [*call.args.posonlyargs, *call.args.args]][1:]
    if call is not None and not 1 <= len(names) <= 2 and call.args.vararg is None:
        at = call.lineno + lines_before
        problems.append(f"line {at}: a decision has {len(names)} arguments, not a history and perhaps a stock")
    return {
        "name": node.name,
        "line": line,
        "end": (node.end_lineno or node.lineno) + lines_before,
        "attitude": named["attitude"].lower() if named else "",
        "number": int(named["number"]) if named else 0,
        "paper": call is not None and _is_paper(call, names),
        "arguments": max(1, len(names)),
        "problems": tuple(dict.fromkeys(problems)),
    }


def _is_paper(call: ast.FunctionDef, names: list[str]) -> bool:
    """Whether the arguments of a decision are a state and a history."""
    if len(names) != 2:
        return False
    first = [*call.args.posonlyargs, *call.args.args][1]
    kind = ast.unparse(first.annotation) if first.annotation is not None else ""
    return names[0] in ("state", "game_state", "_state") or kind.strip("'\"").endswith("State") or names[1] == "history"
