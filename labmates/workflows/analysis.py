"""The analysis protocol: what runs of a store mean, computed once and shown everywhere.

From an `Analysis` follow ``labmates analyze NAME`` with its options, `labmates.analyze`, a part of reports, files of
tables (CSV, Parquet, LaTeX) and figures. Nothing lists its tables, figures or parameters a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from labmates.errors import UsageError
from labmates.records.frames import Rows, frame
from labmates.records.listing import select_runs
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.registry import Registry
from labmates.stats.figures import Drawing as Drawing
from labmates.stats.tables import Table

if TYPE_CHECKING:
    import pandas as pd

    from labmates.workflows.condition import Condition

Choice = Literal["runs", "study", "study_argument", "kind", "task"]
"""An argument RUN..., the option or the argument for a study, and the options for an experiment and a task."""


class Params(BaseModel):
    """The parameters of an analysis; base of their models. Each field becomes an option."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Runs:
    """The runs that an analysis is asked about; nothing is read before it is needed.

    Parameters
    ----------
    url
        Store, by its URL or file; default ``LABMATES_STORE``, else ``labmates.db``.
    ids
        Ids of runs; without any, all runs of the store count.
    study, kind, task
        Runs of this study, of this experiment, of this task alone.
    watch
        Told the steps of an analysis that takes minutes.
    """

    def __init__(
        self,
        url: str | None = None,
        ids: Sequence[str] = (),
        *,
        study: str | None = None,
        kind: str | None = None,
        task: str | None = None,
        watch: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.url = url
        self.ids = tuple(ids)
        self.study = study
        self.kind = kind
        self.task = task
        self.watch = watch
        self._records: list[RunRecord] | None = None
        self._opened = False

    @classmethod
    def given(cls, store: Store, records: Sequence[RunRecord]) -> Runs:
        """Runs of an open store that were chosen before."""
        runs = cls(store.url, [record.id for record in records])
        runs._records = list(records)
        runs.__dict__["store"] = store
        return runs

    @cached_property
    def store(self) -> Store:
        """The store.

        Raises
        ------
        UsageError
            If there is no such store.
        """
        self._opened = True
        return Store(self.url, must_exist=True)

    def records(self, kind: str | None = None) -> list[RunRecord]:
        """The records of the runs, oldest first.

        Parameters
        ----------
        kind
            The experiment whose runs count if none were named.

        Raises
        ------
        UsageError
            If there are none.
        """
        if self._records is None:
            kind = self.kind or (None if self.ids else kind)
            self._records = select_runs(self.store, self.ids, study=self.study, kind=kind, task=self.task)
        return self._records

    def ended(self, kind: str | None = None) -> list[RunRecord]:
        """The records of the runs that have ended; as `records`."""
        return [record for record in self.records(kind) if record.status in ENDED]

    def completed(self, kind: str) -> list[RunRecord]:
        """The records of the completed runs of an experiment.

        Raises
        ------
        UsageError
            If there are none, or a named run is of another experiment.
        """
        records = self.records(kind)
        if other := next((record for record in records if record.kind != kind), None):
            raise UsageError(f"the run '{other.id}' is of the kind {other.kind}, not {kind}")
        completed = [record for record in records if record.status == "completed"]
        if not completed:
            raise TooFewRunsError(f"none of these {len(records)} runs of the kind {kind} is completed")
        return completed

    def frame(self, what: Rows, kind: str | None = None) -> pd.DataFrame:
        """The stored data of the ended runs; for the columns see `labmates.records.frames.frame`.

        Parameters
        ----------
        what
            ``runs``, ``scores``, ``players``, ``decisions``, ``payoffs`` or ``events``.
        kind
            As for `records`.
        """
        return frame(self.store, what, self.ended(kind))

    def close(self) -> None:
        """Close the store if it was opened here."""
        if self._opened:
            self.store.close()


@dataclass(frozen=True)
class Missing:
    """Runs that a result lacks.

    Attributes
    ----------
    text
        What they are and why they are missing.
    condition, seeds, settings
        With what to make them; without a condition nothing can make them.
    """

    text: str
    condition: Condition | None = None
    seeds: Sequence[int] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)


class TooFewRunsError(UsageError):
    """The runs have nothing to analyse; a report leaves the analysis out.

    Parameters
    ----------
    missing
        The runs that would change that.
    """

    def __init__(self, text: str, missing: Sequence[Missing] = ()) -> None:
        super().__init__(text)
        self.missing = tuple(missing)


