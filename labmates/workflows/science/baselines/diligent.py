"""The baseline that follows the protocol: it plans, computes, reports numbers and writes all artifacts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any, cast

from labmates.budgets.tokens import estimate_tokens
from labmates.models.scripted.base import Draft, DraftCall, Heard, ScriptedModel, call, call_tokens, cut_to_tokens
from labmates.tasks.analysis import printed_findings
from labmates.workflows.science.baselines.prompt import STATE, Hurry, Step, read_step
from labmates.workflows.science.baselines.stated import Block, merge, sentences, show_block, telling_lines
from labmates.workflows.science.baselines.working import next_calls, summary
from labmates.workflows.science.baselines.writing import NO_ANALYSIS, gather, write_sections

LEVELS = (8, 5, 3, 2, 1, 0)
"""Most sentences per part, tried in this order until the text fits the limit of the reply."""

IN_HURRY: dict[Hurry, tuple[int, ...]] = {"none": LEVELS, "concise": LEVELS[2:], "finalise": LEVELS[4:]}
"""The levels to try, by the prompt's notice about the pool."""

NO_LIMIT = 10**9

POINTS = (
    "Read what was handed over, see the layout of the data and repair what is wrong with them.",
    "Do the team's part of the project in numbers, and test what was claimed.",
    "Hand over what was found and how sure it is.",
)
"""The plan of each team."""

TASKS = (
    "Repair the data, fit the main model and report its estimates with tests.",
    "Fit the model, and forecast a held-out stretch.",
    "Repair the data, fit the model, and report what it leaves unexplained.",
    "Fit the model and check its claims in both halves of the data.",
)
"""The tasks of members, in turn; those of unknown roles work by the words of theirs."""


class Diligent(ScriptedModel):
    """A careful team member that runs the analysis code that the task ships."""

    baseline = "diligent"
    description = (
        "Plans, runs the task's analysis code, reports and checks numbers, writes all sections and the findings."
    )

    def compose(self, heard: Heard) -> Draft:
        """The next move in the requested step."""
        step = read_step(heard.messages)
        if step.declared is None:
            return Draft(cut_to_tokens("I need a step of the project to work on.", heard.max_tokens or NO_LIMIT))
        answer: Draft = cast(Any, step.declared).answer(step, heard)
        return answer


def work_draft(step: Step, heard: Heard) -> Draft:
    """The next calls of a step of work, or the calls that close it."""
    calls = moves(step, heard) if step.turns - step.replies > 1 else ()
    return Draft(calls=calls) if calls else closing_draft(step, heard)


def moves(step: Step, heard: Heard) -> tuple[DraftCall, ...]:
    """The next calls in a step of work: first of the task, then of requested artifacts.

    Empty if the task is done, or must end because the pool runs low.
    """
    calls = next_calls(step, heard)
    if calls or step.hurry == "finalise" or "write_artifact" not in heard.tool_names():
        return calls
    written = {use.arguments.get("name") for use in step.uses if use.name == "write_artifact"}
    open_ = ((name, sections) for name, sections in step.also_asked().items() if name not in written)
    return next((artifact_draft(step, heard, name, sections).calls for name, sections in open_), ())


def fit_text(build: Callable[[int], str], hurry: Hurry, limit: int | None) -> str:
    """The longest version of a text of at most `limit` tokens; the shortest one is cut if necessary."""
    for most in IN_HURRY[hurry]:
        text = build(most)
        if estimate_tokens(text) <= (limit or NO_LIMIT):
            return text
    return cut_to_tokens(text, limit or NO_LIMIT)


def plan_text(step: Step, most: int) -> str:
    """A plan: its points and one task for each member."""
    points = [f"- {point}" for point in POINTS[: max(1, most)]]
    fields = ", ".join(step.fields)
    if fields and most >= LEVELS[1]:
        points.append(f"- The paper has to state {fields}: each needs a number and how sure it is.")
    tasks = (task if most > 1 else f"{task.split(',')[0].rstrip('.')}." for task in cycle(TASKS))
    lines = [f"{name}: {task}" for name, task in zip(step.members(), tasks, strict=False)]
    return "\n".join([*points, "", *lines])


def bid_text(step: Step) -> str:
    """A bid: high before the first work, nothing after it or if the pool runs low."""
    if step.hurry == "finalise" or any(use.name == "run_code" for use in step.before):
        return "0: nothing"
    return f"7: {step.facts['part']}"


