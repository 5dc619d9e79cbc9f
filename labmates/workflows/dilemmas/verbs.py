"""``labmates analyze reasons``: it asks a model and adds to runs, which an analysis never does."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.workflows.verb import Verb

REASONS = Verb(
    "Let a model label the reasons that players give for their choices.",
    lazy("labmates.workflows.dilemmas.reasons:reasons"),
    lazy("labmates.workflows.dilemmas.reasons:ReasonsParams"),
    example="labmates analyze reasons --judge openai:gpt-5.4-mini --most 200",
    asks_models=True,
    has_store=True,
    choices=("runs", "study"),
    objects="",
)
