"""Prompt templates: one Markdown file each, filled in by `render`."""

from __future__ import annotations

from importlib.resources import files
from string import Template

from labmates.agents.facts import ALWAYS, true_sentences


class Prompts:
    """The prompts in a package's folder ``prompts``.

    They are read once, when this is made: prompts are made inside event loops, which reading files would block. `texts`
    are the templates by name, with their marks (`labmates.agents.facts`).
    """

    def __init__(self, package: str | None) -> None:
        self.texts = {
            file.name.removesuffix(".md"): file.read_text(encoding="utf-8").rstrip("\n")
            for file in (files(str(package)) / "prompts").iterdir()
            if file.name.endswith(".md")
        }

    def template(self, name: str) -> Template:
        """The template called `name`, with the sentences that are true everywhere."""
        return Template(true_sentences(self.texts[name], ALWAYS))

    def render(self, name: str, /, **values: object) -> str:
        """Fill in the template called `name`. Raises `KeyError` if a placeholder has no value."""
        return self.template(name).substitute({key: str(value) for key, value in values.items()})


_PROMPTS = Prompts("labmates.agents")
TEXTS, render = _PROMPTS.texts, _PROMPTS.render
