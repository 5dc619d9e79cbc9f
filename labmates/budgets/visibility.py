"""The part of the budget that agents see, and the warnings when it runs low.

The paper (cooperative profiles, section 4.1) names three settings. We read `hidden` as no mention of the budget at all:
no numbers, no rules, and no notice when it runs low.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from labmates.budgets.money import show_dollars

Visibility = Literal["full", "team", "hidden"]

CONCISE_AT_PERCENT = 30
FINALISE_AT_PERCENT = 15

CONCISE = "is running low: finish your present task concisely and start nothing new."
FINALISE = "is almost empty: finalise at once with what you have."


def budget_status(
    visibility: Visibility,
    total: int,
    spent: Mapping[str, int],
    team: str,
    who: str = "your team has",
    *,
    aside: int = 0,
    notice: bool = True,
) -> str:
    """The budget text for an agent of `team`, with a notice if the pool runs low; empty under ``hidden``.

    Parameters
    ----------
    visibility
        ``full`` shows the pool and each team's spending, ``team`` only the agent's team's, ``hidden`` nothing.
    total, spent
        Size of the pool, and spending by team, in micro-dollars.
    who
        Form of address of the agent's team; ``you have`` for a single agent.
    aside
        Reserved for artifacts yet to be written, in micro-dollars; shown under ``full``. Notices depend on the rest of
        the pool.
    notice
        Whether to add notices.
    """
    if visibility == "hidden":
        return ""
    remaining = max(0, total - sum(spent.values()))
    percent = remaining * 100 // total if total else 0
    if visibility == "full":
        by_team = ", ".join(f"{name} {show_dollars(amount)}" for name, amount in sorted(spent.items()) if amount)
        line = (
            f"Budget: {show_dollars(sum(spent.values()))} of {show_dollars(total)} spent"
            f"{f' ({by_team})' if ',' in by_team else ''}, {show_dollars(remaining)} ({percent} %) left"
            f"{f', {show_dollars(min(aside, remaining))} of it set aside for artifacts' if aside else ''}."
        )
    else:
        line = f"Budget: {who} spent {show_dollars(spent.get(team, 0))}."
    low = low_notice(max(0, total - aside), max(0, remaining - aside)) if notice else ""
    return f"{line} {'What is not set aside' if aside else 'The pool'} {low}" if low else line


def low_notice(total: int, remaining: int) -> str:
    """The notice for money with `remaining` of `total` micro-dollars: at 30 %, at 15 %, or empty."""
    if remaining * 100 <= FINALISE_AT_PERCENT * total:
        return FINALISE
    if remaining * 100 <= CONCISE_AT_PERCENT * total:
        return CONCISE
    return ""
