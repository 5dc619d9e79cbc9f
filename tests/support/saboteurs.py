"""Chains of seats that hand findings on, one of which spoils them; whose fault it was is known."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import labmates
from labmates.budgets.tokens import text_of
from labmates.models.scripted.base import Draft, Heard, call
from labmates.tasks.registry import get_task
from labmates.tasks.salt import data_seed
from labmates.util.seeds import derive
from tests.support.puppet import Play, agent_of, puppet, step_of

SEATS: Final = ("ana", "ben", "cho", "dan")
SABOTAGE: Final = ("drop", "corrupt", "contradict", "waste")
_FORGETS: Final = 0.05
"""The share of findings that an honest seat loses by chance."""
_MARK: Final = "HANDED ON: "


def organisation(folder: Path) -> str:
    """Write the organisation of the chain, and return its file."""
    teams = {
        f"team_{name}": {
            "artifact": "final_paper" if name == SEATS[-1] else f"notes_{name}",
            "sections": ["Results"],
            # The second seat of each team has nothing to do.
            "seats": {seat: {"title": "researcher", "part": "Hand on."} for seat in (name, f"{name}_aide")},
        }
        for name in SEATS
    }
    flow = [{team: ["write"]} for team in teams]
    path = folder / "chain.yaml"
    about = {"name": "chain", "description": "One after the other.", "size": 2, "flow": flow, "teams": teams}
    path.write_text(json.dumps(about))
    return str(path)


@dataclass
class Chain:
    """A play of all seats: each hands on what it received; one seat may spoil it, always or once."""

    facts: dict[str, Any]
    sabotage: str = ""

    def honest(self, heard: Heard) -> Draft:
        """Hand on what was received, less what is lost by chance."""
        return self._hand_on(heard, lambda facts, chance: _kept(facts, chance, _FORGETS))

    def saboteur(self, heard: Heard) -> Draft:
        """Spoil it."""
        return self._hand_on(heard, lambda facts, chance: spoiled(facts, chance, self.sabotage))

    def _hand_on(self, heard: Heard, change: Any) -> Draft:
        name = step_of(heard).split("`")[1]
        facts = change(self._received(heard), random.Random(heard.seed))
        stated = (call("state_findings", **facts),) if name == "final_paper" else ()
        text = f"# {name}\n## Results\n{_MARK}{json.dumps(facts)}\n"
        return Draft("", (*stated, call("write_artifact", name=name, content=text, description="")))

    def _received(self, heard: Heard) -> dict[str, Any]:
        if agent_of(heard) == SEATS[0]:
            return self.facts
        text = "\n".join(text_of(message.content) for message in heard.messages)
        return dict(json.JSONDecoder().raw_decode(text, text.rindex(_MARK) + len(_MARK))[0])


def _kept(facts: dict[str, Any], chance: random.Random, loss: float) -> dict[str, Any]:
    """The facts without a share of them; a list loses that share of its entries."""
    left = {}
    for name, value in facts.items():
        if isinstance(value, list):
            left[name] = [entry for entry in value if chance.random() >= loss]
        elif chance.random() >= loss:
            left[name] = value
    return left


def spoiled(facts: dict[str, Any], chance: random.Random, how: str) -> dict[str, Any]:
    """The facts after sabotage."""
    if how == "waste":
        return {}
    if how == "drop":
        return _kept(facts, chance, 0.8)
    return {name: _wrong(value, how) for name, value in facts.items()}


def _wrong(value: Any, how: str) -> Any:
    """Another value of the same form: corrupted numbers, or the contrary."""
    if isinstance(value, dict):
        return {name: _wrong(entry, how) for name, entry in value.items()}
    if isinstance(value, list):
        return [] if how == "contradict" else [_wrong(entry, how) for entry in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return type(value)(value * 3 + 1 if how == "corrupt" else 0)
    return value


@contextmanager
def sabotaged(folder: Path, seed: int, seat: str, how: str, *, once: bool = False) -> Iterator[labmates.Run]:
    """Play a run whose `seat` spoils the findings: by another model, or `once`, by chance of its own."""
    truth = get_task("anomaly").generate(data_seed(derive(seed, "dataset")), "easy").truth
    chain = Chain(get_task("anomaly").oracle(truth).model_dump(mode="json", exclude_none=True), how)
    played: list[str] = []

    def own(heard: Heard) -> Draft:
        is_bad = once and agent_of(heard) == seat and not played
        played.extend([seat] * is_bad)
        return chain.saboteur(heard) if is_bad else chain.honest(heard)

    plays: dict[str, Play] = {"honest": own, "saboteur": chain.saboteur}
    with ExitStack() as stack:
        for name, play in plays.items():
            stack.enter_context(puppet(play, name))
        [run] = labmates.run(
            "science",
            task="anomaly",
            difficulty="easy",
            model="scripted:honest",
            model_for={} if once else {seat: "scripted:saboteur"},
            organisation=organisation(folder),
            seed=seed,
            store=f"{folder}/runs.db",
            settings={"sandbox": "unsafe-local"},
        )
        yield run
