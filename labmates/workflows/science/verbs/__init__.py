"""``labmates demo`` and ``labmates organisations``."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.workflows.protocol.verb import Verb

DEMO = Verb("Run one science task with a scripted team, offline.", lazy("labmates.workflows.science.verbs.demo:DEMO"))
ORGANISATIONS = Verb(
    "List the organisations of the science lab, or show one.",
    lazy("labmates.workflows.science.verbs.organisations:ORGANISATIONS_COMMAND"),
)
