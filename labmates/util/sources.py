"""Hashes of source code: a module, what it imports, and the texts beside it. Nothing is imported for them.

Only contents of files count, so a hash is the same on all machines, under all versions of Python, and for a wheel and a
checkout.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w.]+))", re.MULTILINE
)
_FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t][^\n]*\n|\n)*", re.MULTILINE)
_TEXTS: Final = (".md", ".yaml", ".yml", ".txt", ".json")
_DIGITS: Final = 8


def source_hash(modules: Iterable[str], follow: Callable[[str], bool]) -> str:
    """A hash of these modules and of all modules that they import and `follow` accepts, directly or not.

    Imports in functions count, those for type checkers don't. Texts in the folder of a package's module, such as
    prompts, count with it.
    """
    waiting, parts = list(modules), dict[str, str]()
    while waiting:
        module = waiting.pop()
        if module not in parts:
            parts[module], imports = _read(module)
            waiting += filter(follow, imports)
    return _digest(f"{module} {digest}".encode() for module, digest in sorted(parts.items()))[:_DIGITS]


@cache
def _read(module: str) -> tuple[str, tuple[str, ...]]:
    """The digest of a module with the texts beside it, and the modules that it imports."""
    path = _file(module)
    if path is None:
        return "", ()
    source = path.read_bytes()
    code = _FOR_TYPES.sub("", source.decode("utf-8", "replace"))
    imports: dict[str, None] = {}
    for origin, names, whole in _IMPORT.findall(code):
        base = origin or whole
        inner = (f"{base}.{name}" for name in re.findall(r"\w+", names))
        imports |= dict.fromkeys(each for each in (base, *inner) if "." in each and _file(each))
    texts = _texts(path.parent) if (path.parent / "__init__.py").is_file() else ()
    return _digest([source, *(text.read_bytes() for text in texts)]), tuple(imports)


@cache
def _texts(folder: Path) -> tuple[Path, ...]:
    """The texts in the folder of a package and its subfolders that are no packages, in order."""
    return tuple(sorted(_texts_in(folder), key=lambda path: path.relative_to(folder).as_posix()))


def _texts_in(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.suffix in _TEXTS:
            yield path
        elif path.is_dir() and not (path / "__init__.py").is_file():
            yield from _texts_in(path)


@cache
def _file(module: str) -> Path | None:
    """The file of a module; None if it has none, such as one of a compiled package."""
    loaded = getattr(sys.modules.get(module), "__file__", None)
    if loaded is not None:
        return Path(loaded) if loaded.endswith(".py") else None
    top, *rest = module.split(".")
    spec = find_spec(top) if top not in sys.modules else sys.modules[top].__spec__
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        place = Path(folder, *rest)
        for path in (place / "__init__.py", place.with_suffix(".py")):
            if path.is_file():
                return path
    return Path(spec.origin) if spec and spec.origin and not rest else None


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()
