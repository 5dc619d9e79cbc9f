"""A purse: the budget of one step of the lab, bounded where several members spend at the same time.

Members who work in parallel get equal shares of the pool's funds at the start of their step. So the order of their
calls never decides which call gets the last credits, and a run repeats exactly at any concurrency. Unspent shares
return to the pool when the step ends.
"""

from __future__ import annotations

from collections.abc import Mapping

from labmates.budgets.budget import Budget
from labmates.budgets.ledger import Ledger, Share
from labmates.budgets.money import show_dollars
from labmates.budgets.visibility import FINALISE, Visibility, low_notice


class Purse(Budget):
    """One agent's budget in one step.

    Parameters
    ----------
    team
        The team that is charged.
    before
        Spending of each team at the start of the step, in micro-dollars.
    sharers
        Number of agents that spend at the same time, this one included.
    aside
        The part of the pool reserved for later steps, in micro-dollars.
    likely
        Expected cost of this step, if it was reserved. Agents get no low-budget notice while the purse can pay it.
    shares
        Remaining limit of each agent, in micro-dollars; none by default.
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
        self._step = Share(max(0, ledger.total - sum(before.values()) - aside) // sharers, before)
        super().__init__(ledger, self._step, team)
        self._shares = {agent: self._step.part(most, {}) for agent, most in (shares or {}).items()}
        self._sharers = sharers
        self._aside = aside
        self._likely = likely
        self.kept = 0

    @property
    def spent(self) -> int:
        """Charges of this step, in micro-dollars."""
        return self._step.charged[self.member]

    @property
    def spent_by(self) -> dict[str, int]:
        """Charges of this step by agent, for agents with shares."""
        return {agent: share.charged[self.member] for agent, share in self._shares.items() if share.charged}

    @property
    def left(self) -> int:
        """The step's remaining money, by the state of the pool at its start, in micro-dollars."""
        return self.share.left

    @property
    def is_bound_by_share(self) -> bool:
        """Whether the current agent's share has less money left than the step."""
        return self.share.rest < self._step.rest

    def spend_as(self, agent: str) -> Purse:
        """Charge the share of an agent from now on; returns the purse itself."""
        self._share = self._shares.get(agent, self._step)
        return self

    def keep(self, amount: int) -> None:
        """Leave so many micro-dollars of the step's money, `kept`, for what follows it."""
        self._step.limit += self.kept - amount
        self.kept = amount

    def note(self, amount: int) -> None:
        """Count a replayed charge, which the ledger already holds."""
        self.share.charge(self.member, amount)

    def status(self, visibility: Visibility, who: str = "your team has") -> str:
        """The budget text for the agent; empty if the budget is hidden.

        Beside others, it knows the pool when its share was set, its own spending since, and its share.
        """
        self._warns = not 0 < self._likely <= self.left
        if self._sharers == 1 or visibility == "hidden":
            text = super().status(visibility, who)
            if not text or self.share is self._step:
                return text
            return f"{text} Of your own share {show_dollars(max(0, self.share.rest))} are left."
        before, total, limit = sum(self._step.before.values()), self.ledger.total, self.share.limit
        left, spent = max(0, self.share.left), f"you have spent {show_dollars(self.share.charged[self.member])} since"
        if visibility == "full":
            aside = f", with {show_dollars(self._aside)} set aside for artifacts" if self._aside else ""
            text = (
                f"Budget: when your share was set, {show_dollars(before)} of {show_dollars(total)} were spent{aside}; "
                f"{spent}. Your share was {show_dollars(limit)}; {show_dollars(left)} of it is left, and "
                "others spend theirs at the same time."
            )
        else:
            had = show_dollars(self._step.before.get(self.member, 0))
            text = f"Budget: when your share was set, {who.rpartition(' ')[0]} had spent {had}; {spent}."
        free = total - self._aside
        lows = {"What is not set aside": (free, free - before), "Your share": (limit, left)}
        notices = {what: low_notice(max(0, most), max(0, rest)) for what, (most, rest) in lows.items()}
        told = next((f"{what} {FINALISE}" for what, low in notices.items() if low == FINALISE), "")
        told = told or next((f"{what} {low}" for what, low in notices.items() if low), "")
        return f"{text} {told}" if told and self._warns else text

    @property
    def _spending(self) -> Mapping[str, int]:
        return self._step.spent
