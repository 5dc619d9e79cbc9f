"""New packages with a task: what ``labmates tasks new`` writes.

The template is a package that works; in its files and their names ``my_task`` and its kin are replaced.
"""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

from labmates.errors import UsageError
from labmates.tasks.registry import TASKS

LONGEST_NAME = 30
_NAME = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")


def new_package(name: str, folder: Path) -> list[Path]:
    """Write a package with the task `name` into `folder` and return its files, relative to the folder.

    Raises
    ------
    UsageError
        If the name is no identifier or taken, or if the folder has something in it or can't be written; then nothing
        is changed.
    """
    _check_name(name)
    written = []
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"'{folder}' exists and is not an empty folder; choose another one with --folder")
        for path, text in _filled(name):
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("x", encoding="utf-8") as file:
                file.write(text)
            written.append(path)
    except OSError as error:
        raise UsageError(f"can't write to '{folder}': {error.strerror}") from error
    return sorted(written)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        plain = "_".join(re.findall(r"[a-z0-9]+", name.lower()))[:LONGEST_NAME].strip("_")
        hint = f" For instance '{plain}'." if _NAME.fullmatch(plain) else ""
        raise UsageError(
            f"'{name}' can't be the name of a task: use at most {LONGEST_NAME} lower-case letters, digits and single "
            f"underscores, beginning with a letter.{hint}"
        )
    if name in TASKS:
        owner = TASKS.package(name) or "labmates"
        raise UsageError(f"there is a task '{name}' already, of {owner}; choose another name")
    if find_spec(f"labmates_{name}") is not None:
        raise UsageError(f"there is a Python package 'labmates_{name}' already; choose another name")


def _filled(name: str) -> list[tuple[Path, str]]:
    """The files of the template with their texts, made out for a task."""
    words = name.split("_")
    replacements = {
        "my_task": name,
        "my-task": "-".join(words),
        "MyTask": "".join(word.capitalize() for word in words) + "Task",
        "My task": " ".join(words).capitalize(),
        "My": "".join(word.capitalize() for word in words),
    }

    def fill(text: str) -> str:
        return re.sub(
            r"my_task|my-task|MyTask|My task|My(?=Findings|Instruments|Truth)", lambda one: replacements[one[0]], text
        )

    root = files("labmates.tasks") / "template"
    return [(Path(fill(str(path))), fill(file.read_text(encoding="utf-8"))) for path, file in _walk(root, Path())]


def _walk(folder: Traversable, path: Path) -> list[tuple[Path, Traversable]]:
    entries = []
    for one in folder.iterdir():
        if one.is_dir():
            entries += [] if one.name.startswith(("__", ".")) else _walk(one, path / one.name)
        elif one.name.endswith((".py", ".toml", ".md")):
            entries.append((path / one.name, one))
    return entries
