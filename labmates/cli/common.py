"""The options that many commands have."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


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
