"""The rewriting of ordinary Python whose players may share a process, and the reasons why other code may not.

Reading an attribute is allowed by its name, if no thing in a player's reach has something shared under it; else, as
every change of an attribute, it goes through a function of `guarded` that looks at the thing. What neither can judge,
such as the hooks of the interpreter, is a problem of the strategy.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from labmates_populations.engine.kernel.exposed import AMBIGUOUS, EXPOSED, MEMORY, RANDOM, SAFE, words
from labmates_populations.engine.kernel.guarded import GUARDS
from labmates_populations.engine.kernel.names import MODULES

_OWN, _LOOK, _KIND, _CALL = GUARDS
_METHODS = frozenset(
    f"__{name}__"
    for name in words(
        "init call post_init repr str len bool int float complex bytes index hash eq ne lt le gt ge contains getitem "
        "setitem delitem missing iter next reversed length_hint format enter exit del neg pos abs invert round floor "
        "ceil trunc add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv floordiv rfloordiv ifloordiv "
        "mod rmod imod divmod rdivmod pow rpow ipow matmul rmatmul and rand iand or ror ior xor rxor ixor lshift "
        "rshift init_subclass class_getitem set_name get set delete"
    )
)
"""Special methods that a class may have: numpy and the interpreter call them for what they are alone."""
_HOOKS = frozenset(
    f"__{name}__"
    for name in words(
        "new getattribute setattr delattr dir instancecheck subclasscheck subclasshook prepare mro_entries "
        "reduce reduce_ex getstate setstate copy deepcopy "
        "array array_interface array_struct array_ufunc array_function array_wrap array_finalize array_priority"
    )
)
"""Special methods that a class may not have. Any other one means nothing: its code can't name it either."""
_PLAIN = frozenset({"__name__", "__doc__", "__qualname__", "__contains__", "__getitem__", "__len__"})
"""Special attributes that give access to nothing shared, whatever they are read of."""
_HELD = _METHODS | {"__name__", "__slots__", "__doc__", "__all__", "__author__", "__version__"}


_FORBIDDEN = frozenset({
    "__builtins__", "__import__", "__loader__", "__spec__", "breakpoint", "compile", "dir", "eval", "exec", "exit",
    "globals", "help", "input", "locals", "memoryview", "open", "quit", "vars",
})  # fmt: skip
"""Builtins of no use to a strategy; `guarded` has none of them."""
_MODULES = MODULES | EXPOSED.keys()
_ALLOWED = f"; allowed are {', '.join(sorted(name for name in _MODULES if name[0] != '_' and '.' not in name))}"


def guarded(statements: list[ast.stmt]) -> tuple[list[ast.stmt], list[str]]:
    """The code of a strategy, rewritten, and its problems, with their lines; a strategy with problems is not played."""
    guards = _Guards(_own_names(statements))
    rewritten = [guards.visit(one) for one in statements]
    return rewritten, [f"line {line}: {what}" for line, what in sorted(guards.problems)]


def _own_names(statements: Iterable[ast.stmt]) -> set[str]:
    """The names of attributes that the code itself makes."""
    found: set[str] = set()
    for child in (child for statement in statements for child in ast.walk(statement)):
        match child:
            case ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.ClassDef(body=body):
                found.update(name for one in body for name in _bound(one))
            case ast.Call(func=ast.Name("namedtuple") | ast.Attribute(attr="namedtuple")):
                texts = (one.value for one in ast.walk(child) if isinstance(one, ast.Constant))
                found.update(word for text in texts if isinstance(text, str) for word in text.replace(",", " ").split())
            case ast.Call(func=ast.Name("setattr"), args=[_, ast.Constant(value=str(name)), *_]):
                found.add(name)
    return found


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a class binds."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
    else:
        names = (one for one in ast.walk(statement) if isinstance(one, ast.Name))
        yield from (one.id for one in names if isinstance(one.ctx, ast.Store))


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name.strip("_") != ""


_REACH = ", by which players could reach each other; write it in another way"


