"""The baseline that never calls a tool."""

from __future__ import annotations

from labmates.models.scripted.base import Draft, Heard, ScriptedModel
from labmates.workflows.science.baselines.prompt import read_step
from labmates.workflows.science.baselines.tasks import points_for, task_for


class Silent(ScriptedModel):
    """Answers every step in text, also where a tool call is due."""

    baseline = "silent"
    description = "Never calls a tool: answers in text only, as a model without tool calling would."

    def compose(self, heard: Heard) -> Draft:
        """A text that fits the step."""
        step = read_step(heard.messages)
        match step.kind:
            case "plan":
                tasks = [f"{name}: {task_for(name, place)}" for place, name in enumerate(step.members())]
                return Draft("\n".join([*(f"- {point}" for point in points_for(step.team)), *tasks]))
            case "bid":
                return Draft("0: nothing")
            case "work":
                return Draft(f"I would do it in this order: look at the table, clean it, then this: {step.task}")
            case "deliberate":
                return Draft("I have computed nothing that could be discussed. I rely on what the others found.")
            case "write":
                parts = [f"## {title}\nNothing was computed for this part." for title, _ in step.sections()]
                return Draft("\n\n".join(parts))
            case _:
                return Draft("I have no answer to this.")
