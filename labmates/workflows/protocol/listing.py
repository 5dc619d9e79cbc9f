"""Listings of registries that go on where a plug-in can't be used."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from labmates.registry import PluginError, Registry

if TYPE_CHECKING:
    from labmates.workflows.protocol.analysis import Result
    from labmates.workflows.protocol.command import Lab

V = TypeVar("V")

MOST_SECONDS = 15.0
"""A plug-in that takes longer to be imported and looked at hangs."""


def look_at_all(registry: Registry[Any], look: Callable[[str], V], warn: Callable[[str], None]) -> dict[str, V]:
    """The result of `look` for each entry of a registry; warns of plug-ins that can't be used."""
    for line in registry.shadowed():
        warn(line)
    seen = {}
    for name in registry:
        limit = time_limit(MOST_SECONDS) if registry.package(name) else nullcontext()
        try:
            with registry.guarded(name, "can't be used"), limit:
                seen[name] = look(name)
        except PluginError as error:
            warn(str(error))
    return seen


def listing(lab: Lab, registry: Registry[Any], look: Callable[[str], dict[str, Any]]) -> Iterator[Result]:
    """A line for each entry of a registry: name, ``title`` and the package that it comes from.

    Parameters
    ----------
    look
        What there is to say of an entry, ``title`` among it; objects have all of that.
    """
    from labmates.workflows.protocol.analysis import Result

    width = max(map(len, registry.names()), default=0) + 2
    for name, shown in look_at_all(registry, look, lab.warn).items():
        package = registry.package(name)
        line = f"{name:<{width}}{shown['title']}" + (f"  ({package})" if package else "")
        yield Result((), verdict=[line], objects=[{"name": name, **shown, "package": package}])


def checked(name: str, problems: Sequence[str]) -> Result:
    """The problems of something that was checked."""
    from labmates.workflows.protocol.analysis import Result

    text = f"{name}: {len(problems) or 'no'} problems."
    return Result((), verdict=[*problems, text], fault=f"{name} does not pass the check" if problems else None)


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
