"""A diligent member's work on its task: its next calls, given its earlier calls."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from labmates.models.scripted.base import DraftCall, Heard, call, call_tokens
from labmates.tasks.analysis import printed_findings
from labmates.workflows.science.baselines.cells import LOOK, Cell, cell_of, look, work_of
from labmates.workflows.science.baselines.prompt import Step, Use
from labmates.workflows.science.baselines.stated import Block, find_block, merge, sentences, telling_lines
from labmates.workflows.science.baselines.writing import NO_ANALYSIS

REQUESTS = ("request_additional_work", "request_team_redo")


def next_calls(step: Step, heard: Heard) -> tuple[DraftCall, ...]:
    """The next calls; empty if the task is done, or must end because the pool runs low.

    If the pool runs low, the lead does only necessary work, and the others start nothing new.
    """
    if step.hurry == "finalise" or (step.hurry == "concise" and not step.leads):
        return ()
    held = heard.tool_names()
    if reading := _reading(step, held):
        # The first look at the table does not depend on artifacts.
        looking = () if _is_prepared(step) else _code(step, heard)
        return fitting([*reading, *looking], heard)
    for made in (_request(step, held), _code(step, heard), _extra(step, held)):
        if calls := fitting(made, heard):
            return calls
    return ()


def fitting(calls: Sequence[DraftCall], heard: Heard) -> tuple[DraftCall, ...]:
    """The first of these calls, as many as fit into one reply."""
    used = itertools.accumulate(call_tokens(made.name, made.arguments) for made in calls)
    return tuple(made for made, tokens in zip(calls, used, strict=True) if tokens <= (heard.max_tokens or 10**9))


def found_in(step: Step) -> Block:
    """Findings of the agent's code in this step; the newest count."""
    found = merge(part for text in _printed(step) for part in reversed(list(printed_findings(text))))
    return {name: value for name, value in found.items() if name in step.fields}


def _printed(step: Step) -> list[str]:
    """What the agent's code printed in this step, the newest first."""
    return [use.result for use in reversed(step.uses) if use.name == "run_code"]


def summary(step: Step, most: int) -> str:
    """The agent's report, in at most `most` sentences: its findings, else those that it read, else any numbers."""
    if step.analysis is None:
        return NO_ANALYSIS
    read = [*step.facts.get("material", {}).values()]
    read += [use.result for use in step.uses if use.name == "read_artifact"]
    found = found_in(step) or ({} if _printed(step) else _claimed(step))
    lines = telling_lines("\n".join(_printed(step) or read), most)
    told = sentences(found, step.fields)[:most] or [f"The numbers say: {line.rstrip('.')}." for line in lines]
    return " ".join(told) or f"Nothing was found that can be put in numbers; the task was: {step.task}"


def _reading(step: Step, held: Sequence[str]) -> tuple[DraftCall, ...]:
    # Writers get all artifacts again with their order; only claims to check must be read.
    if "read_artifact" not in held or (step.hurry == "concise" and "claim" not in step.task):
        return ()
    wanted = [name for name in _sources(step, held) if name in _readable(step)]
    asked = any(use.name in REQUESTS for use in step.uses)
    done = {use.arguments.get("name") for use in _since_request(step) if use.name == "read_artifact"}
    done |= set() if asked else {name for name in wanted if step.read(name) is not None}
    return tuple(call("read_artifact", name=name) for name in wanted if name not in done)


def _sources(step: Step, held: Sequence[str]) -> list[str]:
    """Relevant artifacts: of the previous team, or of all others for agents without code."""
    owners = step.owners
    others = [name for name, team in owners.items() if team != step.team]
    if "run_code" not in held:
        return [*others, *(name for name in _readable(step) if name not in owners)]
    before = list(owners)[: list(owners.values()).index(step.team)] if step.team in owners.values() else others
    return before[-1:]


def _readable(step: Step) -> list[str]:
    return list(step.facts.get("readable", []))


def _since_request(step: Step) -> tuple[Use, ...]:
    asked = [i for i, use in enumerate(step.uses) if use.name in REQUESTS]
    return step.uses[asked[-1] + 1 :] if asked else step.uses


