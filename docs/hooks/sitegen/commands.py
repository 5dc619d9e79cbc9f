"""The command line as pages: one for each verb, from what click knows of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from labmates.cli.main import labmates
from sitegen.markup import cell, code, fence, table


def command_pages() -> Iterator[tuple[str, str]]:
    """Return path and Markdown of a page for each verb."""
    with click.Context(labmates, info_name="labmates") as root:
        for verb in labmates.list_commands(root):
            command = labmates.get_command(root, verb)
            assert command is not None
            yield f"reference/commands/{verb}.md", "\n\n".join(_sections(command, root, verb, level=1))


def examples_of(command: click.Command) -> list[str]:
    """Return the examples at the end of a verb's help."""
    return re.sub(r"^Examples?: ", "", command.epilog or "").split("; ") if command.epilog else []


def _sections(command: click.Command, parent: click.Context, name: str, *, level: int) -> Iterator[str]:
    ctx = click.Context(command, info_name=name, parent=parent)
    # One title a page; all that is below a verb stands side by side, however deep.
    yield f"{'#' * min(level, 2)} `{ctx.command_path.removeprefix('labmates ') if level > 1 else ctx.command_path}`"
    yield _prose(command.help or "")
    yield fence("text", " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)]))
    if command.epilog:
        yield fence("sh", "\n".join(examples_of(command)))
    options = [record for one in command.get_params(ctx) if (record := one.get_help_record(ctx)) is not None]
    yield table(["Option", "What it does"], [[code(flags), cell(said)] for flags, said in options])
    if isinstance(command, click.Group):
        for below in command.list_commands(ctx):
            found = command.get_command(ctx, below)
            assert found is not None
            yield from _sections(found, ctx, below, level=level + 1)


def _prose(text: str) -> str:
    """Return a help text as Markdown: its paragraphs, with nothing that would be markup."""
    return "\n\n".join(cell(paragraph.replace("\b", "")) for paragraph in text.split("\n\n"))
