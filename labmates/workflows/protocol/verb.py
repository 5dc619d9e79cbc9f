"""The verbs that experiments and other packages bring. This module is light: ``labmates --help`` imports it."""

from __future__ import annotations

from typing import Final, NamedTuple

from labmates.errors import LabmatesError
from labmates.registry import Registry, lazy


class InterruptedWorkError(LabmatesError):
    """The user stopped the work; what was done is kept."""


PAUSED_CODE: Final = 75
"""Exit code of work that a provider refuses for hours: the error says when to resume (``EX_TEMPFAIL`` of sysexits)."""


class PausedWorkError(InterruptedWorkError):
    """A model takes no calls for hours; the reason was shown, and what was done is kept."""


class Verb(NamedTuple):
    """A command and its place in the list of verbs.

    Experiments declare theirs in ``ENTRIES``, other packages through the entry-point group ``labmates.verbs``. A name
    with a slash is that of a command within a group: ``analyze/reasons``. ``labmates --help`` imports the module that
    holds a verb, but not its command.

    Attributes
    ----------
    summary
        One sentence.
    command
        The `labmates.workflows.protocol.command.Command`, or a command of click, as ``lazy("module:attribute")``.
    """

    summary: str
    command: lazy


VERBS: Registry[Verb] = Registry("verb", "labmates.verbs")
"""All verbs by name, but for those that no experiment brings."""
