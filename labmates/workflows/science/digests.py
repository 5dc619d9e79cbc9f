"""Digests of earlier work for an agent of the lab: artifacts, messages, reports, outputs and calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labmates.agents.organisation_parts import Seat
from labmates.agents.sections import excerpt, excerpts
from labmates.records.events import ToolCallEvent
from labmates.workflows.science.context import LabContext
from labmates.workflows.science.state import LabState, Phase

OUTPUT_CHARS = 3_000
"""How much of a member's code output the lead gets to write from (cooperative-profiles paper, appendix C.6)."""
CALLS_CHARS = 1_500

_ABOUT = ("name", "description", "to_team", "target_team")
"""Arguments that tell what a tool call was about."""


def shown_artifacts(ctx: LabContext, lab: LabState, reader: Seat, most: int) -> dict[str, str]:
    """The newest artifacts that a seat may read, but for its team's own, at most `most` characters of each, by name."""
    partial = ctx.partial(lab)
    return {
        name: excerpt(text, most) + ("\n[this artifact was cut off here]" if name in partial else "")
        for name, text in ctx.newest(lab, reader).items()
        if name != ctx.team(lab).artifact
    }


def artifacts_text(shown: Mapping[str, str]) -> str:
    """Artifacts one below the other."""
    return "\n\n".join(delimited(name, text) for name, text in shown.items()) or "none yet"


def delimited(name: str, text: str) -> str:
    """A text between lines that name it, so that its headings are not taken for those of the prompt."""
    return f"=== {name} ===\n{text}\n=== end of {name} ==="


def mail_text(ctx: LabContext, lab: LabState, reader: Seat) -> str:
    """Messages to the team of a seat that reach this seat."""
    here, may = ctx.team(lab).name, ctx.organisation.may
    mail = [item for item in lab["mail"] if item["to"] == here and may("tell", item["agent"], reader.id)]
    lines = [f"- from the {item['sender']} team: {item['text']}" for item in mail]
    return "\n".join(lines) or "none"


def said_text(said: Sequence[tuple[str, str]]) -> str:
    """Contributions to a deliberation."""
    return "\n".join(f"[{agent}]: {text}" for agent, text in said) or "nothing yet"


def outputs_text(ctx: LabContext, outputs: Sequence[int], most: int = OUTPUT_CHARS) -> str:
    """Printed output, given as bodies, by the condition's rule for long outputs."""
    printed = [ctx.text(number).rstrip() for number in outputs]
    if ctx.condition.output_excerpt == "first":
        return excerpt("\n".join(printed), most, "first")
    return excerpts(printed, most)


def calls_text(ctx: LabContext, phase: Phase, seat: Seat) -> str:
    """Tool calls of a member in this phase, in order, each in a few words."""
    here = f"{phase['team']}/{phase['number']}/{seat.id}/work/"
    calls = [e for e in ctx.recorder.events if isinstance(e, ToolCallEvent) and e.step.startswith(here)]
    return excerpt("; ".join(_call(ctx, e) for e in calls if e.tool != "mark_complete"), CALLS_CHARS)


def _call(ctx: LabContext, event: ToolCallEvent) -> str:
    arguments = ctx.recorder.bodies[event.arguments]
    about = next((str(arguments[key]) for key in _ABOUT if arguments.get(key)), "")
    return f"{event.tool}{f' ({about[:80]})' if about else ''}{'' if event.ok else ': failed'}"
