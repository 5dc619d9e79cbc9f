"""``labmates demo``."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.workflows.verb import Verb

DEMO = Verb(
    "Let a scripted team do one science task, offline.",
    lazy("labmates.workflows.science.demo:demo"),
    lazy("labmates.workflows.science.demo:DemoParams"),
    example="labmates demo",
    has_store=True,
)
