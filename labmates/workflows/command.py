"""The command protocol: what an experiment does beside runs and analyses, such as taking a profile.

From a `Command` follow its options, texts, JSON objects, files and, where it names a function, ``labmates.NAME``.
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
    from labmates.workflows.analysis import Choice, Params, Result, Runs
    from labmates.workflows.experiment import Condition

T = TypeVar("T")


class Lab(Protocol):
    """The lab of a verb.

    Whatever executes runs or does other work raises `InterruptedWorkError` if the user stops it.

    Attributes
    ----------
    catalog
        Resolves models, and collects how they are reached.
    given
        Parameters of the verb's experiment that the user gave.
    as_json
        Whether the user reads the objects of results alone, and no table.
    """

    catalog: Catalog
    given: Mapping[str, Any]
    as_json: bool

    @property
    def store(self) -> Store:
        """The store, made if there is none."""

    @property
    def runs(self) -> Runs:
        """The runs that the user chose, of a store that exists."""

    def notify(self, text: str) -> None:
        """Show a line that the user should know."""

    def step(self, text: str) -> None:
        """Show what is being done, where somebody watches."""

    def warn(self, text: str) -> None:
        """Show a warning."""

    def condition(self, kind: str, values: Mapping[str, Any]) -> Condition:
        """A checked condition of an experiment: these values, and those that the user gave.

        Raises
        ------
        UsageError
            If a value is missing, unknown or out of bounds.
        """

    def run(self, condition: Condition, *, seed: int = 0) -> RunRecord:
        """Execute one separate run and return it after its end."""

    def resume(self, run_id: str, kind: str) -> RunRecord:
        """Resume a run of this kind and return it as it ended.

        Raises
        ------
        UsageError
            If there is no such run, it has ended, or its condition is another than the user gave.
        """

    def play(
        self, conditions: Sequence[Condition], replicates: int, *, seed: int = 0, at_once: int, part_of: str
    ) -> list[RunRecord]:
        """The ended runs of conditions: those that the store holds, and those that it lacks, executed now.

        Parameters
        ----------
        replicates
            Of each condition; replicate r has ``seed + r``.
        at_once
            Most runs going on at once, where the user did not say.
        part_of
            What the runs belong to, in messages.

        Raises
        ------
        UsageError
            If stored runs of a condition have other seeds.
        """

    def report(self, run_id: str) -> Report:
        """The report of an ended run, as judges read it.

        Raises
        ------
        UsageError
            If there is no such run, it has not ended, or it is of a kind that writes no report.
        """

    def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Do asynchronous work."""


@dataclass(frozen=True)
class Command:
    """A command of the command line, or a group of commands.

    Attributes
    ----------
    run
        Yields results (`labmates.workflows.analysis.Result`) from a `Lab` and the parameters; each is shown when it
        comes. Its docstring is the text of ``--help``. None for a mere group.
    params
        The model of its parameters (`labmates.workflows.analysis.Params`); each field becomes an option.
    commands
        The commands of a group by name. A group with `run` does that when no command is named.
    function
        The function ``labmates.NAME``; it takes a `Lab` first.
    example
        A command line, for ``--help`` and the docs.
    kind, fixed
        An experiment whose parameters become options as well, but for the fixed ones, which the command decides.
    asks_models
        Whether it takes the options by which models are reached.
    has_store
        Whether it takes a store.
    has_tables, has_figures
        Whether it writes tables and draws figures.
    choices
        How the user chooses runs.
    objects
        What one JSON object stands for, as in "per model"; None for a command that prints no JSON.
    """

    run: Callable[[Lab, Any], Iterable[Result]] | None = None
    params: type[Params] | None = None
    commands: Mapping[str, Command] = field(default_factory=dict)
    function: Callable[..., Any] | None = None
    example: str = ""
    kind: str = ""
    fixed: Iterable[str] = ()
    asks_models: bool = False
    has_store: bool = False
    has_tables: bool = False
    has_figures: bool = False
    choices: tuple[Choice, ...] = ()
    objects: str | None = None
