"""A whole play for resume and determinism tests: code, messages, a request, artifacts, findings, and replies that
depend on the seed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from labmates.api import arun
from labmates.budgets.tokens import text_of
from labmates.models.scripted.base import Draft, Heard, call
from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.settings import RunSettings
from tests.support.puppet import Play, agent_of, dutiful, puppet, step_of, turn_of

CODERS = ("data_lead", "ml_engineer")
"""Who runs code: one agent whose team works twice, and one that waits for another team; each start takes a second."""


def busy(heard: Heard) -> Draft:
    """Use every part of the lab; numbers in the texts come from the seed."""
    repaired = "can't be used" in text_of(heard.messages[-1].content)
    if step_of(heard).startswith("deliberation") and agent_of(heard) == "data_engineer" and not repaired:
        return Draft("")
    if step_of(heard) != "work":
        draft = dutiful(heard)
        return Draft(f"{draft.content} {heard.seed}", draft.calls) if draft.content else draft
    turn, agent = turn_of(heard), agent_of(heard)
    if agent not in CODERS and "run_code" in heard.tool_names() and turn < 2:
        return Draft("", (call("list_artifacts"),))
    if turn == 0 and "run_code" in heard.tool_names():
        return Draft("", (call("run_code", code=f"seed = {heard.seed}\nprint(len(df), seed)"),))
    if turn == 1 and "run_code" in heard.tool_names():
        return Draft("", (call("run_code", code="print(seed + 1)"), call("list_artifacts")))
    if turn == 2 and agent == "ml_engineer":
        return Draft("", (call("request_additional_work", target_team="data", request=f"look at {heard.seed}"),))
    if turn == 2 and agent == "statistician":
        return Draft("", (call("write_artifact", name="notes", content=f"note {heard.seed}", description=""),))
    if turn == 3 and agent == "ml_engineer":
        stated = (call("state_findings", n_sensors="many"), call("state_findings", n_sensors=str(heard.seed % 9)))
        said = call("send_message", to_team="eval", content="hi")
        return Draft("", (call("run_code", code="print(seed + 2)"), said, *stated))
    return dutiful(heard)


def busy_without_code(heard: Heard) -> Draft:
    """Do the same but run no code, since each sandbox takes a second to start."""
    draft = busy(heard)
    calls = [call("list_artifacts") if one.name == "run_code" else one for one in draft.calls]
    return replace(draft, calls=tuple(calls))


def looking(heard: Heard) -> Draft:
    """Let one agent run code twice, the second time with a variable of the first."""
    if step_of(heard) == "work" and agent_of(heard) == "data_lead" and turn_of(heard) < 2:
        code = ("seen = len(df)\nprint(seen)", "print(seen + 1)")[turn_of(heard)]
        return Draft("", (call("run_code", code=code),))
    return dutiful(heard)


def industrious(heard: Heard) -> Draft:
    """Use one tool a reply: code, an artifact, a wrong call, an end; then findings and the paper."""
    if step_of(heard) != "work":
        return dutiful(heard)
    script = [
        Draft("", (call("run_code", code=f"seed = {heard.seed % 1}\nprint(len(df) > 10, seed)"),)),
        Draft("", (call("write_artifact", name="notes", content="There are rows."),)),
        Draft("", (call("read_artifact", name="nothing"),)),
        Draft("", (call("state_findings"),)),
    ]
    return script[turn_of(heard)] if turn_of(heard) < len(script) else dutiful(heard)


async def played(store: Store, play: Play, **condition: Any) -> RunRecord:
    """Execute a run of the lab whose models follow a play; `condition` is what differs from a short one."""
    with puppet(play) as model:
        wanted = {"task": "anomaly", "difficulty": "easy", "model": model, **condition}
        [run] = await arun("science", store=store.url, settings=RunSettings(sandbox="unsafe-local"), **wanted)
    return run
