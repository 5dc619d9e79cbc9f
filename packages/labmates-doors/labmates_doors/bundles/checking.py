"""The check of a bundle: its digests, every table computed anew, and every run replayed without a model.

A bundle is hostile until it is checked. Code of its agents runs in an isolated sandbox only, also where the bundle says
that baselines wrote it; code of its maker's (an organisation as a graph) never runs.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from labmates.errors import LabmatesError, UsageError, explain
from labmates.records import schema
from labmates.records.digests import digest_of_all
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.sandboxes.choose import choose_backend
from labmates.studies.audit import ended_digests
from labmates.studies.made import made_of
from labmates.studies.replay import replay
from labmates.studies.runs import check_salt
from labmates.workflows.protocol.analysis import ANALYSES
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, condition_of
from labmates_doors.bundles.container import Bundle, BundleError, opened
from labmates_doors.bundles.making import FORMAT, faults_of
from labmates_doors.bundles.rows import Part, enter_lines
from labmates_doors.bundles.tables import REPLAY, REPORT, code_of, libraries, table_fault, tables_of

SANDBOXES: Final = ("auto", "gvisor", "docker", "bubblewrap")
RESTS: Final = (
    "replies of models, judges and people, what servers reported of them (tokens, bills), and marks of judges' calls",
    "ids of runs, times, durations, numbers of attempts, bounds, and reasons of failures",
    "runs that did not end, labels of texts, metrics before later verdicts, and texts that no event refers to",
    "the study's plan, settings of connections, versions, hashes of code, and the environment",
    "parameters of conditions that change nothing in a replay, such as a temperature",
)
"""What no computation proves: of this, a published digest alone shows that it is unchanged."""
Watch = Callable[[str], None]


class _Study(Part):
    name: str
    spec: dict[str, Any]
    cap: int | None
    created: float


class _Environment(Part):
    libraries: dict[str, str]
    packages: dict[str, str]


class _Manifest(Part):
    format: int
    labmates: str
    store: str
    study: _Study
    holds: dict[str, Any]
    code: dict[str, str]
    environment: _Environment
    files: dict[str, str]


class _Table(Part):
    by: str
    name: str
    rows: list[dict[str, str | bool | int | float | None]]


_TABLES: Final = TypeAdapter(list[_Table])


@dataclass
class Checked:
    """The result of a check.

    Attributes
    ----------
    digest
        The digest of the bundle, which covers every byte; empty if the file is no bundle.
    faults
        Why it is refused.
    unchecked
        What could not be checked here, and why.
    notes
        What rests on the published digest in this bundle beside `RESTS`.
    replayed, events, tables
        Numbers of replayed runs, of their compared events, and of tables computed anew.
    store
        Its runs, while the check is open; None if they can't be read.
    """

    digest: str = ""
    study: str = ""
    version: str = ""
    runs: int = 0
    replayed: int = 0
    events: int = 0
    tables: int = 0
    faults: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    store: Store | None = None


@asynccontextmanager
async def checking(
    path: Path,
    *,
    published: str | None = None,
    sandbox: str = "auto",
    first_only: bool = False,
    watch: Watch = lambda _: None,
) -> AsyncIterator[Checked]:
    """Check a bundle, and keep its runs in a temporary store until the context ends.

    Parameters
    ----------
    published
        The digest that its maker has published.
    sandbox
        Where agents' code runs again, one of `SANDBOXES`.
    first_only
        Stop at the first fault.
    watch
        Receives what is being done.

    Raises
    ------
    UsageError
        If the file can't be read.
    """
    checked = Checked()
    with ExitStack() as stack:
        try:
            bundle = stack.enter_context(opened(path))
            checked.digest = bundle.digest
            if published is not None and published.strip().lower() != bundle.digest:
                checked.faults.append(f"its digest is {bundle.digest}, not the published one")
            manifest = _manifest(bundle)
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="labmates-check-"))
            checked.store = stack.enter_context(Store(f"sqlite:///{folder}/runs.db"))
            if manifest is None:
                checked.version = str(bundle.manifest.get("labmates"))
                checked.unchecked.append(
                    "only its bytes were checked: this labmates reads another version of records; "
                    f"check it with labmates {checked.version}"
                )
            elif not (first_only and checked.faults):
                async for fault in _Check(bundle, manifest, checked, checked.store, sandbox, watch).faults():
                    checked.faults.append(fault)
                    if first_only:
                        break
        except BundleError as error:
            checked.faults.append(str(error))
        yield checked


def _manifest(bundle: Bundle) -> _Manifest | None:
    """The manifest; None if a bundle of another version can't be read here."""
    if (bundle.manifest.get("format"), bundle.manifest.get("store")) != (FORMAT, schema.VERSION):
        return None
    try:
        return _Manifest.model_validate(bundle.manifest)
    except ValidationError as error:
        raise BundleError(f"its manifest: {explain(error).splitlines()[0]}") from error