def contribution(step: Step, most: int) -> str:
    """Two or three sentences on the agent's results, the last in answer to the discussion."""
    if step.analysis is None:
        return NO_ANALYSIS
    printed = [use.result for use in (*step.before, *step.uses) if use.name == "run_code"]
    found = merge(reversed([block for text in (*printed, step.order) for block in printed_findings(text)]))
    reported = telling_lines(step.facts.get("reported", ""), 2)
    told = sentences(found, step.fields)[:2] or reported or ["My part gave no number that the team could use."]
    others = [name for name, _ in step.facts.get("said", []) if name != step.agent]
    closing = f"What is doubtful: {step.analysis.doubt}."
    if others and step.facts.get("round") != 1:
        closing = f"I agree with {others[-1]}; state it with its test in `{step.artifact}`."
    return " ".join([*told[: 2 if most > 1 else 1], closing][: 3 if most else 1])


def closing_draft(step: Step, heard: Heard) -> Draft:
    """Calls that close a task; without such a tool, the summary as text."""
    held, limit = heard.tool_names(), heard.max_tokens
    if "mark_complete" not in held:
        return Draft(fit_text(lambda most: summary(step, most), step.hurry, limit))
    message = _message(step, held)
    for most in IN_HURRY[step.hurry]:
        for extra in dict.fromkeys((message, ())):
            calls = (*extra, call("mark_complete", summary=summary(step, most)))
            if sum(call_tokens(made.name, made.arguments) for made in calls) <= (limit or NO_LIMIT):
                return Draft(calls=calls)
    return Draft(calls=(call("mark_complete", summary="Done."),))


def _message(step: Step, held: tuple[str, ...]) -> tuple[DraftCall, ...]:
    """A lead's message to the team that works next."""
    teams = list(step.owners.values())
    if "send_message" not in held or step.hurry != "none" or not step.leads or step.team not in teams[:-1]:
        return ()
    after = teams[teams.index(step.team) + 1]
    if after not in step.facts.get("readers", []):
        return ()
    return (call("send_message", to_team=after, content=summary(step, 1)[:300]),)


def write_draft(step: Step, heard: Heard) -> Draft:
    """The findings and the artifact of a writing step, or their missing part."""
    if step.is_written() and STATE in heard.tool_names():
        return Draft(calls=(call(STATE, **step.without_faults(gather(step).found)),))
    return artifact_draft(step, heard, step.artifact, step.sections())


def artifact_draft(step: Step, heard: Heard, name: str, sections: Sequence[tuple[str, str]]) -> Draft:
    """A whole artifact with all sections and the findings, as calls if tools are available.

    With few tokens the prose shrinks first, then the findings lose their largest fields, since cut ones are unreadable.
    """
    material = gather(step)
    block = step.without_faults(material.found)
    limit, held = heard.max_tokens or NO_LIMIT, heard.tool_names()
    is_writing = step.declared is not None and step.declared.does == "write"
    states = (is_writing or step.wants_findings()) and STATE in held and not step.has_stated()
    shows = not (step.wants_findings() and STATE in held)

    def draft(text: str, block: Block) -> Draft:
        whole = _joined(text, block if shows else {}, step)
        if "write_artifact" not in held:
            return Draft(whole)
        stated = (call(STATE, **block),) if states else ()
        about = f"The {step.team} team's work"
        return Draft(calls=(*stated, call("write_artifact", name=name, content=whole, description=about)))

    for most in IN_HURRY[step.hurry]:
        whole = draft(write_sections(sections, material, most), block)
        if _fits(whole, limit):
            return whole
    prose = "" if shows else cut_to_tokens(write_sections(sections, material, 0), limit // 4)
    while block:
        if _fits(stated := draft(prose, block), limit):
            return stated
        block = _smaller(block)
    return draft(cut_to_tokens(write_sections(sections, material, 0), limit // 2), {})


def _joined(prose: str, block: Block, step: Step) -> str:
    if not block:
        return prose
    heading = "" if step.wants_findings() else "## Findings so far\n"
    return f"{prose}\n\n{heading}{show_block(block)}".strip()


def _smaller(block: Block) -> Block:
    """The block with its longest list halved, or without its last field if it has no list."""
    lists = [name for name, value in block.items() if isinstance(value, list) and len(value) > 1]
    if not lists:
        return dict(list(block.items())[:-1])
    longest = max(lists, key=lambda name: len(str(block[name])))
    return {**block, longest: block[longest][: len(block[longest]) // 2]}


def _fits(draft: Draft, limit: int) -> bool:
    return estimate_tokens(str(draft.content)) + sum(call_tokens(c.name, c.arguments) for c in draft.calls) <= limit
