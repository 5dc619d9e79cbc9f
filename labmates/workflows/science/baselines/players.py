"""Baselines with a disposition in the science lab."""

from __future__ import annotations

import random

from labmates.agents.players.base import Disposition, Family
from labmates.models.scripted.base import Draft, Heard
from labmates.workflows.science.baselines.diligent import Diligent, artifact_draft, closing_draft
from labmates.workflows.science.baselines.hasty import Hasty
from labmates.workflows.science.baselines.prompt import Step, read_step


def read(heard: Heard) -> Step | None:
    """The requested step; None if it is not a step of the lab."""
    step = read_step(heard.messages)
    return None if step.declared is None else step


def _as_colleague(step: Step, heard: Heard, mine: Disposition, chance: random.Random) -> Draft:
    """The move of `Diligent`, with the probability of the effort.

    Otherwise it closes the task without work, contributes nothing, or omits sections of an artifact.
    """
    kind = step.declared
    assert kind is not None  # `read` has seen to it
    if kind.does == "write":
        sections = [section for section in step.sections() if chance.random() < mine.effort]
        return artifact_draft(step, heard, step.artifact, sections or step.sections()[:1])
    # A plan is always made, and a started task continues.
    if kind.assigns or step.replies > 0 or chance.random() < mine.effort:
        return Diligent().compose(heard)
    return closing_draft(step, heard) if kind.does == "work" else Hasty().compose(heard)


FAMILY = Family(read, {}, as_colleague=_as_colleague)
