"""The state of a running gateway, shared by its routes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import httpx2

from labmates.budgets.ledger import LEAST_OUTPUT_TOKENS
from labmates.budgets.money import format_dollars
from labmates.budgets.tokens import TEMPLATE_TOKENS
from labmates.errors import UsageError
from labmates.models.clients import transport
from labmates.models.hub import ModelHub
from labmates.models.options import ModelOptions
from labmates.models.redact import Redactor
from labmates_doors.gateway.recording import RunOfGateway
from labmates_doors.gateway.seats import Seat, Seats
from labmates_doors.gateway.upstream import Upstream
from labmates_doors.memory import Memory
from labmates_doors.protocols.base import TOO_LONG, Json, RefusedRequestError

MOST_BYTES = 32_000_000
"""Limit of a request."""


class Gateway:
    """State of the gateway's routes.

    Parameters
    ----------
    timeout
        Seconds without a byte from a provider until a call fails.
    max_output_tokens
        Reply limit of requests without one.
    allowed
        Fields, and features of a beta header, that pass although the gateway doesn't know their cost.
    """

    def __init__(
        self,
        seats: Seats,
        upstreams: Sequence[Upstream],
        *,
        record: RunOfGateway,
        timeout: float = 600.0,
        max_output_tokens: int = 4096,
        allowed: Collection[str] = (),
    ) -> None:
        self.seats = seats
        self.models = {name: upstream for upstream in upstreams for name in upstream.names}
        self.max_output_tokens = max_output_tokens
        self.record = record
        self.allowed = allowed
        prices = {upstream.price.worst_case for upstream in upstreams}
        self._cheapest = min(prices, key=lambda price: (price.input, price.output))
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

    def most_bytes(self, seat: Seat) -> int:
        """The longest request that is read: of more, even the cheapest model's prompt is too dear for the seat."""
        payable = self.seats.most_input(seat, self._cheapest)
        return MOST_BYTES if payable is None else min(MOST_BYTES, payable)

    def too_long(self, seat: Seat, size: int) -> RefusedRequestError:
        """The error of a request of at least `size` bytes, above `most_bytes`."""
        if size > MOST_BYTES:
            return RefusedRequestError(f"the request is longer than {MOST_BYTES:,} bytes", TOO_LONG)
        return self.seats.refusal(seat, self._cheapest.cost(size, 1))

    def is_empty(self) -> bool:
        """Whether the pool can't pay the shortest call of any model."""
        return self._cheapest.most_output(TEMPLATE_TOKENS, self.seats.ledger.remaining) < LEAST_OUTPUT_TOKENS

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
