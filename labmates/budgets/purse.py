"""A purse: one step's way to the pool, with a bound of its own where several members spend at the same time.

Members who work in parallel each get an equal share of what the pool holds when their step starts. So which of two
calls gets the last credits never depends on which came first, and a run repeats exactly whatever the concurrency.
What a member leaves goes back to the pool when the step ends.
"""

from __future__ import annotations

from collections.abc import Mapping

from labmates.budgets.ledger import Entry, InsufficientFundsError, Ledger, Reservation
from labmates.budgets.money import show_dollars
from labmates.budgets.visibility import Visibility, budget_status


class Purse:
    """One agent's money in one step.

    Parameters
    ----------
    ledger
        The run's pool.
    team
        The team that is charged.
    before
        What each team had spent when the step started, in micro-dollars.
    sharers
        Number of agents that spend at the same time, this one included.
    aside
        What of the pool is set aside for later steps, in micro-dollars: this step can't spend it.
    likely
        What this step is likely to cost, where that was set aside for it. While the purse can pay it, agents are not
        told that the pool runs low.
    shares
        What each agent may still spend, in micro-dollars; by default, agents have no shares.
    """

    def __init__(
        self,
        ledger: Ledger,
        team: str,
        before: Mapping[str, int],
        sharers: int = 1,
        *,
        aside: int = 0,
        likely: int = 0,
        shares: Mapping[str, int] | None = None,
    ) -> None:
        self.team = team
        self.spent = 0
        self.spent_by: dict[str, int] = {}
        self._shares = shares or {}
        self._agent = ""
        self._ledger = ledger
        self._before = dict(before)
        self._limit = max(0, ledger.total - sum(before.values()) - aside) // sharers
        self._aside = aside
        self._likely = likely

    @property
    def left(self) -> int:
        """The remaining money of this step in the pool as it was when the step started, in micro-dollars."""
        left = self._limit - self.spent
        share = self._share
        return left if share is None else min(left, share)

    @property
    def _share(self) -> int | None:
        """The rest of the share of the agent that spends now."""
        if self._agent not in self._shares:
            return None
        return self._shares[self._agent] - self.spent_by.get(self._agent, 0)

    @property
    def is_bound_by_share(self) -> bool:
        """Whether the step has more money left than the share of the agent that spends now."""
        return self._share is not None and self._share < self._limit - self.spent

    def of(self, agent: str) -> Purse:
        """The purse in the hands of an agent, whose share bounds it from now on."""
        self._agent = agent
        return self

    @property
    def available(self) -> int:
        """The money that this purse can still pay, in micro-dollars."""
        return max(0, min(self.left, self._ledger.available))

    def reserve(self, amount: int, call: str) -> Reservation:
        """Hold `amount` for a call.

        Raises
        ------
        InsufficientFundsError
            If the purse or the pool can't pay it.
        """
        if amount > self.available:
            raise InsufficientFundsError(f"{self.available} micro-dollars are left for this step, not {amount}")
        return self._ledger.reserve(amount, call=call, team=self.team)

    def settle(self, reservation: Reservation, cost: int) -> Entry:
        """Charge what the call really cost."""
        entry = self._ledger.settle(reservation, cost)
        self.note(-entry.amount)
        return entry

    def release(self, reservation: Reservation) -> None:
        """Give a hold back."""
        self._ledger.release(reservation)

    def note(self, amount: int) -> None:
        """Count a charge that the ledger already knows, of a step that is replayed when a run resumes."""
        self.spent += amount
        if self._agent in self._shares:
            self.spent_by[self._agent] = self.spent_by.get(self._agent, 0) + amount

    def status(self, visibility: Visibility, who: str = "your team has") -> str:
        """The budget text for the agent; empty if it may read nothing.

        It is what the pool looked like when the step started, with the agent's own spending since.
        """
        spent = dict(self._before)
        spent[self.team] = spent.get(self.team, 0) + self.spent
        sure, share = 0 < self._likely <= self.left, self._share
        text = budget_status(visibility, self._ledger.total, spent, self.team, who, aside=self._aside, notice=not sure)
        return (
            f"{text} Of your own share {show_dollars(max(0, share))} are left." if share is not None and text else text
        )
