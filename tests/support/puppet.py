"""A scripted model whose replies a test writes, registered under a name of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from labmates.budgets.tokens import text_of
from labmates.models.scripted import BASELINES
from labmates.models.scripted.base import Draft, Heard, ScriptedModel, call

Play = Callable[[Heard], Draft]


class Puppet(ScriptedModel):
    """Replies as its `play` says."""

    baseline: ClassVar[str] = "puppet"
    description: ClassVar[str] = "Replies as a test says."
    play: Play

    def compose(self, heard: Heard) -> Draft:
        """Return what the test wants."""
        return self.play(heard)


@contextmanager
def puppet(play: Play, name: str = "puppet") -> Iterator[str]:
    """Register a model, which is there until the test ends, and return its full name."""
    BASELINES.register(name, lambda: Puppet(play=play))
    yield f"scripted:{name}"


def step_of(heard: Heard) -> str:
    """Return the title line of the step that the model is asked for, for instance ``plan``."""
    for message in reversed(heard.messages):
        text = text_of(message.content)
        if message.type == "human" and text.startswith("# Step: "):
            return text.removeprefix("# Step: ").splitlines()[0]
    return ""


def turn_of(heard: Heard) -> int:
    """Return how many replies the model has given in this conversation."""
    return sum(message.type == "ai" for message in heard.messages)


def agent_of(heard: Heard) -> str:
    """Return the name of the agent that the model plays."""
    said = re.search(r"^You are .*\((\w+)\)\.$", text_of(heard.messages[0].content), re.MULTILINE)
    return said[1] if said else ""


def dutiful(heard: Heard) -> Draft:
    """Do what each step asks for, with the least effort."""
    step = step_of(heard)
    if step == "plan":
        prompt = text_of(heard.messages[-1].content)
        members = [line[2:].partition(":")[0] for line in prompt.splitlines() if line.startswith("- ") and ": " in line]
        return Draft("- look\n- think\n- write\n" + "\n".join(f"{name}: do your part" for name in members))
    if step == "work":
        return Draft("", (call("mark_complete", summary=f"{agent_of(heard)} is done"),))
    if step.startswith("deliberation"):
        return Draft("It went well. Nothing is doubtful.")
    name = step.split("`")[1] if "`" in step else "?"
    stated = (call("state_findings"),) if name == "final_paper" else ()
    return Draft("", (*stated, call("write_artifact", name=name, content=f"# {name}\nAll is said.", description="")))
