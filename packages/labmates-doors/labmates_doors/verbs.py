"""``labmates gateway``."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.workflows.protocol.verb import Verb

GATEWAY = Verb(
    "Share one budget among programs that call models over HTTP.", lazy("labmates_doors.gateway.command:gateway")
)
