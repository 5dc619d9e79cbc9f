"""The command protocol: commands of an experiment beyond runs and analyses, such as profiling.

A `Command` defines its options, texts, JSON objects, files and, if it names a function, ``labmates.NAME``.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from labmates.judges.base import Report
    from labmates.models.catalog import Catalog
    from labmates.records.run import RunRecord
    from labmates.records.store import Store
    from labmates.workflows.protocol.analysis import Choice, Params, Result, Runs
    from labmates.workflows.protocol.experiment import Condition

T = TypeVar("T")


class Lab(Protocol):
    """The lab of a verb.

    Methods that execute runs or other work raise `InterruptedWorkError` if the user stops them.

    Attributes
    ----------
    catalog
        Resolves models, and collects their connections.
    given
        Parameters of the verb's experiment set by the user.
    as_json
        Whether the output is JSON objects only.
    """

    catalog: Catalog
    given: Mapping[str, Any]
    as_json: bool

    def settings_for(self, before: Mapping[str, Any], /) -> Any:
        """The user's settings on top of a run's earlier ones."""

    @property
    def store(self) -> Store:
        """The store, created if missing."""

    @property
    def runs(self) -> Runs:
        """The runs chosen by the user, of an existing store."""

    def notify(self, text: str) -> None:
        """Show a line of information."""

    def step(self, text: str) -> None:
        """Show progress in an interactive session."""

    def warn(self, text: str) -> None:
        """Show a warning."""

    def condition(self, kind: str, values: Mapping[str, Any]) -> Condition:
        """A checked condition of an experiment, with these values and the user's.

        Raises
        ------
        UsageError
            If a value is missing, unknown or out of bounds.
        """

    def run(self, condition: Condition, *, seed: int = 0) -> RunRecord:
        """Execute a single run; returns its record at its end."""

    def resume(self, run_id: str, kind: str) -> RunRecord:
        """Resume a run of this kind; returns its record at its end.

        Raises
        ------
        UsageError
            If the run is unknown or has ended, or its condition differs from the user's.
        """

    def play(
        self, conditions: Sequence[Condition], replicates: int, *, seed: int = 0, at_once: int, part_of: str
    ) -> list[RunRecord]:
        """The ended runs of conditions; missing ones are executed.

        Parameters
        ----------
        replicates
            Runs per condition; replicate r has ``seed + r``.
        at_once
            Default limit of concurrent runs.
        part_of
            Name of the whole in messages.

        Raises
        ------
        UsageError
            If stored runs of a condition have other seeds.
        """

    def execute(self, runs: list[RunRecord], settings: Any, part_of: str | None = None) -> None:
        """Execute runs of the store; `part_of` names the larger work that resumes them, None for separate runs."""

    def report(self, run_id: str) -> Report:
        """The report of an ended run, as a judge's input.

        Raises
        ------
        UsageError
            If the run is unknown, has not ended, or is of a kind without reports.
        """

    def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of asynchronous work."""


@dataclass(frozen=True)
class Command:
    """A command of the command line, or a group of commands.

    Attributes
    ----------
    run
        Yields results (`protocol.analysis.Result`) from a `Lab` and the parameters; each is shown at once.
        Its docstring is the text of ``--help``. None for a plain group.
    params
        Model of its parameters (`labmates.workflows.protocol.analysis.Params`); each field becomes an option.
    commands
        Commands of a group, by name. `run` is the default command of a group.
    function
        The function ``labmates.NAME``; its first argument is a `Lab`.
    example
        A command line, for ``--help`` and the docs.
    kind, fixed
        An experiment whose parameters also become options, except the fixed ones.
    asks_models, executes
        Whether it takes the options for reaching models, and those for executing runs of any kind.
    has_store
        Whether it takes a store.
    has_tables, has_figures
        Whether it writes tables and draws figures.
    choices
        Ways to choose runs.
    objects
        Unit of one JSON object, as in "per model"; None for a command without JSON output.
    """

    run: Callable[[Lab, Any], Iterable[Result]] | None = None
    params: type[Params] | None = None
    commands: Mapping[str, Command] = field(default_factory=dict)
    function: Callable[..., Any] | None = None
    example: str = ""
    kind: str = ""
    fixed: Iterable[str] = ()
    asks_models: bool = False
    executes: bool = False
    has_store: bool = False
    has_tables: bool = False
    has_figures: bool = False
    choices: tuple[Choice, ...] = ()
    objects: str | None = None
