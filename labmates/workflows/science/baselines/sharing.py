"""The baseline that shares the keys of its part of divided evidence, by every channel that it has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage

from labmates.agents.workspace import MOST_MESSAGE_CHARS, MOST_PLAN_CHARS
from labmates.budgets.tokens import estimate_tokens, text_of
from labmates.models.scripted.base import Draft, DraftCall, Heard, call
from labmates.tasks.analysis import printed_findings
from labmates.workflows.science.baselines.cells import WORK, Cell, guarded, restoring
from labmates.workflows.science.baselines.diligent import Diligent, closing_draft, work_draft
from labmates.workflows.science.baselines.prompt import SOLO, Step, Use, read_step
from labmates.workflows.science.baselines.working import REQUESTS, fitting, run_cell

Keys = dict[str, dict[str, Any]]

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
_ASK: Final = "Please restore the table with these keys, analyse it, and hand over what you find:"
_TASK: Final = "Fit the model to the restored table, and forecast what was not fitted."
_SAID_IN: Final = {"mark_complete": "summary", "send_message": "content"}
"""The argument of a call that others read."""
_FORM = re.compile(r'\{"(?:names|blocks|scales|baselines)": \{')


class Sharing(Diligent):
    """A `Diligent` agent that first shares its keys, and restores the table with others' keys."""

    baseline = "sharing"
    description = "Does as diligent does; with divided evidence it hands over its keys and uses those of the others."

    def compose(self, heard: Heard) -> Draft:
        """The next move; what others hear of it carries keys: a plan all that the lead knows, else the agent's own."""
        step = read_step(heard.messages)
        works = step.declared is not None and step.declared.does == "work"
        draft = self.work(step, heard) if works else super().compose(heard)
        if step.kind == "bid":
            return Draft(_bid(step, heard) or draft.content)
        if step.declared is None or not isinstance(draft.content, str):
            return draft
        if step.declared.assigns:
            return Draft(_with_keys(draft.content, _untold(known(heard.messages), heard), heard, MOST_PLAN_CHARS))
        keys = _untold(_part((*step.before, *step.uses)).get("keys", {}), heard)
        if step.declared.tells:
            return Draft(_with_keys(draft.content, keys, heard, MOST_MESSAGE_CHARS))
        if not keys or "write_artifact" in heard.tool_names():
            return draft
        return replace(draft, calls=tuple(_carrying(made, keys, heard) for made in draft.calls))

    def work(self, step: Step, heard: Heard) -> Draft:
        """Exchange keys; analyse the restored data, or close the task if there are none yet."""
        if "run_code" not in heard.tool_names():
            return work_draft(step, heard)
        if step.turns - step.replies > 1 and (calls := fitting(_exchange(step, heard), heard)):
            return Draft(calls=calls)
        if _part((*step.before, *step.uses)).get("whole"):
            return work_draft(step, heard)
        if any(title.startswith(RESTORE) for title in _titles(step.uses)):
            # Of the unknown roles only this one has the whole table.
            facts = step.facts if step.agent in WORK else {**step.facts, "task": _TASK}
            return work_draft(replace(step, facts=facts), heard)
        return closing_draft(step, heard)


def _exchange(step: Step, heard: Heard) -> tuple[DraftCall, ...]:
    """The next calls that find, share, read or use keys; empty if all is done."""
    used = (*step.before, *step.uses)
    part = _part(used)
    if not part:
        # Without output, the code failed.
        return () if OPEN.title in _titles(step.uses) else (run_cell(restoring()), run_cell(OPEN))
    if part["whole"]:
        return ()
    mine, alone = f"{KEYS}{step.agent}", step.team == SOLO
    written = {use.arguments.get("name") for use in used if use.name == "write_artifact"}
    if part["keys"] and not alone and mine not in written and "write_artifact" in heard.tool_names():
        about = "what the codes and units of my part mean"
        return (call("write_artifact", name=mine, content=json.dumps(part["keys"]), description=about),)
    if not part["readings"]:
        return _request(step, part["keys"], heard)
    others = [name for name in step.facts.get("readable", []) if name.startswith(KEYS) and name != mine]
    if unread := tuple(call("read_artifact", name=name) for name in others if step.read(name) is None):
        return unread
    keys = known(heard.messages)
    title = _title(keys)
    if title in _titles(used) or not (alone or keys != _merged([part["keys"]])):
        return ()
    code = guarded(f"received = {[keys]!r}\ndf = restored(part, received)\nprint(df.shape)")
    return (run_cell(Cell(title, code)),)


