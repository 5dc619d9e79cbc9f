"""Digests of the user's code in an organisation: what a run was made with, and whether it is still the same."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labmates.agents.organisation import Organisation
from labmates.errors import UsageError


def with_code(organisation: Organisation) -> Organisation:
    """The organisation with the digests of its code, unless it has them: a record keeps those of its run."""
    code = organisation.code or digests(organisation)
    return organisation.model_copy(update={"code": code}) if code != organisation.code else organisation


def digests(organisation: Organisation) -> dict[str, str]:
    """The SHA-256 of each file that an organisation executes, by the file's path or module.

    These are the files of its functions, and those that commands name, apart from programs on the ``PATH``. What they
    import is not covered.
    """
    seats = [seat for _, seat in organisation.seats.values()]
    places = filter(None, [organisation.graph, *(seat.python for seat in seats)])
    commands = [*(seat.command for seat in seats), *(server.command for server in organisation.mcp.values())]
    names = [place.rpartition(":")[0] for place in places]
    names += [word for command in commands for word in command if Path(word).is_file() and not _is_installed(word)]
    return {name: digest for name in dict.fromkeys(names) if (digest := _digest(name))}


def check_code(organisation: Organisation) -> None:
    """Raise a `UsageError` if a file of the organisation differs from its digest."""
    for name, digest in organisation.code.items():
        if (now := _digest(name)) != digest:
            what = f"has changed (SHA-256 {digest[:12]}, now {now[:12]})" if now else "is missing"
            raise UsageError(
                f"organisation {organisation.name}: its code '{name}' {what}; restore it, or start a new run"
            )


def without_folders(value: Any, code: Mapping[str, str]) -> Any:
    """JSON data with digests in place of the paths of code, so that a moved file makes no other condition."""
    if isinstance(value, dict):
        return {name: without_folders(each, code) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_folders(each, code) for each in value]
    if not isinstance(value, str) or value in code:
        return code.get(value, value)
    head, colon, name = value.rpartition(":")
    return f"{code[head]}{colon}{name}" if head in code else value


def _is_installed(word: str) -> bool:
    return shutil.which(Path(word).name) == word or Path(word).resolve() == Path(sys.executable).resolve()


def _digest(name: str) -> str:
    """The digest of a file or module; empty if there is none."""
    inner = name.replace(".", "/")
    modules = (Path(base) / f"{inner}{end}" for base in (".", *sys.path) for end in (".py", "/__init__.py"))
    for path in (Path(name), *modules):
        if path.is_file():
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    return ""
