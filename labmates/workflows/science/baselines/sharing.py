"""The baseline that shares the keys of its part of divided evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from labmates.models.scripted.base import Draft, DraftCall, Heard, call
from labmates.tasks.analysis import printed_findings
from labmates.workflows.science.baselines.cells import Cell, guarded, parts_of, restoring
from labmates.workflows.science.baselines.diligent import Diligent, closing_draft
from labmates.workflows.science.baselines.prompt import SOLO, Step, Use
from labmates.workflows.science.baselines.working import fitting, run_cell

KEYS = "keys_of_"
"""Prefix of the names of artifacts with keys."""
OPEN = Cell(
    "find the keys of this part",
    guarded(
        "import json\n"
        "part = df if 'part' not in globals() else part\n"
        "found = {'keys': hand_over(part), 'readings': bool({'plain', 'readings'} & {*tables_of(part)})}\n"
        "print('RESULT', json.dumps({**found, 'whole': 'table' not in part}))"
    ),
)
RESTORE = "restore the table with all keys"


class Sharing(Diligent):
    """A `Diligent` agent that first shares its keys, and restores the table with others' keys."""

    baseline = "sharing"
    description = "Does as diligent does; with divided evidence it hands over its keys and uses those of the others."

    def work(self, step: Step, heard: Heard) -> Draft:
        """Exchange keys; analyse the restored data, or close the task if there are none yet."""
        if "run_code" not in heard.tool_names():
            return super().work(step, heard)
        if step.turns - step.replies > 1 and (calls := fitting(_exchange(step, heard), heard)):
            return Draft(calls=calls)
        part = _part(step)
        if part.get("whole") or RESTORE in _titles(step.uses):
            return super().work(step, heard)
        return closing_draft(step, heard)


def _exchange(step: Step, heard: Heard) -> tuple[DraftCall, ...]:
    """The next calls that find, share, read or use keys; empty if all is done."""
    part, used = _part(step), (*step.before, *step.uses)
    if not part:
        # Without output, the code failed.
        return () if OPEN.title in _titles(step.uses) else _opening(heard)
    if part["whole"]:
        return ()
    mine, alone = f"{KEYS}{step.agent}", step.team == SOLO
    written = {use.arguments.get("name") for use in used if use.name == "write_artifact"}
    if part["keys"] and not alone and mine not in written and "write_artifact" in heard.tool_names():
        about = "what the codes and units of my part mean"
        return (call("write_artifact", name=mine, content=json.dumps(part["keys"]), description=about),)
    others = [name for name in step.facts.get("readable", []) if name.startswith(KEYS) and name != mine]
    if not part["readings"] or not (others or alone) or RESTORE in _titles(step.uses):
        return ()
    unread = tuple(call("read_artifact", name=name) for name in others if step.read(name) is None)
    if unread:
        return unread
    received = [keys for name in others if (keys := _json(step.read(name) or ""))]
    code = guarded(f"received = {received!r}\ndf = restored(part, received)\nprint(df.shape)")
    return (run_cell(Cell(RESTORE, code)),)


def _opening(heard: Heard) -> tuple[DraftCall, ...]:
    half = replace(heard, max_tokens=heard.max_tokens and heard.max_tokens // 2)
    cells = [*parts_of(restoring(), {}, lambda cell: bool(fitting([run_cell(cell)], half))), OPEN]
    return tuple(map(run_cell, cells))


def _part(step: Step) -> Mapping[str, Any]:
    """The agent's keys of its part, and whether it holds readings; empty before its first look."""
    printed = [use.result for use in (*step.before, *step.uses) if use.name == "run_code"]
    return next((found for text in printed for found in printed_findings(text) if "keys" in found), {})


def _titles(uses: tuple[Use, ...]) -> set[str]:
    return {str(use.arguments.get("description")) for use in uses if use.name == "run_code"}


def _json(text: str) -> dict[str, Any]:
    try:
        keys = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except ValueError:
        return {}
    return keys if isinstance(keys, dict) else {}
