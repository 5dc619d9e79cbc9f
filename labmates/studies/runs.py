"""Records of runs: new ones from conditions, the fields of their ends, and checks of the salt in use."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from labmates._version import __version__
from labmates.budgets.money import format_dollars, parse_dollars, show_dollars
from labmates.errors import UsageError
from labmates.records.run import ENDED, STOPPED, RunRecord, new_run_id
from labmates.studies.settings import RunSettings
from labmates.tasks.salt import VARIABLE, salt_fingerprint
from labmates.util.seeds import LARGEST_SEED, MOST_REPLICATES
from labmates.workflows.protocol.experiment import EXPERIMENTS, Condition, Outcome, condition_of

if TYPE_CHECKING:
    from labmates.records.recorder import Recorder
    from labmates.records.store import Store


def recorded_salt(kind: str) -> str | None:
    """The salt's fingerprint for the record of a new run; None if its kind uses no salt.

    Raises `UsageError` if the salt is too short.
    """
    return salt_fingerprint() if EXPERIMENTS.get(kind).salted else None


def check_salt(run: RunRecord) -> None:
    """Refuse a run whose data have another salt: it would be scored against another data set and truth.

    Raises `UsageError` if the salts differ, or only one exists.
    """
    _compare(f"the run '{run.id}'", run)


def check_study_salt(store: Store, study: str) -> None:
    """Refuse a study whose runs have another salt. Raises `UsageError` if the salts differ, or only one exists."""
    from labmates.records.listing import Chosen, run_page  # loads SQLAlchemy

    for run in run_page(store, Chosen(study=study), size=1):
        _compare(f"the study '{study}'", run)


def _compare(what: str, run: RunRecord) -> None:
    then, now = run.settings.get("salt"), recorded_salt(run.kind)
    if then == now:
        return
    if now is None:
        why = f"uses the private salt {then}; set {VARIABLE} to it"
    elif then is None:
        why = f"uses no salt, and {VARIABLE} is set ({now}); unset it"
    else:
        why = f"uses the private salt {then}, not that of {VARIABLE} ({now})"
    raise UsageError(f"{what} {why}: with another salt, its data set and truth would be others")


def new_runs(
    condition: Condition, *, seed: int, replicates: int, settings: RunSettings, study: str | None = None
) -> list[RunRecord]:
    """The records of new runs of a condition; replicate r has the seed ``seed + r``.

    Raises `UsageError` if the number of replicates or the seed is out of range, or the private salt is too short.
    """
    if not 1 <= replicates <= MOST_REPLICATES:
        raise UsageError(f"the number of replicates must be from 1 to {MOST_REPLICATES:,}, not {replicates}")
    if not 0 <= seed <= LARGEST_SEED - replicates:
        raise UsageError(f"the seed must be from 0 to {LARGEST_SEED - replicates}, not {seed}")
    salt = recorded_salt(condition.kind)
    first = RunRecord(
        id=new_run_id(),
        kind=condition.kind,
        key=condition.key,
        replicate=0,
        seed=seed,
        status="planned",
        condition=condition.model_dump(mode="json"),
        models=condition.models(),
        study=study,
        settings=settings.model_copy(update={"salt": salt}).model_dump(mode="json"),
        version=__version__,
    )
    others = range(1, replicates)
    return [first, *(replace(first, id=new_run_id(), replicate=n, seed=seed + n) for n in others)]


def stopped_run(store: Store, run_id: str) -> RunRecord:
    """A resumable run. Raises `UsageError` if the run is unknown or has ended."""
    run = store.run(run_id)
    if run.status in ENDED:
        raise UsageError(f"the run '{run.id}' has ended ({run.status}); only unfinished runs can be resumed")
    return run


def accounted(run: RunRecord, pool: int | None, recorder: Recorder) -> RunRecord:
    """A run with the usage and the budget from its record; `pool` is in micro-dollars."""
    bill, spent = recorder.bill(), recorder.spent()
    amounts = {} if pool is None else {"total": pool, "spent": spent, "remaining": pool - spent}
    return replace(
        run,
        usage=replace(recorder.usage(), bill=None if bill is None else format_dollars(bill)),
        budget={name: format_dollars(amount) for name, amount in amounts.items()} or None,
    )


def so_far(store: Store, run: RunRecord) -> RunRecord:
    """A running run with the usage and the budget from its record so far; any other run unchanged."""
    from labmates.records.reading import RunReader
    from labmates.records.recorder import Recorder

    if run.status != "running":
        return run
    events = RunReader(store, run).all("llm_call", "tool_call", "failed_reply", "charge")
    if events and run.attempt == 1:
        run = replace(run, seconds=events[-1].at - run.started)
    return accounted(run, pool_of(run), Recorder(None, run, events=events))


def pool_of(run: RunRecord) -> int | None:
    """The pool of a run in micro-dollars; None without one."""
    try:
        if run.budget:
            return parse_dollars(run.budget["total"])
        # The conditions of a gateway and of plug-ins that are missing here are known as values only.
        return condition_of(run).pool if run.kind in EXPERIMENTS else parse_dollars(run.condition["budget"])
    except (KeyError, TypeError, ValueError):
        return None


def invalid_of(run: RunRecord, recorder: Recorder, reason: str | None) -> str | None:
    """Why a run is invalid: its experiment's `reason`, and providers' charges beyond its bound."""
    excess = recorder.excess()
    if not excess:
        return reason
    fault = f"providers charge {show_dollars(excess)} more than its bound of {show_dollars(run.most or 0)} could pay"
    return f"{reason}; {fault}" if reason else fault


def stop_of(run: RunRecord) -> Outcome | None:
    """The outcome of a run that stopped at its bound; None for others.

    A replay of such a run may request the call that the bound could not pay during other calls.
    """
    if run.status != "exhausted" or not (run.invalid or "").startswith(STOPPED):
        return None
    return Outcome("exhausted", {}, (run.invalid or "").partition(";")[0])
