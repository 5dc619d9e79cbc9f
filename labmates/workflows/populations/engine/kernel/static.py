"""Static checks: what can be said of a strategy's code without running it.

Strategies of many authors share a worker process. What is refused here is what would lead from one to another, or into
the interpreter; what leads out of the process is stopped by `confine`, whatever the code looks like.
"""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Collection, Iterable, Iterator, Sequence

from labmates.workflows.populations.engine.kernel.names import BUILTINS, HIDDEN, MODULES, is_hidden

_METHODS = frozenset({
    "__init__", "__post_init__", "__call__", "__repr__", "__str__", "__eq__", "__ne__", "__lt__", "__le__",
    "__gt__", "__ge__", "__hash__", "__bool__", "__len__", "__iter__", "__next__", "__getitem__", "__setitem__",
    "__delitem__", "__contains__", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__",
    "__truediv__", "__floordiv__", "__mod__", "__neg__", "__abs__", "__enter__", "__exit__", "__int__",
    "__float__", "__index__", "__missing__", "__reversed__", "__round__", "__and__", "__or__", "__xor__",
    "__invert__", "__pow__", "__iadd__", "__isub__", "__new__",
})  # fmt: skip
_DUNDER_ATTRIBUTES = frozenset({"__init__", "__call__", "__post_init__", "__name__", "__doc__", "__len__", "__repr__"})
_DUNDER_NAMES = frozenset({"__name__", "__doc__", "__slots__", "__all__", "__author__", "__version__", "__hash__"})
_FORBIDDEN_NAMES = frozenset({
    "__import__", "breakpoint", "compile", "copyright", "credits", "dir", "eval", "exec", "exit", "globals",
    "help", "input", "license", "locals", "memoryview", "open", "quit", "vars",
})  # fmt: skip
_MOST_CHARACTERS = 200_000

