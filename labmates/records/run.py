"""The record of a run, apart from its events."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Final, Literal

from labmates.util.seeds import derive

RunStatus = Literal["planned", "running", "completed", "exhausted", "failed", "interrupted"]
"""``planned`` runs of a study have not started; ``running`` runs are held by a worker, or their worker has died."""

ENDED: frozenset[RunStatus] = frozenset({"completed", "exhausted"})
"""Final states; runs in other states can be resumed."""

PAUSED: Final = "paused: "
"""Prefix of the error of an interrupted run whose model takes no calls for hours; then when to resume, and why."""

STOPPED: Final = "stopped at its bound"
"""Prefix of the reason for a run that is invalid because it could not pay its next call."""

WORKED: Final = "worked"
"""The metric that is 0 in a run whose agents did no work, which its standing tells."""
NO_WORK: Final = "no work"


@dataclass(frozen=True)
class Usage:
    """The usage of a run.

    Attributes
    ----------
    llm_calls
        Model calls with a reply, without judges', people's and outside agents'.
    input_tokens, output_tokens
        Tokens of these calls.
    cached_tokens, cache_write_tokens
        Input tokens read from, and written to, the provider's prompt cache, as reported by the server.
    reasoning_tokens
        Reasoning tokens among the output tokens, as reported by the server.
    tool_calls
        Tool calls, failed ones included.
    failed_replies
        Unusable replies.
    bill
        See `RunRecord.bill`.
    uncertain_attempts
        Attempts without a reply that may be billed; each is charged with its maximum cost.
    uncertain
        Charges for those of them whose bill is unknown, in micro-dollars; `bill` leaves them out.
    """

    llm_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    tool_calls: int = 0
    failed_replies: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    bill: str | None = None
    uncertain_attempts: int = 0
    uncertain: int = 0


def usage_sum(usages: Iterable[Usage]) -> Usage:
    """The sum of usages, without their bills."""
    given = list(usages)
    names = (field.name for field in fields(Usage) if field.name != "bill")
    return Usage(**{name: sum(getattr(usage, name) for usage in given) for name in names})


@dataclass(frozen=True)
class RunRecord:
    """One run.

    Attributes
    ----------
    id
        Unique id of ten characters.
    kind
        Kind of experiment, for instance ``science``.
    key
        Key of the condition: equal conditions have equal keys.
    replicate, seed
        Number among the runs of its condition, from 0, and seed.
    condition
        All parameters by name.
    models
        Participating models, each once.
    status
        ``completed``, ``exhausted`` (the budget or the bound ran out before the end), ``failed`` or ``interrupted``;
        ``planned`` and ``running`` in the store only.
    study
        Name of its study, or None.
    error
        Error of a failed run, or None.
    invalid
        Reason why the ended run is invalid, for instance that a model gave no usable decision; or None.
    valid
        Whether it has ended and is valid.
    metrics
        Numbers by name; unavailable ones are left out.
    usage
        Its `Usage`.
    sandbox
        Back end that ran the agents' code, or None.
    seconds
        Duration of all attempts together.
    version
        Version of labmates.
    made
        Hashes of its prompts, rules and code, by part (`labmates.records.made`); None before they were recorded.
    settings
        Settings for resuming beyond the condition (model connection, sandbox); never a secret.
    bill
        The providers' charge for the run's calls, without judges', in dollars as a decimal string; None if a price is
        unknown. The pool's charge is in ``budget``.
    budget
        ``total``, ``spent`` and ``remaining`` in dollars as decimal strings, or None.
    started
        Unix time in seconds.
    attempt
        Number of the attempt to execute it, from 1; 0 before the first.
    worker
        The worker that executes it.
    origin
        Origin of a fork, ``RUN@EVENT``, and ``#N`` for its continuation N; None for other runs.
    chain
        Heads of the hash chains over its record (`labmates.records.digests`); empty before the first event.
    digest
        Digest of its record, with later scores; None before its end.
    most
        Its bound: maximum cost, judges included, in micro-dollars; 0 for a run without one.
    spent
        Its cost so far, judges included, in micro-dollars.
    """

    id: str
    kind: str
    key: str
    replicate: int
    seed: int
    condition: dict[str, Any]
    models: list[str]
    status: RunStatus = "running"
    study: str | None = None
    error: str | None = None
    invalid: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    budget: dict[str, str] | None = None
    sandbox: str | None = None
    started: float = 0.0
    seconds: float = 0.0
    version: str = ""
    made: Mapping[str, str] | None = None
    attempt: int = 0
    worker: str | None = None
    origin: str | None = None
    chain: str = ""
    digest: str | None = None
    most: int = 0
    spent: int = 0

    @property
    def valid(self) -> bool:
        """Whether it has ended and is valid."""
        return self.status in ENDED and self.invalid is None

    @cached_property
    def data_set(self) -> tuple[str, str]:
        """Its task or game, and its seed with the salt; runs with an equal data set are no independent units."""
        condition = self.condition
        return str(
            condition.get("task") or condition.get("game") or ""
        ), f"{self.seed} {self.settings.get('salt') or ''}"

    @property
    def bill(self) -> str | None:
        """The providers' charge."""
        return self.usage.bill

    @property
    def taken_over(self) -> int:
        """The number of its first events that come from the origin of the fork.

        Raises
        ------
        ValueError
            If the origin is malformed.
        """
        return int(self.fork_point.rpartition("@")[2]) if self.origin else 0

    @property
    def fork_point(self) -> str:
        """The run and the event of its fork, ``RUN@EVENT``; empty for other runs."""
        return (self.origin or "").partition("#")[0]

    @property
    def continuation(self) -> str:
        """Which continuation of its origin it is; empty for one that draws as the origin did.

        A continuation of a continuation has both numbers, joined by dots.
        """
        return (self.origin or "").partition("#")[2]

    @property
    def reply_seed(self) -> int:
        """The seed of its models' replies; all other chance is that of the seed."""
        return derive(self.seed, "continuation", self.continuation) if self.continuation else self.seed

    @property
    def idle(self) -> bool:
        """Whether its agents did no work."""
        return self.metrics.get(WORKED) == 0

    @property
    def standing(self) -> str:
        """Its status in words, with marks if invalid and without work."""
        return ", ".join([self.status, *["invalid"] * (self.invalid is not None), *[NO_WORK] * self.idle])

    @property
    def shown_models(self) -> str:
        """The models as one text, with the places of special ones."""
        places = self.condition.get("model_for")
        if not isinstance(places, dict) or not places:
            return ", ".join(self.models) or str(self.condition.get("model") or "no model")
        special = ", ".join(f"{place}: {model}" for place, model in places.items())
        return f"{self.condition.get('model')} ({special})"


def new_run_id() -> str:
    """A new run id: ten random hexadecimal digits."""
    return os.urandom(5).hex()
