"""An organisation that asks a person, agents who improve what was refused, and a person who wants it better."""

from __future__ import annotations

from typing import Any

from labmates.budgets.tokens import text_of
from labmates.models.scripted.base import Draft, Heard, call
from labmates.workflows.people.approval import Question
from tests.support.puppet import agent_of, step_of, turn_of

LAB: dict[str, Any] = {
    "name": "careful",
    "approve": ["plan", "request", "write"],
    "flow": [{"survey": ["work", "write"]}, {"authors": ["plan", "work", "write"]}],
    "teams": {
        "survey": {
            "artifact": "notes",
            "without": ["run_code"],
            "seats": {"ana": {"title": "analyst", "part": "Look at the data."}},
        },
        "authors": {
            "artifact": "final_paper",
            "without": ["run_code"],
            "seats": {
                "ben": {"title": "author", "part": "Write the paper."},
                "cho": {"title": "reader", "part": "Read it."},
            },
        },
    },
}
REASON = "Make it better."


def improving(heard: Heard) -> Draft:
    """Do each step badly, and better once a person has refused it."""
    step, agent = step_of(heard), agent_of(heard)
    how = "better" if REASON in "".join(text_of(message.content) for message in heard.messages[2:]) else "quick"
    if step == "plan":
        return Draft(f"A {how} plan.\nben: a {how} look\ncho: read it")
    if step == "work":
        asks = agent == "ben" and heard.messages[-1].type != "human" and REASON in text_of(heard.messages[-1].content)
        if asks or (agent == "ben" and turn_of(heard) == 0):
            return Draft("", (call("request_additional_work", target_team="survey", request=f"a {how} count"),))
        return Draft("", (call("mark_complete", summary="done"),))
    name = step.split("`")[1]
    stated = (call("state_findings"),) if name == "final_paper" else ()
    return Draft("", (*stated, call("write_artifact", name=name, content=f"# {name}\nA {how} text.", description="")))


def wants_better(question: Question) -> bool | str:
    """Approve only what is better."""
    return "better" in question.text or REASON
