"""``labmates blame``."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.workflows.protocol.verb import Verb

BLAME = Verb("Find the seat of a run or study that lost the credit.", lazy("labmates_credit.command:BLAME"))
