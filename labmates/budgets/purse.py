"""A purse: one step's way to the pool, with a bound of its own where several members spend at the same time.

Members who work in parallel each get an equal share of what the pool holds when their step starts. So which of two
calls gets the last credits never depends on which came first, and a run repeats exactly whatever the concurrency.
What a member leaves goes back to the pool when the step ends.
"""

from __future__ import annotations

from collections.abc import Mapping

from labmates.budgets.accounts import Account
from labmates.budgets.ledger import Ledger
from labmates.budgets.money import show_dollars
from labmates.budgets.shares import Share
from labmates.budgets.visibility import Visibility, budget_status


class Purse(Account):
    """One agent's account in one step.

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
        self._step = Share(max(0, ledger.total - sum(before.values()) - aside) // sharers, before)
        super().__init__(ledger, self._step, team)
        self._shares = {agent: self._step.part(most, {}) for agent, most in (shares or {}).items()}
        self._aside = aside
        self._likely = likely

    @property
    def spent(self) -> int:
        """Charges of this step, in micro-dollars."""
        return self._step.charged[self.name]

    @property
    def spent_by(self) -> dict[str, int]:
        """Those of agents with shares, by agent."""
        return {agent: share.charged[self.name] for agent, share in self._shares.items() if share.charged}

    @property
    def left(self) -> int:
        """The remaining money of this step in the pool as it was when the step started, in micro-dollars."""
        return self.share.left

    @property
    def is_bound_by_share(self) -> bool:
        """Whether the step has more money left than the share of the agent that spends now."""
        return self.share.rest < self._step.rest

    def of(self, agent: str) -> Purse:
        """The purse in the hands of an agent, whose share bounds it from now on."""
        self.share = self._shares.get(agent, self._step)
        return self

    def note(self, amount: int) -> None:
        """Count a charge that the ledger already knows, of a step that is replayed when a run resumes."""
        self.share.charge(self.name, amount)

    def status(self, visibility: Visibility, who: str = "your team has") -> str:
        """The budget text for the agent; empty if it may read nothing.

        It is what the pool looked like when the step started, with the agent's own spending since.
        """
        total, spent = self.ledger.total, self._step.spent
        notice = not 0 < self._likely <= self.left
        text = budget_status(visibility, total, spent, self.name, who, aside=self._aside, notice=notice)
        if not text or self.share is self._step:
            return text
        return f"{text} Of your own share {show_dollars(max(0, self.share.rest))} are left."
