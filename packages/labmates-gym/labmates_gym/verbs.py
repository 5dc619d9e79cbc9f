"""``labmates gym``."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.workflows.protocol.verb import Verb

GYM = Verb("List environments for reinforcement learning.", lazy("labmates_gym.commands:GYM"))
