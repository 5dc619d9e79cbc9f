"""The record of calls: what an earlier attempt paid is paid in the purse of the resumed run too."""

from __future__ import annotations

from labmates.budgets.ledger import Ledger
from labmates.budgets.purse import Purse
from labmates.records.events import ChargeEvent
from labmates.records.recorder import Recorder
from labmates.workflows.calls.call import CallRecord


def test_lost_attempts_are_noted_in_the_purse_after_a_resume() -> None:
    lost = [ChargeEvent(step=f"work/0/lost/{n}", amount=70, estimated=True, uncertain=True) for n in range(2)]
    purse = Purse(Ledger(1_000), "team", {})
    record = CallRecord(Recorder(None, None, events=lost))
    assert record.exchange("work/0", [], purse, "m") is None
    assert purse.spent == 140
