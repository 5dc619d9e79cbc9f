"""Listings that go on where a plug-in can't be used."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, TypeVar

from labmates.cli.console import clean, complain, out, print_json
from labmates.registry import PluginError, Registry

V = TypeVar("V")

MOST_SECONDS = 15.0
"""A plug-in that takes longer to be imported and looked at hangs."""


def look_at_all(registry: Registry[Any], look: Callable[[str], V]) -> dict[str, V]:
    """Return what `look` gives for each entry of a registry; complain about plug-ins that can't be used."""
    for line in registry.shadowed():
        complain(line)
    found = {}
    for name in registry:
        limit = time_limit(MOST_SECONDS) if registry.package(name) else nullcontext()
        try:
            with registry.guarded(name, "can't be used"), limit:
                found[name] = look(name)
        except PluginError as error:
            complain(str(error))
    return found


def print_all(registry: Registry[Any], look: Callable[[str], dict[str, Any]], *, as_json: bool) -> None:
    """Print a line for each entry of a registry: name, ``title`` and the package that it comes from.

    Parameters
    ----------
    look
        What there is to say of an entry, ``title`` among it.
    as_json
        Print one JSON object each instead, with all of that.
    """
    width = max(map(len, registry.names()), default=0) + 2
    for name, found in look_at_all(registry, look).items():
        told = {"name": name, **found, "package": registry.package(name)}
        if as_json:
            print_json(told)
        else:
            package = f"  ({told['package']})" if told["package"] else ""
            out().print(clean(f"{name:<{width}}{told['title']}{package}"), markup=False)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``TimeoutError`` in what takes longer; for the main thread."""

    def stop(_signal: int, _frame: object) -> None:
        raise TimeoutError(f"it did not end within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
