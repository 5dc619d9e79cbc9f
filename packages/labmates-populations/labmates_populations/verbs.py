"""``labmates strategies``."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.workflows.protocol.verb import Verb

STRATEGIES = Verb("Write, import, check and play strategies as code.", lazy("labmates_populations.commands:STRATEGIES"))
