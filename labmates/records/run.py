"""The record of a run, apart from its events."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal

RunStatus = Literal["planned", "running", "completed", "exhausted", "failed", "interrupted"]
"""``planned`` runs of a study were not begun yet; ``running`` stands in the store only while a worker holds the run,
or after one died without a word."""

ENDED: frozenset[RunStatus] = frozenset({"completed", "exhausted"})
"""A run in one of these states is over; from any other it can be resumed."""

STOPPED: Final = "stopped at its bound"
"""The beginning of the reason for which a run is invalid that could not pay its next call."""


@dataclass(frozen=True)
class Usage:
    """The usage of a run.

    Attributes
    ----------
    llm_calls
        Model calls that gave a reply, judges' left out; replies of people and of agents from outside are none.
    input_tokens, output_tokens
        Of all these calls.
    cached_tokens, cache_write_tokens
        How many of the input tokens were read from, and written to, the provider's prompt cache, as far as the server
        tells.
    reasoning_tokens
        How many of the output tokens were reasoning, as far as the server tells.
    tool_calls
        Calls of tools, also those that failed.
    failed_replies
        Replies that could not be used as they were.
    bill
        As `RunRecord.bill`, with which it stands in a run's JSON.
    uncertain_attempts
        Attempts of calls that brought no reply and may be billed; each is charged with the most that it can cost.
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
        Ten characters that no other run has.
    kind
        Kind of experiment, for instance ``science``.
    key
        Of the condition: equal conditions have equal keys.
    replicate, seed
        Which run of its condition it is, from 0, and its seed.
    condition
        Every parameter by name.
    models
        Those that took part, each once.
    status
        ``completed``, ``exhausted`` (the budget or the bound ran out before the end), ``failed`` or ``interrupted``;
        ``planned`` and ``running`` in the store only.
    study
        Name of the study that it belongs to, or None.
    error
        Why it failed, or None.
    invalid
        Why it may not be used though it has ended, for instance since a model gave no usable decision; or None.
    valid
        Whether it has ended and may be used.
    metrics
        Numbers by name; what could not be had is left out.
    usage
        What it used: `Usage`.
    sandbox
        Which back end ran the agents' code, or None.
    seconds
        How long it took, all attempts together.
    version
        Of labmates.
    settings
        What the run needs beyond its condition to be resumed (model connection, sandbox); never a secret.
    bill
        What the providers charge for the run's calls, judges' left out, in dollars as a decimal string; None where a
        price is unknown. What the pool charges instead is the ``budget``.
    budget
        ``total``, ``spent`` and ``remaining`` in dollars as decimal strings, or None.
    started
        Unix time in seconds.
    attempt
        Number of the attempt to execute it, from 1; 0 before the first.
    worker
        Who executes it, while it goes on.
    origin
        Run and number of the event from which it was forked, ``RUN@EVENT``; None for most.
    chain
        Heads of the hash chains over what it has recorded (`labmates.records.digests`); empty before the first event.
    digest
        Digest of its record, with the scores that were added since it ended; None if it has not ended.
    most
        Its bound: what it may cost at most, judges included, in micro-dollars; 0 for a run without one.
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
    attempt: int = 0
    worker: str | None = None
    origin: str | None = None
    chain: str = ""
    digest: str | None = None
    most: int = 0

    @property
    def valid(self) -> bool:
        """Whether it has ended and is valid."""
        return self.status in ENDED and self.invalid is None

    @property
    def bill(self) -> str | None:
        """The providers' charge."""
        return self.usage.bill

    @property
    def taken_over(self) -> int:
        """The number of its first events that the run it was forked from has paid for.

        Raises
        ------
        ValueError
            If its origin is not what a fork's is.
        """
        return int(self.origin.rpartition("@")[2]) if self.origin else 0

    @property
    def standing(self) -> str:
        """Its status in words, with a mark if it may not be used."""
        return self.status if self.invalid is None else f"{self.status}, invalid"

    @property
    def shown_models(self) -> str:
        """The models as one text; those of single teams or seats with their places."""
        places = self.condition.get("model_for")
        if not isinstance(places, dict) or not places:
            return ", ".join(self.models) or str(self.condition.get("model") or "no model")
        special = ", ".join(f"{place}: {model}" for place, model in places.items())
        return f"{self.condition.get('model')} ({special})"


def new_run_id() -> str:
    """A new run id: ten random hexadecimal digits."""
    return os.urandom(5).hex()
