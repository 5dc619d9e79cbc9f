"""The state of a running gateway, shared by its routes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress

import httpx2

from labmates.budgets.money import format_dollars
from labmates.errors import UsageError
from labmates.models.clients import transport
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.models.redact import Redactor
from labmates_doors.gateway.exchanges import Record
from labmates_doors.gateway.seats import Seats
from labmates_doors.gateway.upstream import Upstream
from labmates_doors.memory import Memory
from labmates_doors.protocols.base import Json


class Gateway:
    """State of the gateway's routes.

    Parameters
    ----------
    timeout
        Seconds without a byte from a provider until a call fails.
    max_output_tokens
        Reply limit of requests without one.
    """

    def __init__(
        self,
        seats: Seats,
        upstreams: Sequence[Upstream],
        *,
        record: Record,
        timeout: float = 600.0,
        max_output_tokens: int = 4096,
    ) -> None:
        self.seats = seats
        self.models = {name: upstream for upstream in upstreams for name in upstream.names}
        self.max_output_tokens = max_output_tokens
        self.record = record
        self.memory: defaultdict[str, Memory] = defaultdict(Memory)  # by seat
        self.without_responses: set[str] = set()  # upstreams whose servers offer only chat completions
        self.redact = Redactor([upstream.key for upstream in upstreams])
        entries = {upstream.full_name: upstream.access for upstream in upstreams}
        self.hub = ModelHub(ModelOptions(entries=entries, call_timeout=timeout, max_retries=0))
        self.client = httpx2.AsyncClient(
            transport=transport(),
            timeout=httpx2.Timeout(timeout, connect=10.0),
            headers={"accept-encoding": "identity"},
        )

    def prepare(self) -> None:
        """Set up the models before the first call, which would hold up all others."""
        for upstream in dict.fromkeys(self.models.values()):
            with suppress(UsageError):  # a call that needs it reports the error; other protocols may not need it
                self.hub.prepare(upstream.full_name)

    def budget(self) -> Json:
        """The state of the pool, for ``GET /budget``."""
        ledger = self.seats.ledger
        amounts = {"total": ledger.total, "spent": ledger.spent, "remaining": ledger.remaining}
        held = ledger.remaining - ledger.available
        seats = {
            seat.member: {"spent": seat.spent, "remaining": max(0, seat.share.left), "held": seat.held}
            for seat in self.seats.by_name.values()
        }
        return {**_shown({**amounts, "held": held}), "seats": {name: _shown(seat) for name, seat in seats.items()}}


def _shown(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: format_dollars(amount) for name, amount in amounts.items()}
