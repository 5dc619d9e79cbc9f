"""New packages with a task or a judge, for ``labmates tasks new`` and ``labmates judges new``.

A template is a working package; ``my_task`` or ``my_judge`` and similar names are replaced in its files and file names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from labmates.errors import UsageError, telling
from labmates.registry import Registry

LONGEST_NAME = 30
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


def new_package(
    registry: Registry[Any],
    name: str,
    folder: Path,
    template: str | None = None,
    files_of_data: Mapping[str, bytes] = MappingProxyType({}),
) -> list[Path]:
    """Write a package with the entry `name` of a registry into `folder`; returns its files, relative to the folder.

    Parameters
    ----------
    template
        Name of the template; by default that of the registry's entries.
    files_of_data
        Files for the folder of the new module, by name.

    Raises
    ------
    UsageError
        If the name is invalid or taken, or the folder is not empty or not writable; nothing is changed.
    """
    _check_name(registry, name)
    written = []
    with telling(f"can't write to '{folder}'"):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"'{folder}' exists and is not an empty folder; choose another one with --folder")
        filled = _filled(registry.what, name, template or registry.what)
        for path, content in [*filled, *((Path(f"labmates_{name}", key), data) for key, data in files_of_data.items())]:
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as file:
                file.write(content)
            written.append(path)
    return sorted(written)


def _check_name(registry: Registry[Any], name: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        plain = "_".join(re.findall(r"[a-z0-9]+", name.lower()))[:LONGEST_NAME].strip("_")
        hint = f" For instance '{plain}'." if _NAME.fullmatch(plain) else ""
        raise UsageError(
            f"'{name}' can't be the name of a {registry.what}: use at most {LONGEST_NAME} lower-case letters, digits "
            f"and single underscores, beginning with a letter.{hint}"
        )
    if name in registry:
        owner = registry.package(name) or "labmates"
        raise UsageError(f"there is a {registry.what} '{name}' already, of {owner}; choose another name")
    if find_spec(f"labmates_{name}") is not None:
        raise UsageError(f"there is a Python package 'labmates_{name}' already; choose another name")


def _filled(what: str, name: str, template: str) -> list[tuple[Path, bytes]]:
    """The files of a template with the names of the new task or judge."""
    words = name.split("_")
    stem = "".join(word.capitalize() for word in words)
    replacements = {
        f"my_{what}": name,
        f"my-{what}": "-".join(words),
        f"My{what.capitalize()}": stem + what.capitalize(),
        f"My {what}": " ".join(words).capitalize(),
        "My": stem,
    }
    pattern = "|".join([*list(replacements)[:-1], "My(?=Findings|Truth)"])

    def fill(text: str) -> str:
        return re.sub(pattern, lambda match: replacements[match[0]], text)

    root = Path(__file__).parent / "templates" / template
    paths = [path.relative_to(root) for path in sorted(root.rglob("*")) if path.suffix in (".py", ".toml", ".md")]
    kept = [path for path in paths if not any(folder.startswith(("__", ".")) for folder in path.parts[:-1])]
    return [(Path(fill(str(path))), fill((root / path).read_text(encoding="utf-8")).encode()) for path in kept]