class _Guards(ast.NodeTransformer):
    """Rewrites code; `names` are the attributes that it makes."""

    def __init__(self, names: set[str]) -> None:
        self.problems: set[tuple[int, str]] = set()
        self._names = names
        self._class = ""

    def visit(self, node: ast.AST) -> Any:
        """The replacement for a node, after a look at the names that it binds or reads."""
        if isinstance(node, (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)):
            self._refuse(node, "is asynchronous", "")
        for field in ("id", "name", "arg", "asname", "rest"):
            name = getattr(node, field, None)
            if not isinstance(name, str) or isinstance(node, ast.FunctionDef):
                continue
            is_read = name == "__class__" and isinstance(getattr(node, "ctx", None), ast.Load)
            if isinstance(node, ast.Name) and name in _FORBIDDEN:
                self._refuse(node, f"uses '{name}'", "")
            elif name in GUARDS or (_is_special(name) and name not in _HELD and not is_read):
                self._refuse(node, f"names {name}")
        return super().visit(node)

    def _refuse(self, node: ast.AST, why: str, more: str = _REACH) -> None:
        self.problems.add((getattr(node, "lineno", 0), why + more))

    def _call(self, name: str, node: ast.AST, *arguments: ast.expr) -> ast.Call:
        return ast.fix_missing_locations(
            ast.copy_location(ast.Call(ast.Name(name, ast.Load()), [*arguments], []), node)
        )

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Allow an attribute by its name, or look at the thing."""
        name, value = node.attr, node.value
        node.value = self.visit(value)
        if isinstance(node.ctx, (ast.Store, ast.Del)):
            if _is_special(name):
                self._refuse(node, f"changes {name}")
            node.value = self._call(_OWN, node, node.value)
        elif _is_special(name):
            self._special(node, value)
            if name == "__class__":
                return self._call(_KIND, node, node.value)
        elif name == "format" and isinstance(value, ast.Constant) and not _has_paths(str(value.value)):
            pass
        elif name not in SAFE and (name in AMBIGUOUS or name not in self._names):
            return self._call(_LOOK, node, node.value, ast.Constant(name))
        return node

    def _special(self, node: ast.Attribute, value: ast.expr) -> None:
        if node.attr in _METHODS - _PLAIN:
            match value:
                case ast.Call(func=ast.Name("super"), args=[], keywords=[]):
                    pass
                case _:
                    node.value = self._call(_OWN, node, node.value)
        elif node.attr not in (*_PLAIN, "__class__"):
            self._refuse(node, f"reads {node.attr}")

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Allow `super` only as a call."""
        if node.id == "super":
            self._refuse(node, "super is not called without arguments")
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Look at what gets arguments that name memory, or that can't be read here."""
        match node:
            case ast.Call(func=ast.Name("super"), args=[] | [ast.Name(self._class), ast.Name("self")], keywords=[]):
                node.args = []
                return node
        self.generic_visit(node)
        if not {None, *MEMORY}.isdisjoint(one.arg for one in node.keywords):
            node.func, node.args = ast.copy_location(ast.Name(_CALL, ast.Load()), node), [node.func, *node.args]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Allow the special methods that are listed; annotations are never evaluated."""
        if node.name in _HOOKS:
            self._refuse(node, f"has a method {node.name}")
        if node.name == "__getattr__":  # numpy asks it for addresses of memory
            names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
            if node.decorator_list or len(names) != 2:
                self._refuse(node, f"has a method {node.name} that is not of (self, name) alone")
            unless = f"if {names[-1]}.startswith('__'): raise AttributeError"
            node.body[:0] = [ast.copy_location(one, node) for one in ast.parse(unless).body]
        elif _is_special(node.name) and node.name not in _METHODS:
            node.name = f"unnamed_{node.name}"
        node.returns = None
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Refuse classes of other classes."""
        if node.keywords:
            self._refuse(node, "a class with arguments")
        outer, self._class = self._class, node.name
        self.generic_visit(node)
        self._class = outer
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """Forget an annotation."""
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Leave the annotation as it is: it becomes a text."""
        node.target = self.visit(node.target)
        node.value = None if node.value is None else self.visit(node.value)
        return node

    def visit_MatchClass(self, node: ast.MatchClass) -> ast.AST:
        """Allow the attributes of a pattern by their names."""
        for name in node.kwd_attrs:
            if name not in SAFE and (name not in self._names or name in AMBIGUOUS):
                self._refuse(node, f"reads the attribute {name}")
        return self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> ast.AST:
        """Allow the modules that players share."""
        for alias in node.names:
            self.visit(alias)
            if alias.name not in _MODULES:
                self._refuse(node, f"imports '{alias.name}'", _ALLOWED)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        """Allow what is exposed of a module."""
        known = {**EXPOSED, **RANDOM}
        if node.level or node.module not in _MODULES:
            self._refuse(node, f"imports '{node.module or '.'}'", _ALLOWED)
        for alias in node.names:
            self.visit(alias)
            exposed = {*known.get(str(node.module), ()), *known}
            if alias.name == "*":
                self._refuse(node, f"imports everything from '{node.module}'", "")
            elif node.module in known and not {alias.name, f"{node.module}.{alias.name}"} & exposed:
                self._refuse(node, f"imports {alias.name} from {node.module}")
        return node


def _has_paths(text: str) -> bool:
    """Whether a text to be formatted names attributes or items."""
    fields = (part.partition("}")[0].partition(":")[0] for part in text.replace("{{", "").split("{")[1:])
    return any(set(field) & {".", "["} for field in fields)
