"""Studies that come with labmates: YAML files in this folder, by name."""

from __future__ import annotations

from importlib.resources import files

_FOLDER = files(__name__)


def names() -> list[str]:
    """The names of all studies."""
    return sorted(entry.name.removesuffix(".yaml") for entry in _FOLDER.iterdir() if entry.name.endswith(".yaml"))


def text(name: str) -> str:
    """The YAML of a study."""
    return (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
