"""What a run is given to work with; one object for every kind of experiment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labmates.budgets.ledger import UNLIMITED, Ledger
from labmates.models.hub import ModelHub
from labmates.records.recorder import Recorder
from labmates.workflows.brake import Brake
from labmates.workflows.judging import Judging
from labmates.workflows.workshop import Workshop


@dataclass(frozen=True)
class Services:
    """The services of one run.

    Attributes
    ----------
    seed
        Seed of the run; everything random derives from it.
    workshop
        Sandboxes, shared by all runs of the session; None where the kind runs no code.
    folder
        Returns a private folder of the run for files that sandboxes read; it is removed at the end.
    judging
        Who judges the run when it ends; None for the judges that need no model.
    shared
        What the experiment's runs of a session share; see `labmates.workflows.experiment.Experiment.shared`.
    brake
        Asks the run to stop at its next step; None where nobody does.
    ledger
        The money of the run: its bound, less what it has spent. Calls of a kind with a pool of its own draw on that
        pool instead, and the judges' calls on what the bound holds beyond the pool.
    """

    run_id: str
    key: str
    seed: int
    hub: ModelHub
    recorder: Recorder
    workshop: Workshop | None
    folder: Callable[[], Path]
    judging: Judging | None = None
    brake: Brake | None = None
    shared: Any = None
    ledger: Ledger = field(default_factory=lambda: Ledger(UNLIMITED))
