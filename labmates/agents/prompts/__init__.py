"""Prompt templates: one Markdown file each, filled in by `render`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template


@cache
def template(name: str) -> Template:
    """The template called `name`."""
    return Template(files(__name__).joinpath(f"{name}.md").read_text(encoding="utf-8").rstrip("\n"))


def render(name: str, /, **values: object) -> str:
    """Fill in the template called `name`; every placeholder of it must be given.

    Raises
    ------
    KeyError
        If a placeholder has no value.
    """
    return template(name).substitute({key: str(value) for key, value in values.items()})
