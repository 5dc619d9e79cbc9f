"""What a program on a seat may not do is contained, told in the record, and paid by nobody else."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from labmates.agents.organisation_files import find_organisation
from labmates.budgets.tokens import estimate_tokens
from labmates.records.bodies import Bodies
from labmates.records.events import ArtifactEvent, ChargeEvent, LLMCallEvent, WarningEvent
from labmates.records.run import RunRecord
from labmates.sandboxes.image.names import image_tag
from tests.support.puppet import dutiful
from tests.support.seats import listing_usable_tools
from tests.workflows.science.test_science_lab import Lab

AGENT = Path(__file__).parents[1] / "seat_agent.py"
SECRET = "sk-the-secret-of-the-host"
ATTACKS = {
    "connect": "",
    "forge": "",
    "smuggle": "",
    "kernel": "",
    "fork": "",
    "steal": "somebody asked the seat's server with a key that is not the seat's; it was refused",
    "hang": "no reply within 5 s, and was ended",
    "die": "ended with exit status 7",
    "print": "ended with exit status 1. ",
    "eat": "took more memory than a sandbox has",
    "flood": "more than 16 tools at once; the rest were refused",
}
IN_DOCKER, DOCKER = "docker", pytest.mark.needs("docker")
WRITE = "solo/0/researcher/write/0"
"""The step in which the lead reads what the guest reported and left in artifacts."""


@dataclass
class Spent:
    """What a seat paid by step, and the prompt of its step of writing."""

    charges: dict[str, int]
    prompt: str

    @property
    def before_reading(self) -> dict[str, int]:
        """The charges until the guest's work is read."""
        return {step: amount for step, amount in self.charges.items() if step != WRITE}

    @property
    def own_words(self) -> str:
        """The prompt without what the guest reported and left, and without what the team has spent."""
        return re.sub(r"=== guest ===\n.*\nBudget: [^\n]*\n", "", self.prompt, flags=re.DOTALL)


PLAIN: dict[str, Spent] = {}
"""What each seat spends where nobody attacks."""


@pytest.fixture(scope="module", autouse=True)
def same_tools() -> Iterator[None]:
    with listing_usable_tools():
        yield


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path)
    yield lab
    lab.store.close()


def beside_a_guest(**guest: Any) -> dict[str, Any]:
    """A lead, who works and writes, and a guest at its side."""
    solo = find_organisation("solo").model_dump()
    team = solo["teams"]["solo"]
    seats = {**team["seats"], "guest": {"title": "guest", "part": "Help.", **guest}}
    flow = [{"team": "solo", "steps": [{"do": "work"}, {"do": "write"}]}]
    return {**solo, "name": "guests", "size": 2, "flow": flow, "teams": {"solo": {**team, "seats": seats}}}


def spent_by(lab: Lab, run: RunRecord, agent: str) -> Spent:
    events, bodies = [event for event in lab.events(run) if event.agent == agent], lab.bodies(run)
    charges = {event.step: event.amount for event in events if isinstance(event, ChargeEvent) and event.amount}
    calls = (event for event in events if isinstance(event, LLMCallEvent) and event.step == WRITE)
    return Spent(charges, next((str(bodies[event.messages[-1]]["content"]) for event in calls), ""))


@pytest.mark.parametrize(
    "image", [pytest.param("", marks=pytest.mark.needs("bubblewrap")), pytest.param(IN_DOCKER, marks=DOCKER)]
)
@pytest.mark.parametrize("attack", ATTACKS)
async def test_an_attack_of_a_seat_is_contained_told_and_paid_by_itself(
    attack: str, image: str, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    guest = {
        "command": [sys.executable, str(AGENT), "http", attack],
        "seconds": 5 if attack == "hang" else 300,
        "image": image_tag() if image else "",
    }
    prices = {"tool_call": "0.001"}
    if not PLAIN:
        plain = await lab.play(dutiful, organisation=beside_a_guest(), prices=prices, repair_turns=0)
        PLAIN.update({seat: spent_by(lab, plain, seat) for seat in ("researcher", "guest")})
    run = await lab.play(dutiful, organisation=beside_a_guest(**guest), prices=prices, repair_turns=0)
    assert run.status == "completed"
    assert any(isinstance(event, ArtifactEvent) and event.name == "final_paper" for event in lab.events(run))
    warnings = [event.text for event in lab.events(run) if isinstance(event, WarningEvent)]
    assert ATTACKS[attack] in "\n".join(warnings)
    lead, alone = spent_by(lab, run, "researcher"), PLAIN["researcher"]
    assert lead.charges.keys() == alone.charges.keys()
    assert lead.before_reading == alone.before_reading
    assert lead.own_words == alone.own_words
    # The lead pays for what it reads of a guest's work, as of any teammate's, at $0.50 a million tokens.
    read = estimate_tokens(lead.prompt) - estimate_tokens(alone.prompt)
    assert lead.charges[WRITE] - alone.charges[WRITE] == pytest.approx(read / 2, abs=1)
    if attack in ("connect", "forge", "steal", "kernel", "fork"):
        guests, members = spent_by(lab, run, "guest").charges, PLAIN["guest"].charges
        assert sorted(guests.values()) == sorted(members.values())  # the steps of a seat's calls have other names
    stored = lab.store.bodies(run.id)
    bodies = Bodies(stored)
    record = json.dumps([bodies[body.number] for body in stored], default=str)
    assert SECRET not in record
    assert not re.search(r"lm-[\w-]{32}", record)
    assert ("[key]" in record) == (attack == "smuggle")
