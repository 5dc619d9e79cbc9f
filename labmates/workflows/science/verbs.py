"""``labmates demo``, ``labmates tasks``, ``labmates judges`` and ``labmates organisations``."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.workflows.protocol.verb import Verb

DEMO = Verb("Run one science task with a scripted team, offline.", lazy("labmates.workflows.science.demo:DEMO"))
TASKS = Verb("List the science tasks, or show, check or create one.", lazy("labmates.workflows.science.tasks:COMMAND"))
JUDGES = Verb(
    "List the judges of reports, or show, check or create one.",
    lazy("labmates.workflows.science.judge_commands:COMMAND"),
)
ORGANISATIONS = Verb(
    "List the organisations of the science lab, or show, draw, check or create one.",
    lazy("labmates.workflows.science.organisation_commands:COMMAND"),
)
