"""The analysis protocol: results of a store's runs, computed once and shown everywhere.

An `Analysis` defines ``labmates analyze NAME`` with its options, `labmates.analyze`, a part of reports, files of tables
(CSV, Parquet, LaTeX) and figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from labmates.errors import LabmatesError, UsageError
from labmates.records.run import ENDED, RunRecord
from labmates.registry import PluginError, Registry
from labmates.stats.figures import Drawing as Drawing
from labmates.stats.tables import Table

if TYPE_CHECKING:
    import pandas as pd

    from labmates.records.frames import Rows
    from labmates.records.store import Store

Choice = Literal["runs", "study", "study_argument", "kind", "task", "allow_mixed"]
"""Ways to choose runs: an argument RUN..., an option or argument for a study, options for an experiment and a task, and
one for runs that were made with different prompts, rules or code."""


ANY_KIND: Final = ("*",)
"""`Analysis.shown_for` of an analysis that every experiment's reports show."""


class Params(BaseModel):
    """Base of the parameters of analyses; each field becomes an option."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(eq=False)
class Runs:
    """The runs of an analysis, read when needed.

    Parameters
    ----------
    url
        Store, by its URL or file; default ``LABMATES_STORE``, else ``labmates.db``.
    ids
        Ids of runs; without any, all runs of the store count.
    study, kind, task
        Restrict the runs to a study, an experiment, a task.
    allow_mixed
        Analyse runs that were made with different prompts, rules or code.
    watch
        Called with the steps of a long analysis.

    Attributes
    ----------
    pools
        Whether an analysis takes the runs together.
    mixtures
        What differs between these runs, if `allow_mixed`.
    """

    url: str | None = None
    ids: Sequence[str] = ()
    _: KW_ONLY
    study: str | None = None
    kind: str | None = None
    task: str | None = None
    allow_mixed: bool = False
    watch: Callable[[str], None] = lambda _: None
    pools: bool = field(default=False, init=False)
    mixtures: list[str] = field(default_factory=list, init=False)
    _records: list[RunRecord] | None = field(default=None, init=False)
    _opened: bool = field(default=False, init=False)

    @classmethod
    def given(cls, store: Store, records: Sequence[RunRecord]) -> Runs:
        """Chosen runs of an open store, also mixed ones."""
        runs = cls(store.url, [record.id for record in records], allow_mixed=True)
        runs._records = list(records)
        runs.__dict__["store"] = store
        return runs

    @cached_property
    def store(self) -> Store:
        """The store.

        Raises
        ------
        UsageError
            If the store does not exist.
        """
        from labmates.records.store import Store

        self._opened = True
        return Store(self.url, must_exist=True)

    def records(self, kind: str | None = None, *, forks: bool = False) -> list[RunRecord]:
        """The records of the runs, in the order of the study's file (`labmates.records.store.Store.runs`).

        Forks share their first events with their origins and are no runs of their conditions: they are left out, unless
        they are named, or there are no others.

        Parameters
        ----------
        kind
            Default experiment, if no runs were named.
        forks
            Whether forks are among them; whoever asks for these chooses, and calls `together`.

        Raises
        ------
        UsageError
            If there are no runs.
        MixedRunsError
            See `together`.
        """
        from labmates.records.listing import select_runs

        if self._records is None:
            kind = self.kind or (None if self.ids else kind)
            self._records = select_runs(self.store, self.ids, study=self.study, kind=kind, task=self.task)
        whole = [record for record in self._records if record.origin is None]
        return self._records if forks else self.together(self._records if self.ids or not whole else whole)

    def together(self, records: Iterable[RunRecord]) -> list[RunRecord]:
        """Runs that an analysis takes together.

        Raises
        ------
        MixedRunsError
            If they were made with different prompts, rules or code, unless that is allowed.
        """
        from labmates.records.made import MixedRunsError, mixtures_of

        chosen = list(records)
        mixed = mixtures_of(chosen) if self.pools else []
        if mixed and not self.allow_mixed:
            raise MixedRunsError("this analysis", mixed)
        self.mixtures = list(dict.fromkeys([*self.mixtures, *mixed]))
        return chosen

    def ended(self, kind: str | None = None) -> list[RunRecord]:
        """The records of ended runs; see `records`."""
        return [record for record in self.records(kind) if record.status in ENDED]

    def completed(self, kind: str) -> list[RunRecord]:
        """The records of the completed runs of an experiment.

        Raises
        ------
        UsageError
            If there are none, or a named run has another experiment.
        """
        records = self.records(kind)
        if other := next((record for record in records if record.kind != kind), None):
            raise UsageError(f"run {other.id} has the kind {other.kind}, not {kind}")
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
            See `records`.
        """
        from labmates.records.frames import frame

        return frame(self.store, what, self.ended(kind))

    def close(self) -> None:
        """Close the store if it was opened here."""
        if self._opened:
            self.store.close()


class TooFewRunsError(UsageError):
    """The runs are too few to analyse; reports omit the analysis."""