class _Check:
    def __init__(
        self, bundle: Bundle, manifest: _Manifest, checked: Checked, store: Store, sandbox: str, watch: Watch
    ) -> None:
        self._bundle, self._manifest, self._checked, self._store = bundle, manifest, checked, store
        self._sandbox, self._watch = sandbox, watch
        self._study = checked.study = manifest.study.name
        checked.version = manifest.labmates
        self._no_sandbox: str | None = None

    async def faults(self) -> AsyncIterator[str]:
        """Yield what is wrong, in the order of the checks."""
        self._watch("reading")
        holdings = enter_lines(self._store, self._manifest.study.model_dump(), self._bundle.lines())
        digests = ended_digests(self._store)
        counts = {**holdings.as_json(), "ended": len(digests), "digest": digest_of_all(digests)}
        self._checked.runs = counts["runs"]
        for name in dict.fromkeys([*counts, *self._manifest.holds]):
            if counts.get(name) != self._manifest.holds.get(name):
                yield f"its manifest misstates what it holds: {name}"
        self._watch("checking digests")
        for fault in faults_of(self._store, self._study):
            yield fault
        kinds = {run.kind for run in self._store.runs()}
        self._watch("computing tables")
        for fault in self._table_faults(kinds):
            yield fault
        async for fault in self._replay_faults():
            yield fault

    def _table_faults(self, kinds: set[str]) -> Iterator[str]:
        stored = _named(self._stored_tables())
        code = code_of({by for by, _ in stored}, kinds)
        self._same = {name for name, known in code.items() if self._manifest.code.get(name) == known}
        exactly = self._manifest.environment.libraries == libraries()
        try:
            now = _named([_Table.model_validate(table) for table in tables_of(self._store, self._study)])
        except LabmatesError as error:
            yield from self._doubt(REPORT, f"its tables can't be computed: {error}")
            return
        except Exception as error:  # of a record that nobody checked, by any analysis
            yield from self._doubt(REPORT, f"its tables can't be computed: {type(error).__name__}: {error}")
            return
        makers = {by for by, _ in now}
        for (by, name), table in stored.items():
            if by not in makers:
                missing = f"the analysis {by} {'gives none' if by in ANALYSES else 'is not installed'} here"
                self._checked.unchecked.append(f"table {name}: {missing}")
            elif (by, name) not in now:
                yield from self._doubt(by, f"table {name}: its runs give no such table")
            else:
                self._checked.tables += 1
                if fault := table_fault(table.rows, now[by, name].rows, exactly=exactly):
                    yield from self._doubt(by, f"table {name}: {fault}")
        for by, name in now.keys() - stored.keys():
            if by in self._manifest.code:
                yield from self._doubt(by, f"it lacks the table {name}")

    def _stored_tables(self) -> list[_Table]:
        try:
            return _TABLES.validate_python(self._bundle.tables)
        except ValidationError as error:
            raise BundleError(f"its tables: {explain(error).splitlines()[0]}") from error

    def _doubt(self, maker: str, text: str) -> Iterator[str]:
        """A fault, if the code here is that of the bundle; else something that can't be checked."""
        of_kinds = {name for name in self._manifest.code if name.startswith("kind ")} if maker == REPORT else set()
        if {maker, *of_kinds} <= self._same:
            yield text
        else:
            self._checked.unchecked.append(f"{text}; the code here is another")

    async def _replay_faults(self) -> AsyncIterator[str]:
        others, left = Counter[str](), Counter[str]()
        for run in self._store.runs():
            if run.status not in ENDED:
                others[f"{run.status} runs are not replayed"] += 1
                continue
            self._watch(f"replaying: {self._checked.replayed + 1:,} of {self._checked.runs:,} runs")
            fault, is_certain = await self._replay_fault(run, left)
            if fault and is_certain:
                yield f"run {run.id}: {fault}"
            elif fault:
                self._checked.unchecked.append(f"run {run.id}: {fault}")
        self._checked.notes += [f"{number} {what}" for what, number in (others + left).items()]

    async def _replay_fault(self, run: RunRecord, left: Counter[str]) -> tuple[str, bool]:
        """What is wrong with a run, and whether that is certain; empty if nothing is."""
        if run.kind != self._manifest.study.spec.get("kind"):
            return "its kind is not that of the study", True
        if run.kind not in EXPERIMENTS:
            return f"no experiment '{run.kind}' is installed here", False
        is_same = {REPLAY, f"kind {run.kind}"} <= self._same
        try:
            condition = condition_of(run)
            if condition.models() != run.models:  # an unknown provider could not be replayed, so it would be unchecked
                return "its models are not those of its condition", is_same
            if (run.made or {}) != made_of(condition):
                is_same = False
                left["runs were made with unknown or other prompts, rules or code than those here"] += 1
            if is_same and condition.model_dump(mode="json") != run.condition:
                return "its condition is not as labmates writes it", True
            if condition.key != run.key:
                return "its key is not that of its condition", is_same
            if run.seed - run.replicate != self._manifest.study.spec.get("seed", 0):
                return "its seed is not that of its replicate", True
            if why := await self._obstacle(run, condition):
                return why, False
            replayed = await replay(self._store, _confined(run, self._sandbox), sandbox=self._sandbox, trusted=False)
        except UsageError as error:
            return str(error), is_same and "condition" in str(error)
        except Exception as error:  # of a record that nobody checked, anywhere in the experiment
            return f"its replay fails: {type(error).__name__}: {error}", is_same
        if not replayed.follows:
            return f"it does not follow from its replies: {replayed.differences[0]}", is_same
        self._checked.replayed += 1
        self._checked.events += sum(replayed.compared.values())
        left["results of code that prints something else now"] += len(replayed.cells)
        left["events that no replay repeats (labels, failed attempts)"] += sum(replayed.left_out.values())
        return "", False

    async def _obstacle(self, run: RunRecord, condition: Condition) -> str:
        """Why a run can't be replayed here; empty if it can."""
        if condition.interrupts:
            return "its organisation is code of its maker's, which a check never runs"
        try:
            check_salt(run)
        except UsageError as error:
            return str(error)
        if not EXPERIMENTS.get(run.kind).needs_sandbox:
            return ""
        if self._no_sandbox is None:
            try:
                await choose_backend(self._sandbox, trusted_code=False).backend.close()
                self._no_sandbox = ""
            except LabmatesError as error:
                self._no_sandbox = str(error)
        return self._no_sandbox


def _named(tables: list[_Table]) -> dict[tuple[str, str], _Table]:
    named = {(table.by, table.name): table for table in tables}
    if len(named) < len(tables):
        raise BundleError("one of its tables is repeated")
    return named


def _confined(run: RunRecord, sandbox: str) -> RunRecord:
    """A run whose settings choose nothing about this machine."""
    here = {"sandbox": sandbox, "executor": "local", "processes": None, "max_sandboxes": None}
    return replace(run, settings={**run.settings, **here})
