"""Baselines that do almost nothing: one look and thin texts, or no tool call at all."""

from __future__ import annotations

from typing import Any, cast

from labmates.models.scripted.base import Draft, Heard, ScriptedModel, call
from labmates.workflows.science.baselines.diligent import plan_text
from labmates.workflows.science.baselines.prompt import STATE, Step, read_step

LOOK = "print(df.shape)"


class Silent(ScriptedModel):
    """A model that answers every step in text, even if a tool call is required."""

    baseline = "silent"
    description = "Never calls a tool: answers in text only, as a model without tool calling would."

    def compose(self, heard: Heard) -> Draft:
        """A text for the step."""
        step = read_step(heard.messages)
        if step.declared is None:
            return Draft("I have no answer to this.")
        if step.declared.assigns:
            return Draft(plan_text(step, 2))
        if step.declared.does == "work":
            return Draft(f"I would do it in this order: look at the table, clean it, then this: {step.task}")
        if step.declared.does == "write":
            parts = [f"## {title}\nNothing was computed for this part." for title, _ in step.sections()]
            return Draft("\n\n".join(parts))
        return _least(step, idle=True)


class Hasty(ScriptedModel):
    """A model that does the least that the protocol accepts."""

    baseline = "hasty"
    description = "Spends next to nothing: one look at the data, no tests, thin artifacts, no findings, half a paper."

    def compose(self, heard: Heard) -> Draft:
        """The shortest move that completes the step."""
        step = read_step(heard.messages)
        if step.declared is None:
            return Draft("Done.")
        if step.declared.assigns:
            lines = [f"{name}: have a quick look and report" for name in step.members()]
            return Draft(
                "\n".join(["- Get it done quickly.", "- Skip what takes long.", "- Write a few lines.", *lines])
            )
        if step.declared.does == "work":
            return _work(step, heard)
        return _write(step, heard) if step.declared.does == "write" else _least(step, idle=False)


def _least(step: Step, *, idle: bool) -> Draft:
    return Draft(cast(Any, step.declared).least(step, idle=idle))


def _work(step: Step, heard: Heard) -> Draft:
    held = heard.tool_names()
    # Only the lead looks at the data, once.
    if step.leads and "run_code" in held and not step.uses:
        return Draft(calls=(call("run_code", code=LOOK),))
    seen = step.uses[-1].result.splitlines()[0] if step.uses and step.uses[-1].result else "nothing of note"
    return Draft(calls=(call("mark_complete", summary=f"Had a look: {seen[:80]}."),) if "mark_complete" in held else ())


def _write(step: Step, heard: Heard) -> Draft:
    sections = step.sections()
    looked = " ".join([*step.brief[:1], "We had a quick look at the table, without any analysis; nothing is unusual."])
    text = "\n\n".join(f"## {title}\n{looked}" for title, _ in sections[: max(1, len(sections) // 2)])
    if "write_artifact" not in heard.tool_names():
        return Draft(text)
    stated = (call(STATE),) if STATE in heard.tool_names() and step.wants_findings() else ()
    return Draft(calls=(*stated, call("write_artifact", name=step.artifact, content=text)))
