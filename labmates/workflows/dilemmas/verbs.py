"""``labmates mechanisms`` and ``labmates dilemmas``."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.workflows.protocol.verb import Verb

MECHANISMS = Verb(
    "List the cooperation mechanisms, or show one.",
    lazy("labmates.workflows.dilemmas.catalog:MECHANISMS_COMMAND"),
)
DILEMMAS = Verb("List the social dilemmas, or show one.", lazy("labmates.workflows.dilemmas.catalog:DILEMMAS_COMMAND"))
