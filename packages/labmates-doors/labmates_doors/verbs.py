"""The verbs ``gateway``, ``bundle`` and ``leaderboard``."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.workflows.protocol.verb import Verb

GATEWAY = Verb(
    "Share one budget among programs that call models over HTTP.", lazy("labmates_doors.gateway.command:gateway")
)
BUNDLE = Verb(
    "Write a study as one file that anybody can check, or check one.", lazy("labmates_doors.bundles.commands:bundle")
)
LEADERBOARD = Verb("Rank models by the runs of checked bundles.", lazy("labmates_doors.bundles.commands:leaderboard"))
