"""Prompt templates: one Markdown file each, filled in by `render`."""

from __future__ import annotations

from importlib.resources import files
from string import Template

# Read once, at import: prompts are made inside event loops, which reading files would block.
_TEMPLATES = {
    file.name.removesuffix(".md"): Template(file.read_text(encoding="utf-8").rstrip("\n"))
    for file in files(__name__).iterdir()
    if file.name.endswith(".md")
}


def template(name: str) -> Template:
    """The template called `name`."""
    return _TEMPLATES[name]


def render(name: str, /, **values: object) -> str:
    """Fill in the template called `name`; every placeholder of it must be given.

    Raises
    ------
    KeyError
        If a placeholder has no value.
    """
    return template(name).substitute({key: str(value) for key, value in values.items()})
