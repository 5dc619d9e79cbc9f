"""Runs and the salt that their data were made with: nothing may touch a run's data set with another one."""

from __future__ import annotations

from labmates.errors import UsageError
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.tasks.salt import VARIABLE, salt_fingerprint
from labmates.workflows.experiment import EXPERIMENTS


def recorded_salt(kind: str) -> str | None:
    """The salt's fingerprint, recorded with a new run of a kind; None if the kind uses no salt.

    Raises
    ------
    UsageError
        If the salt is too short.
    """
    return salt_fingerprint() if EXPERIMENTS.get(kind).salted else None


def check_salt(run: RunRecord) -> None:
    """Refuse a run whose data were made with another salt than the one in use.

    Its data set and truth would be others, and what the run did would be scored against them.

    Raises
    ------
    UsageError
        If the salts differ, or only one of them is there.
    """
    _compare(f"the run '{run.id}'", run)


def check_study_salt(store: Store, study: str) -> None:
    """Refuse to work on a study whose runs have another salt than the one in use.

    Raises
    ------
    UsageError
        If the salts differ, or only one of them is there.
    """
    run = store.any_run(study)
    if run is not None:
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
