"""``labmates profile`` and ``labmates screen``."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.workflows.protocol.verb import Verb

PROFILE = Verb("Measure models' play in the behavioural games.", lazy("labmates_profiles.profiling:PROFILE"))
SCREEN = Verb(
    "Predict models' results in the lab from their play in the behavioural games.",
    lazy("labmates_profiles.prediction.screen:SCREEN"),
)
