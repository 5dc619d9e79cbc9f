"""A play of one agent alone for resume and determinism tests: code, artifacts, a reply that can't be used."""

from __future__ import annotations

from labmates.budgets.tokens import text_of
from labmates.models.scripted.base import Draft, Heard, call
from tests.support.puppet import dutiful, step_of, turn_of


def alone(heard: Heard) -> Draft:
    """Use every part that one agent alone has; numbers in the texts come from the seed."""
    if step_of(heard) == "plan":
        repaired = "can't be used" in text_of(heard.messages[-1].content)
        return Draft(f"- look\n- write {heard.seed}") if repaired else Draft("")
    if step_of(heard) != "work":
        return dutiful(heard)
    script = [
        Draft("", (call("run_code", code=f"seed = {heard.seed}\nprint(len(df), seed)"),)),
        Draft("", (call("write_artifact", name="dataset_description", content=f"It has {heard.seed} rows."),)),
        Draft("I would rather talk."),
        Draft("", (call("run_code", code="print(seed + 1)"), call("read_artifact", name="dataset_description"))),
    ]
    return script[turn_of(heard)] if turn_of(heard) < len(script) else dutiful(heard)