def _request(step: Step, held: Sequence[str]) -> tuple[DraftCall, ...]:
    """The lead's single request for numbers to the previous team, if its artifact has none."""
    sources = _sources(step, held)
    if (
        "run_code" not in held
        or REQUESTS[0] not in held
        or not sources
        or step.request
        or step.analysis is None
        or step.hurry != "none"
        or not step.leads
        or any(use.name in REQUESTS for use in step.uses)
        or telling_lines(step.read(sources[0]) or "", 1)
    ):
        return ()
    team = step.owners[sources[0]]
    asked = f"Please hand over `{sources[0]}` with the numbers that you found and how sure they are; I can find none."
    return (call(REQUESTS[0], target_team=team, request=asked),)


def _code(step: Step, heard: Heard) -> tuple[DraftCall, ...]:
    """The unfinished cells: at once those that are independent of others and fit into one reply."""
    if "run_code" not in heard.tool_names():
        return ()
    ran = {str(use.arguments.get("description")) for use in _since_lost(step) if use.name == "run_code"}
    calls: list[DraftCall] = []
    for cell in _cells(step):
        if cell.title in ran:
            continue
        # Other cells need what the first one prepares, and a check without claims needs the findings.
        is_check = step.analysis is not None and cell.title == step.analysis.titles.get("check")
        if calls and ((is_check and not _claimed(step)) or not _is_prepared(step)):
            break
        calls.append(run_cell(cell))
        if len(fitting(calls, heard)) < len(calls):
            break
    return tuple(calls)


def _is_prepared(step: Step) -> bool:
    """Whether the first cell ran on this agent's data; it stops on a part of divided data without its columns."""
    first = step.analysis.titles["prepare"] if step.analysis else "\0"
    ran = [use for use in _since_lost(step) if str(use.arguments.get("description")) == first]
    return bool(ran) and not any(use.result.startswith("stopped:") for use in ran)


def _since_lost(step: Step) -> tuple[Use, ...]:
    """The calls since the loss of all variables, so that all cells run again; a second loss is not repaired.

    Several failing calls of one reply are one loss.
    """
    lost = [use.reply for use in step.uses if use.name == "run_code" and "NameError" in use.result]
    return tuple(use for use in step.uses if use.reply > lost[0]) if len(set(lost)) == 1 else step.uses


def _cells(step: Step) -> Iterator[Cell]:
    """The cells of the role; only a look where the task has no cells, or they don't fit the data."""
    analysis = step.analysis
    if analysis is not None:
        yield cell_of(analysis, "prepare")
    if analysis is None or not _is_prepared(step):
        yield look()
        return
    for piece in work_of(step.agent, step.task, analysis):
        if piece == LOOK:
            yield from [look()] if step.hurry != "concise" else []
        else:
            # Without others' claims, the agent checks its own.
            yield cell_of(analysis, piece, {"claims": _claimed(step) or found_in(step)} if piece == "check" else {})


def run_cell(cell: Cell) -> DraftCall:
    """The call that runs a cell."""
    return call("run_code", code=cell.code, description=cell.title)


def _claimed(step: Step) -> Block:
    block = find_block("\n".join([*step.facts.get("material", {}).values(), *(use.result for use in step.uses)]))
    return {name: value for name, value in block.items() if name in step.fields}


def _extra(step: Step, held: Sequence[str]) -> tuple[DraftCall, ...]:
    """The call that writes the role's additional artifact, once."""
    owners = step.owners
    asked = re.findall(r"`(\w+)`", step.parts().get(step.agent, ""))
    written = {use.arguments.get("name") for use in step.uses if use.name == "write_artifact"}
    for name in asked:
        if "write_artifact" in held and name not in owners and name not in written:
            listed = "\n".join(f"- {line}" for text in _printed(step) for line in telling_lines(text, 20))
            content = f"{summary(step, 3)}\n\n## What the code printed\n{listed or '- nothing with numbers'}"
            return (call("write_artifact", name=name, content=content, description="what the code gave"),)
    return ()
