"""``labmates profile``, ``labmates screen`` and ``labmates analyze reasons``."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.workflows.protocol.verb import Verb

REASONS = Verb(
    "Have a model label the reasons that players give for their choices.",
    lazy("labmates_profiles.reasons.command:REASONS"),
)
PROFILE = Verb("Measure models' play in the behavioural games.", lazy("labmates_profiles.profiling:PROFILE"))
SCREEN = Verb(
    "Predict models' results in the lab from their play in the behavioural games.",
    lazy("labmates_profiles.prediction.screen:SCREEN"),
)