@dataclass(frozen=True)
class Result:
    """The result of an analysis.

    Attributes
    ----------
    tables
        Tidy tables, the main one first.
    verdict
        The answer in sentences.
    objects
        Objects for ``--json``, one per line; by default the rows of the first table.
    details
        Tables for the screen, shown on request or beside the others, and not written to files.
    remarks
        Further sentences by heading, shown below the tables.
    warnings
        Reasons to doubt the result.
    fault
        Reason why the result is unusable; the command line then exits with 1.
    document
        A text for the command line to print unchanged, in place of everything else (for instance a study file).
    """

    tables: Sequence[Table]
    figures: Sequence[Drawing] = ()
    verdict: Sequence[str] = ()
    objects: Sequence[Mapping[str, Any]] | None = None
    details: Sequence[Table] = ()
    remarks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    fault: str | None = None
    document: str = ""

    def table(self, name: str | None = None) -> Table:
        """A table by name; by default the first.

        Raises
        ------
        UsageError
            If the name is unknown.
        """
        tables = {table.name: table for table in self.tables}
        if name is None:
            return self.tables[0]
        if name not in tables:
            raise UsageError(f"there is no table '{name}'; tables: {', '.join(tables)}")
        return tables[name]

    def frame(self, name: str | None = None) -> pd.DataFrame:
        """A table as a data frame with all values; see `table`."""
        return self.table(name).frame()

    def _repr_html_(self) -> str:
        """Verdict, tables and figures, for notebooks."""
        from labmates.pages.section import body_html

        bodies: Sequence[str | Table | Drawing] = (*self.verdict, *self.tables, *self.figures)
        return "".join(map(body_html, bodies))

    def json_objects(self) -> Sequence[Mapping[str, Any]]:
        """The objects for ``--json``."""
        return self.tables[0].rows if self.objects is None else self.objects


P = TypeVar("P", bound=Params)


@dataclass(frozen=True)
class Analysis(Generic[P]):
    """An analysis of runs.

    Other packages add theirs through the entry-point group ``labmates.analyses``. Keep the module quick to import:
    import large packages in `compute`.

    Attributes
    ----------
    name
        Name of the verb; ``check/prediction`` becomes ``labmates analyze check prediction``.
    title
        Heading in a report.
    params
        Model of its parameters; reports show the analysis only if all have defaults.
    compute
        Returns the result. Its docstring is the text of ``--help``. Call it through `result`.
    example
        A command, for ``--help`` and the docs.
    choices
        Ways to choose runs; empty for an analysis of files.
    kind
        Default experiment, if no runs are named; None for any.
    shown_for
        Experiments whose reports and pages in the viewer show it, of whatever package, or `ANY_KIND`; by default its
        `kind`.
    objects
        Unit of one JSON object, as in "per cell".
    has_figures
        Whether it draws figures.
    answers
        Whether its verdict answers what a study asks: the study's page in the viewer begins with it.
    in_report
        Parameters in a report, if they differ from the defaults.
    """

    name: str
    title: str
    params: type[P]
    compute: Callable[[Runs, Any], Result]
    example: str = ""
    choices: tuple[Choice, ...] = ("runs", "study")
    kind: str | None = None
    shown_for: tuple[str, ...] | None = None
    objects: str = "per row"
    has_figures: bool = False
    answers: bool = False
    in_report: Params | None = None

    def is_shown_for(self, kind: str) -> bool:
        """Whether reports and pages of an experiment show it."""
        return kind == self.kind if self.shown_for is None else self.shown_for == ANY_KIND or kind in self.shown_for

    def result(self, runs: Runs, params: Params) -> Result:
        """The result of runs; a plug-in's error that is not a `LabmatesError` names the analysis and its package."""
        runs.pools = True
        try:
            result: Result = self.compute(runs, params)
            mixed = (f"The runs were made with different {mixture}." for mixture in runs.mixtures)
            return replace(result, warnings=[*mixed, *result.warnings])
        except LabmatesError:
            raise
        except Exception:
            with ANALYSES.guarded(self.name, "failed"):
                raise

    def leading(self, verdict: Sequence[str]) -> Sequence[str]:
        """The sentences of a verdict that lead reports and studies' pages: all, or one if every experiment has them."""
        return verdict[:1] if self.shown_for == ANY_KIND else verdict

    def shown_params(self) -> Params:
        """The parameters in reports and the viewer."""
        return self.in_report or self.params()

    def shown(self, store: Store, records: Sequence[RunRecord]) -> Result:
        """The result of runs in reports and the viewer.

        Raises
        ------
        TooFewRunsError
            If the runs are too few to analyse.
        """
        return self.result(Runs.given(store, records), self.shown_params())


ANALYSES: Registry[Analysis[Any]] = Registry("analysis", "labmates.analyses")
"""All analyses by name."""


def shown_analyses(kind: str) -> tuple[list[Analysis[Any]], list[PluginError]]:
    """The analyses that reports and pages of an experiment show, and why plug-ins can't be asked.

    Its own come first, and of these, those that answer what a study asks.

    A broken plug-in must not take an experiment's report with it.
    """
    shown: list[Analysis[Any]] = []
    errors: list[PluginError] = []
    for name in ANALYSES:
        try:
            analysis = ANALYSES.get(name)
        except PluginError as error:
            errors.append(error)
            continue
        if analysis.is_shown_for(kind):
            shown.append(analysis)
    return sorted(shown, key=lambda analysis: (analysis.kind != kind, not analysis.answers)), errors