def _request(step: Step, keys: Keys, heard: Heard) -> tuple[DraftCall, ...]:
    """The lead's single request to the previous team, whose readings its keys may explain."""
    owners = [*step.owners.values()]
    before = owners[: owners.index(step.team)] if step.team in owners else []
    if not before or REQUESTS[0] not in heard.tool_names() or not step.leads or step.request:
        return ()
    if any(use.name == REQUESTS[0] for use in step.uses):
        return ()
    return (call(REQUESTS[0], target_team=before[-1], request=f"{_ASK} {json.dumps(keys)}"),)


def _bid(step: Step, heard: Heard) -> str:
    """A bid to restore the table, below that of an agent who has not worked yet; empty without new keys."""
    part, keys = _part(step.before), known(heard.messages)
    posted = [name for name in step.facts.get("readable", []) if name.startswith(KEYS)]
    read = [use.arguments.get("name") for use in step.before if use.name == "read_artifact"]
    new = any(name not in read for name in posted) or _title(keys) not in _titles(step.before)
    return f"6: {RESTORE}" if part.get("readings") and new and (posted or keys) else ""


def _part(used: Sequence[Use]) -> Mapping[str, Any]:
    """The agent's keys of its part, and whether it holds readings; empty before its first look."""
    printed = [use.result for use in used if use.name == "run_code"]
    return next((found for text in printed for found in printed_findings(text) if "keys" in found), {})


def _titles(uses: Sequence[Use]) -> set[str]:
    return {str(use.arguments.get("description")) for use in uses if use.name == "run_code"}


def _title(keys: Keys) -> str:
    return f"{RESTORE}, {sum(map(len, keys.values()))}"


def known(messages: Sequence[BaseMessage], kind: type[BaseMessage] = BaseMessage) -> Keys:
    """The keys in the texts of a conversation, of one kind of message: whoever wrote them, and by whatever channel."""
    return _merged(keys for message in messages if isinstance(message, kind) for keys in _keys_in(message))


def _keys_in(message: BaseMessage) -> Iterator[Keys]:
    text = text_of(message.content)
    for found in _FORM.finditer(text):
        try:
            yield json.JSONDecoder().raw_decode(text, found.start())[0]
        except ValueError:  # cut
            continue


def _merged(every: Any) -> Keys:
    merged: Keys = {}
    for keys in every:
        for kind, entries in keys.items():
            merged.setdefault(kind, {}).update(entries)
    return merged


def _untold(keys: Keys, heard: Heard) -> Keys:
    """The keys that an agent has not said in its conversation."""
    told = known(heard.messages, AIMessage)
    return {kind: {code: each[code] for code in each if code not in told.get(kind, {})} for kind, each in keys.items()}


def _with_keys(text: str, keys: Keys, heard: Heard, room: int) -> str:
    """A text with as many of the keys as fit into it."""
    said: Keys = {}
    best = text
    for kind, entries in keys.items():
        for code, key in entries.items():
            said.setdefault(kind, {})[code] = key
            longer = f"{text}\n{json.dumps(said)}"
            if len(longer) > room or estimate_tokens(longer) > (heard.max_tokens or room):
                return best
            best = longer
    return best


def _carrying(made: DraftCall, keys: Keys, heard: Heard) -> DraftCall:
    """A call whose text for others carries keys."""
    name = _SAID_IN.get(made.name)
    if name is None:
        return made
    arguments = json.loads(made.arguments)
    return call(made.name, **{**arguments, name: _with_keys(arguments[name], keys, heard, MOST_MESSAGE_CHARS)})
