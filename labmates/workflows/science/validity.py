"""Whether a run of the lab is work that may be used: replies could be read, and what was written has substance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from labmates.agents.organisation_parts import REPORT

LEAST_CHARS: Final = 80
"""A paper or another artifact of fewer characters, runs of white space counted as one, has no substance.

Noise that was written as an artifact had 3 to 60; a heading with one honest sentence has more.
"""
MOST_FAILED_REPLIES: Final = 0.5
"""Of a run whose credits ran out before its paper, above this share of failed replies it is they that are to blame."""


def invalid_work(artifacts: Mapping[str, str], replies: int, failed: int, *, exhausted: bool) -> str | None:
    """Reason why a run's work is unusable; None if it is usable.

    A run that had spent its credits before its paper was written is valid: what a budget pays is what is studied.

    Parameters
    ----------
    artifacts
        The newest content of each artifact by name, the paper's included.
    replies, failed
        The number of replies that seats gave, and of those that could not be used.
    exhausted
        Whether the credits ran out before the end.
    """
    if failed >= replies > 0:
        return f"no reply could be used, of {replies}"
    length = {name: len(" ".join(text.split())) for name, text in artifacts.items()}
    if REPORT in length:
        return _short("the paper has", length[REPORT])
    if not exhausted:
        return "no paper was written"
    if length and (reason := _short("the longest artifact has", max(length.values()))):
        return f"no paper was written, and {reason}"
    if replies and failed / replies > MOST_FAILED_REPLIES:
        return f"no paper was written, and {failed / replies:.0%} of the replies could not be used"
    return None


def _short(what: str, length: int) -> str | None:
    return f"{what} {length} characters, fewer than {LEAST_CHARS}" if length < LEAST_CHARS else None
