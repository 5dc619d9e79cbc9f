"""The lab of verbs (`labmates.workflows.protocol.command.Lab`), without its display."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from labmates.errors import UsageError, explaining
from labmates.models.catalog import Catalog
from labmates.records.bodies import Bodies
from labmates.records.run import ENDED, RunRecord
from labmates.studies.runs import new_runs, stopped_run
from labmates.studies.settings import RunSettings
from labmates.workflows.protocol.analysis import Runs
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, make_condition

if TYPE_CHECKING:
    from labmates.judges.base import Report
    from labmates.records.store import Store

C = TypeVar("C", bound="StudyLab")


@dataclass(eq=False)
class StudyLab(ABC):
    """The lab of one verb; a context manager."""

    url: str | None
    settings_for: Callable[[Mapping[str, Any]], RunSettings]  # puts the user's settings on top of a run's earlier ones
    given: Mapping[str, Any]  # the user's parameters for the verb's experiment
    runs: Runs  # the user's choice of runs
    # Turns a condition's parameters into the user's names for them.
    names: Callable[[type[Condition]], Callable[[str], str]] = lambda _: str
    hint = ""  # where to read about missing parameters

    def __post_init__(self) -> None:
        self._settings = self.settings_for({})
        self.catalog = Catalog(self._settings.models)

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *_: object) -> None:
        self.runs.close()
        if "store" in self.__dict__:
            self.store.close()

    @cached_property
    def store(self) -> Store:
        """The store, created if missing."""
        return self._opened()

    def _opened(self, *, must_exist: bool = False) -> Store:
        from labmates.records.store import Store  # most verbs need none

        return Store(self.url, must_exist=must_exist)

    def condition(self, kind: str, values: Mapping[str, Any]) -> Condition:
        """A validated condition from these values and the user's."""
        model = EXPERIMENTS.get(kind).condition
        wanted = {**self.given, **values}
        names = self.names(model)
        required = [name for name, field in model.model_fields.items() if field.is_required()]
        if missing := [self.option(name) for name in required if name not in wanted]:
            raise UsageError(f"missing: {', '.join(missing)}{self.hint}")
        condition = make_condition(kind, wanted, names, catalog=self.catalog)
        condition.check()
        return condition

    def option(self, name: str) -> str:
        """The user's name for a parameter of a condition."""
        return name

    def run(self, condition: Condition, *, seed: int = 0) -> RunRecord:
        """Execute one run outside studies and return the ended run."""
        [run] = self.replicates(condition, seed=seed)
        return run

    def replicates(self, condition: Condition, replicates: int = 1, *, seed: int = 0) -> list[RunRecord]:
        """Execute runs outside studies and return the ended runs."""
        settings = self._settings.resolved(self.catalog)
        runs = new_runs(condition, seed=seed, replicates=replicates, settings=settings)
        return self._executed(runs, settings)

    def resume(self, run_id: str, kind: str) -> RunRecord:
        """Resume a run of this kind and return the ended run."""
        self.store = self._opened(must_exist=True)
        stopped = stopped_run(self.store, run_id)
        if stopped.kind != kind:
            raise UsageError(f"the run '{run_id}' is of the kind {stopped.kind}, not {kind}")
        settings = self.settings_for(stopped.settings)
        catalog = Catalog(settings.models)
        model = EXPERIMENTS.get(kind).condition
        with explaining(self.names(model)):
            merged = model.model_validate({**stopped.condition, **self.given}, context=catalog)
        if merged.key != stopped.key:
            raise UsageError(
                f"a run is resumed with its own condition; leave out the options that change it ('{stopped.id}')"
            )
        [ended] = self._executed([stopped], settings.resolved(catalog))
        return ended

    def report(self, run_id: str) -> Report:
        """The report of an ended run for judges."""
        from labmates.studies.judging import judgeable, report_of

        self.store = self._opened(must_exist=True)
        [run] = judgeable([self.store.run(run_id)], strict=True)
        return report_of(run, self.store.events(run.id), Bodies(self.store.bodies(run.id)))

    def play(
        self, conditions: Sequence[Condition], replicates: int, *, seed: int = 0, at_once: int, part_of: str
    ) -> list[RunRecord]:
        """The ended runs of conditions; runs missing in the store are executed first."""
        from labmates.studies.made import check_together

        settings = self._settings.resolved(self.catalog)
        if "max_concurrent_runs" not in settings.model_fields_set:
            at_once = max(at_once, settings.max_concurrent_runs)
            settings = settings.model_copy(update={"max_concurrent_runs": at_once})
        keys = [condition.key for condition in conditions]
        missing = missing_runs(self.store, conditions, replicates, settings, seed=seed)
        check_together([*self._ended(keys, replicates), *missing], allow=settings.allow_mixed)
        if missing:
            self.execute(missing, settings, part_of)
        return self._ended(keys, replicates)

    def _ended(self, keys: Sequence[str], replicates: int) -> list[RunRecord]:
        """The first ended replicates of each condition, in the order of the conditions."""
        ended: dict[tuple[str, int], RunRecord] = {}
        for run in self.store.runs(keys=keys):
            if run.status in ENDED and run.origin is None and run.replicate < replicates:
                ended.setdefault((run.key, run.replicate), run)
        return sorted(ended.values(), key=lambda run: (keys.index(run.key), run.replicate))

    def _executed(self, runs: list[RunRecord], settings: RunSettings) -> list[RunRecord]:
        self.execute(runs, settings)
        return [self.store.run(run.id) for run in runs]

    @abstractmethod
    def execute(self, runs: list[RunRecord], settings: RunSettings, part_of: str | None = None) -> None:
        """Execute runs; `part_of` names the command that resumes them, None for separate runs."""


def missing_runs(
    store: Store, conditions: Sequence[Condition], replicates: int, settings: RunSettings, *, seed: int = 0
) -> list[RunRecord]:
    """The runs of conditions without an ended run in the store: new and unfinished ones.

    Raises `UsageError` if stored runs of a condition have other seeds.
    """
    stored: dict[tuple[str, int], list[RunRecord]] = defaultdict(list)
    for run in store.runs(keys=[condition.key for condition in conditions]):
        if run.origin is None:
            stored[run.key, run.replicate].append(run)
    missing = []
    for condition in conditions:
        for run in new_runs(condition, seed=seed, replicates=replicates, settings=settings):
            same = stored[run.key, run.replicate]
            if any(other.seed != run.seed for other in same):
                raise UsageError(
                    f"the store {store.shown_url} has runs of {', '.join(condition.labels[:2])} with the seed "
                    f"{same[0].seed - run.replicate}; ask for the same one, or use another store"
                )
            if any(other.status in ENDED for other in same):
                continue
            begun = next((other for other in same if other.study is None), None)
            missing.append(run if begun is None else replace(begun, settings=run.settings))
    return missing
