"""The services of a run; one object for every kind of experiment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal
from uuid import UUID

from labmates.budgets.ledger import UNLIMITED, Ledger
from labmates.models.hub import ModelHub
from labmates.records.events import ToolCallEvent
from labmates.records.recorder import Recorder
from labmates.sandboxes.pool import SandboxPool
from labmates.workflows.calls.assessing import Judging
from labmates.workflows.calls.stop_signal import StopSignal
from labmates.workflows.people.approval import Approver
from labmates.workflows.people.live import Live

VIEWER: Final = "viewer"


@dataclass(frozen=True, kw_only=True)
class SessionServices:
    """The services that all runs of a session have.

    Attributes
    ----------
    sandbox_pool
        Sandboxes; None where no experiment of the session runs code.
    judging
        Who judges a run when it ends; None for the judges that need no model.
    stop_signal
        Asks runs to stop at their next step; None if they can't be asked.
    approver
        Answers requests for approval; `VIEWER` if the run's page asks, None if no person can be asked.
    approval_timeout
        Seconds after which an unanswered question counts as refused; None to wait indefinitely.
    """

    hub: ModelHub
    sandbox_pool: SandboxPool | None
    judging: Judging | None = None
    stop_signal: StopSignal | None = None
    approver: Approver | Literal["viewer"] | None = None
    approval_timeout: float | None = None


@dataclass(frozen=True, kw_only=True)
class Services(SessionServices):
    """The services of one run.

    Attributes
    ----------
    seed
        Seed of the run; everything random derives from it, but for models' replies.
    reply_seed
        Seed of the models' replies: the run's, or that of a continuation of a fork.
    folder
        Returns a private folder of the run for files that sandboxes read; it is removed at the end.
    shared
        What the experiment's runs of a session share; see `labmates.workflows.protocol.experiment.Experiment.shared`.
    ledger
        The money of the run: its bound, less what it has spent. Calls of a kind with a pool of its own draw on that
        pool instead, and the judges' calls on what the bound holds beyond the pool.
    past
        The record that a rerun follows: neither servers outside of labmates nor persons are asked again. None for a
        new run.
    repeated
        In a replay, gets each call that was executed again, as recorded and as it ended now. The run goes on as
        recorded; the bodies of `past` are the recorder's, too.
    record_of
        Reads another run's record, for a seat that repeats its replies; None without a store.
    trace
        Id of the run's trace; None if nothing is traced.
    live
        The link to the run's pages where a person takes part; None where none does.
    """

    run_id: str
    key: str
    seed: int
    reply_seed: int
    recorder: Recorder
    folder: Callable[[], Path]
    shared: Any = None
    ledger: Ledger = field(default_factory=lambda: Ledger(UNLIMITED))
    past: Recorder | None = None
    repeated: Callable[[ToolCallEvent, ToolCallEvent], None] | None = None
    record_of: Callable[[str], Recorder] | None = None
    trace: UUID | None = None
    live: Live | None = None
