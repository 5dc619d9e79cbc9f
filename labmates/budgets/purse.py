"""A purse: one step's way to the pool, with a bound of its own where several members spend at the same time.

Members who work in parallel each get an equal share of what the pool holds when their step starts. So which of two
calls gets the last credits never depends on which came first, and a run repeats exactly whatever the concurrency.
What a member leaves goes back to the pool when the step ends.
"""

from __future__ import annotations

from collections.abc import Mapping

from labmates.budgets.ledger import Entry, InsufficientFundsError, Ledger, Reservation
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
    ) -> None:
        self.team = team
        self.spent = 0
        self._ledger = ledger
        self._before = dict(before)
        self._limit = max(0, ledger.total - sum(before.values()) - aside) // sharers
        self._aside = aside
        self._likely = likely

    @property
    def left(self) -> int:
        """The remaining money of this step in the pool as it was when the step started, in micro-dollars."""
        return self._limit - self.spent

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
        self.spent -= entry.amount
        return entry

    def release(self, reservation: Reservation) -> None:
        """Give a hold back."""
        self._ledger.release(reservation)

    def note(self, amount: int) -> None:
        """Count a charge that the ledger already knows, of a step that is replayed when a run resumes."""
        self.spent += amount

    def status(self, visibility: Visibility, who: str = "your team has") -> str:
        """The budget text for the agent; empty if it may read nothing.

        It is what the pool looked like when the step started, with the agent's own spending since.
        """
        spent = dict(self._before)
        spent[self.team] = spent.get(self.team, 0) + self.spent
        sure = 0 < self._likely <= self.left
        return budget_status(visibility, self._ledger.total, spent, self.team, who, aside=self._aside, notice=not sure)
