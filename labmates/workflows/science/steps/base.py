"""The base of kinds of steps: declaration, node, prompts and the scripted baselines' answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from langgraph.runtime import Runtime

from labmates.agents.steps import StepKind
from labmates.models.scripted.base import Draft, Heard
from labmates.workflows.science.baselines.prompt import Step
from labmates.workflows.science.lab.context import LabContext
from labmates.workflows.science.lab.state import Phase, WorkOrder
from labmates.workflows.science.steps.running import StepRun

Update = dict[str, Any]
"""A change of the state of a team's graph."""


class LabStep(StepKind, ABC):
    """A kind of step of the science lab; further attributes are those of `labmates.agents.steps.StepKind`.

    Attributes
    ----------
    member_node, join_node
        If each member does it on its own: the names of their nodes in the graph, where ``{}`` is the seat, and of the
        node that joins their results.
    """

    member_node: ClassVar[str] = "{}"
    join_node: ClassVar[str] = ""

    @abstractmethod
    async def take(self, run: StepRun) -> Update:
        """Take the step with a whole team, or join its members' results; returns `run.next` with what has changed."""

    @abstractmethod
    def answer(self, order: Step, heard: Heard) -> Draft:
        """The scripted baselines' answer to an order of this step."""

    def least(self, order: Step, *, idle: bool) -> str:
        """The shortest usable answer of a scripted baseline to a step that talks; an idle one has done no work."""
        del order
        if idle:
            return "I have computed nothing that could be discussed. I rely on what the others found."
        return "Looks fine to me. Let us go on."

    async def of_member(self, order: WorkOrder, runtime: Runtime[LabContext]) -> Update:
        """Take the step with one member, if each does it on its own."""
        raise NotImplementedError(f"{self.name} is not done by each member on its own")

    def takers(self, phase: Phase) -> Sequence[str]:
        """The members who have yet to take the step, if each does it on its own."""
        return [*phase["members"]]
