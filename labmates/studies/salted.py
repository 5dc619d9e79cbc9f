"""Checks that a run's data have the salt in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labmates.errors import UsageError
from labmates.records.run import RunRecord
from labmates.tasks.salt import VARIABLE, salt_fingerprint
from labmates.workflows.protocol.experiment import EXPERIMENTS

if TYPE_CHECKING:
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