@dataclass(frozen=True)
class Result:
    """The result of an analysis.

    Attributes
    ----------
    tables
        Tidy tables, the main one first.
    figures
        Figures.
    verdict
        The answer in sentences.
    objects
        What ``--json`` prints, one object a line; by default the rows of the first table.
    details
        Tables that a screen shows on request or beside the others, and files don't hold.
    remarks
        Further sentences by heading, shown below the tables.
    warnings
        Why to doubt the result.
    exports
        Writers of further files, by the names of `Analysis.exports`.
    fault
        Why the result can't be used although there is one; the command line then ends with 1.
    missing
        Runs that would make the result more complete.
    document
        A text that the command line prints as it is, and nothing else (the file of a study, for instance).
    """

    tables: Sequence[Table]
    figures: Sequence[Drawing] = ()
    verdict: Sequence[str] = ()
    objects: Sequence[Mapping[str, Any]] | None = None
    details: Sequence[Table] = ()
    remarks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    exports: Mapping[str, Callable[[Path], Sequence[Path]]] = field(default_factory=dict)
    fault: str | None = None
    missing: Sequence[Missing] = ()
    document: str = ""

    def table(self, name: str | None = None) -> Table:
        """The table of this name; by default the first.

        Raises
        ------
        UsageError
            If there is no such table.
        """
        tables = {table.name: table for table in self.tables}
        if name is None:
            return self.tables[0]
        if name not in tables:
            raise UsageError(f"there is no table '{name}'; tables: {', '.join(tables)}")
        return tables[name]

    def frame(self, name: str | None = None) -> pd.DataFrame:
        """A table as a data frame with all values; as `table`."""
        return self.table(name).frame()

    def _repr_html_(self) -> str:
        """Verdict, tables and figures, for notebooks."""
        from labmates.pages.section import body_html

        bodies: Sequence[str | Table | Drawing] = (*self.verdict, *self.tables, *self.figures)
        return "".join(map(body_html, bodies))

    def json_objects(self) -> Sequence[Mapping[str, Any]]:
        """The objects that ``--json`` prints."""
        return self.tables[0].rows if self.objects is None else self.objects


@dataclass(frozen=True)
class Export:
    """A further file that an analysis writes on request.

    Attributes
    ----------
    name
        Of its option: ``rows_out`` gives ``--rows-out``.
    endings
        Allowed endings of its file, for instance ``(".nc",)``.
    check
        Raises `UsageError` if it can't be written, for instance since an extra is not installed; called before
        anything is computed.
    """

    name: str
    endings: tuple[str, ...]
    description: str
    check: Callable[[Path], None] | None = None


P = TypeVar("P", bound=Params)


@dataclass(frozen=True)
class Analysis(Generic[P]):
    """An analysis of runs.

    Other packages add theirs through the entry-point group ``labmates.analyses``. The module should be quick to import:
    `compute` imports what it needs itself.

    Attributes
    ----------
    name
        Of the verb; ``check/prediction`` becomes ``labmates analyze check prediction``.
    title
        The heading of its part in a report.
    params
        The model of its parameters; all need a default for a report to show the analysis.
    compute
        Returns the result. Its docstring is the text of ``--help``.
    example
        A command, for ``--help`` and the docs.
    choices
        How runs may be chosen; empty for an analysis that reads files alone.
    kind
        The experiment whose runs count if none are named; None for any.
    objects
        What one JSON object stands for, as in "per cell".
    has_figures
        Whether it draws figures.
    exports
        Further files that it writes.
    in_report
        Its parameters in a report, where these are not the defaults.
    """

    name: str
    title: str
    params: type[P]
    compute: Callable[[Runs, Any], Result]
    example: str = ""
    choices: tuple[Choice, ...] = ("runs", "study")
    kind: str | None = None
    objects: str = "per row"
    has_figures: bool = False
    exports: tuple[Export, ...] = ()
    in_report: Params | None = None

    def shown_params(self) -> Params:
        """The parameters with which reports and the viewer show it."""
        return self.in_report or self.params()

    def shown(self, store: Store, records: Sequence[RunRecord]) -> Result:
        """The result of runs as reports and the viewer show it.

        Raises
        ------
        TooFewRunsError
            If the runs have nothing to analyse.
        """
        return self.compute(Runs.given(store, records), self.shown_params())


ANALYSES: Registry[Analysis[Any]] = Registry(
    "analysis",
    "labmates.analyses",
    {
        "agreement": "labmates.workflows.agreement_analysis:AGREEMENT",
        "contrasts": "labmates.workflows.contrasts_analysis:CONTRASTS",
    },
)
"""All analyses by name."""