Problem = tuple[int, str]
"""A line and what is wrong there."""


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes of a tree, those above before those below; as `ast.walk` does, but in half the time."""
    found = [tree]
    for node in found:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                found += [one for one in value if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                found.append(value)
    return found


def problems_of(nodes: Sequence[ast.AST], size: int) -> list[str]:
    """Return what is wrong with a strategy's code (a class, or what stands before the classes of a file).

    Parameters
    ----------
    nodes
        All of it, in the order of `nodes_of`.
    size
        Its number of characters.
    """
    if size > _MOST_CHARACTERS:
        return [f"has {size} characters; at most {_MOST_CHARACTERS} are allowed"]
    found = sorted({problem for node in nodes for problem in _of(node)} | set(_dunders(nodes)))
    return [f"line {line}: {what}" for line, what in found]


def _of(node: ast.AST) -> Iterator[Problem]:
    line = getattr(node, "lineno", 0)
    match node:
        case ast.Import(names=names):
            yield from ((line, f"imports '{one.name}'") for one in names if one.name not in MODULES)
        case ast.ImportFrom(module=module, level=level, names=names):
            if level or module not in MODULES:
                yield line, f"imports '{module or '.'}'"
            elif any(one.name == "*" for one in names):
                yield line, f"imports everything from '{module}'"
        case ast.Name(id=name) if name in _FORBIDDEN_NAMES:
            yield line, f"uses '{name}'"
        case ast.Name(id=name) if name.startswith("__") and name not in _DUNDER_NAMES and name not in BUILTINS:
            yield line, f"uses '{name}'"
        case ast.Name(id="__build_class__"):
            yield line, "uses '__build_class__'"
        case ast.FunctionDef(name=name) if name.startswith("__") and name.endswith("__") and name not in _METHODS:
            yield line, f"defines '{name}'"
        case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
            yield line, "is asynchronous"
        case ast.ClassDef(keywords=keywords) if any(one.arg in (None, "metaclass") for one in keywords):
            yield line, "has a metaclass"
        case ast.MatchClass(kwd_attrs=names):
            yield from ((line, f"uses the attribute '{name}'") for name in names if is_hidden(name))
        case ast.keyword(arg=str(name)) if name.startswith("__"):
            yield line, f"uses '{name}'"
        case ast.arg(arg=name) if name.startswith("__") and name.endswith("__"):
            yield line, f"uses '{name}'"
        case ast.Call(func=ast.Attribute(value=value, attr="format")):
            if not (isinstance(value, ast.Constant) and isinstance(value.value, str) and _is_plain(value.value)):
                yield line, "formats a text that may ask for attributes"


def _is_plain(text: str) -> bool:
    try:
        return all(
            "." not in (name or "") and "[" not in (name or "") for _, name, _, _ in string.Formatter().parse(text)
        )
    except ValueError:
        return True


def _dunders(nodes: Sequence[ast.AST]) -> Iterator[Problem]:
    """Return the attributes that can't be used; the name of a thing's class, and `self.base`, can."""
    allowed: set[ast.AST] = set()
    for node in nodes:
        if not isinstance(node, ast.Attribute):
            continue
        name, value = node.attr, node.value
        if name == "__name__" and isinstance(value, ast.Attribute) and value.attr == "__class__":
            allowed.add(value)
        own = isinstance(value, ast.Name) and value.id == "self" and name in HIDDEN
        if node in allowed or own or name in _DUNDER_ATTRIBUTES:
            continue
        if is_hidden(name):
            yield node.lineno, f"uses the attribute '{name}'"


def draws(source: str, names: Collection[str] = ()) -> bool:
    """Whether a strategy may draw random numbers.

    Parameters
    ----------
    source
        Its text, without the imports before it.
    names
        See `names_of_chance`.
    """
    return "random" in source or any(re.search(rf"\b{re.escape(name)}\b", source) for name in names)


def names_of_chance(imports: Iterable[ast.Import | ast.ImportFrom]) -> set[str]:
    """Return other names that imports give to what draws random numbers, be it a module or a function."""
    names = {one.asname or one.name for node in imports if "random" in ast.unparse(node) for one in node.names}
    return {name for name in names if "random" not in name}


def shares(tree: ast.ClassDef | ast.Module, nodes: Sequence[ast.AST]) -> bool:
    """Whether something may be kept beyond one player: such a strategy is made anew for each player.

    That is so for values that can change in a class or a module, for defaults of parameters that can, and for
    assignments to attributes of anything that is not `self`, since any other name may stand for a class or a function.

    Parameters
    ----------
    nodes
        All of it.
    """
    return _changes(tree) or any(map(_keeps, nodes)) or (any(map(_asks_for_class, nodes)) and any(map(_reaches, nodes)))


def _changes(tree: ast.ClassDef | ast.Module) -> bool:
    """Whether values that can change stand in a class or a module."""
    if isinstance(tree, ast.Module):
        statements = [s for s in tree.body if not isinstance(s, (ast.FunctionDef, ast.Import, ast.ImportFrom))]
        inner = [s for s in statements if not isinstance(s, ast.ClassDef) and not _is_constant_statement(s)]
        classes = [s for s in tree.body if isinstance(s, ast.ClassDef)]
        return bool(inner) or any(map(_changes, classes))
    members = [s for s in tree.body if not isinstance(s, (ast.FunctionDef, ast.ClassDef))]
    inner_classes = [s for s in tree.body if isinstance(s, ast.ClassDef)]
    changing = any(not _is_constant_statement(s) for s in members)
    return changing or any(map(_changes, inner_classes))


def _is_constant_statement(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.AnnAssign(value=None):
            return True
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value):
            return _is_constant(value)
    return False


def _is_constant(value: ast.expr) -> bool:
    match value:
        case ast.Constant() | ast.Name() | ast.Attribute():
            return True
        case ast.UnaryOp(operand=operand):
            return _is_constant(operand)
        case ast.BinOp(left=left, right=right):
            return _is_constant(left) and _is_constant(right)
        case ast.Tuple(elts=elements):
            return all(map(_is_constant, elements))
        case ast.Call(func=ast.Name(id="auto"), args=[]):
            return True
    return False


def _keeps(node: ast.AST) -> bool:
    match node:
        case ast.Global():
            return True
        case ast.arguments(defaults=defaults, kw_defaults=kw_defaults):
            return not all(_is_constant(one) for one in [*defaults, *kw_defaults] if one is not None)
        case ast.Attribute(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            return name != "self"
        case ast.Attribute(value=ast.Call() | ast.Attribute(attr="__class__"), ctx=ast.Store() | ast.Del()):
            return True
        case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[ast.Name(id="self"), *_]):
            return False
        case ast.Call(func=ast.Name(id="setattr" | "delattr")):
            return True
    return False


def _asks_for_class(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "type"


def _reaches(node: ast.AST) -> bool:
    """Whether an attribute of a thing within another is assigned to; that thing may be a class."""
    match node:
        case ast.Attribute(value=ast.Attribute() | ast.Subscript(), ctx=ast.Store() | ast.Del()):
            return True
    return False
