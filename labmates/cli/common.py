"""The options that many commands have."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
logging.getLogger("labmates").addHandler(logging.NullHandler())


class RegistryGroup(click.Group):
    """A group whose commands come from a registry; a name that is not there is told with the nearest one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name, with the rest of them."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            close = get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f" Did you mean '{close[0]}'?" if close else ""
            ctx.fail(f"No such command '{name}'.{hint}")
        return super().resolve_command(ctx, args)


def store_option(function: F) -> F:
    """Add ``--store``."""
    return click.option(
        "--store",
        metavar="URL",
        help="Where runs are kept. Default: sqlite:///labmates.db, or LABMATES_STORE.",
    )(function)


def json_option(which: str = "") -> Callable[[F], F]:
    """Return what adds ``--json``, as `as_json`; `which` tells of what there is an object, as in "per run"."""
    objects = f"one JSON object {which}".strip()
    return click.option("--json", "as_json", is_flag=True, help=f"Print {objects} and nothing else.")


def verbose_option(function: F) -> F:
    """Add ``-v``."""

    def start(_ctx: click.Context, _param: click.Parameter, value: int) -> None:
        if value:
            handler = logging.StreamHandler(sys.stderr)
            handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
            logger = logging.getLogger("labmates")
            logger.addHandler(handler)
            logger.setLevel(logging.DEBUG if value > 1 else logging.INFO)

    return click.option(
        "-v", "--verbose", count=True, callback=start, expose_value=False, help="Log to standard error; -vv logs more."
    )(function)
