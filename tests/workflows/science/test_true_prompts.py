"""Each sentence of a prompt is true where it stands: what the templates say is held against what runs do."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from labmates.agents.facts import FACTS, GIVEN, holds, marked, true_sentences
from labmates.agents.organisation import Organisation
from labmates.agents.organisation_files import find_organisation
from labmates.agents.prompts import TEXTS
from labmates.agents.steps import STEPS, find_step
from labmates.api import arun
from labmates.budgets.tokens import text_of
from labmates.models.scripted.base import Draft, Heard
from labmates.models.scripted.base import call as tool
from labmates.records.events import LLMCallEvent
from labmates.studies.result import Run
from tests.support.puppet import agent_of, dutiful, puppet

OWN = {name: text for kind in map(find_step, STEPS) for name, text in kind.prompts.items()}
TEMPLATES = {**TEXTS, **OWN}
PUBLISHED = find_organisation("published").prompts
KINDS = {"solo": "alone", "independent": "apart", "pipeline": "teams"}
"""Organisations that are not one group."""
VALUE = re.compile(r"(> )?(\$\w+)*")
"""A line of values alone, which the state of the lab fills in."""


@pytest.mark.parametrize("name", [*TEMPLATES, *(f"published/{name}" for name in PUBLISHED)])
def test_each_sentence_of_a_template_names_the_fact_that_makes_it_true(name: str) -> None:
    text = TEMPLATES[name] if name in TEMPLATES else PUBLISHED[name.removeprefix("published/")]
    for line in text.replace("\\\n", "").split("\n"):
        *_, (rest, _) = marked(line)
        assert VALUE.fullmatch(rest), f"{name}: '{rest}' names no fact"


def test_each_fact_makes_a_sentence_true() -> None:
    text = "\n".join(TEMPLATES.values())
    assert [name for name in (*FACTS, *GIVEN) if not re.search(rf"[{{, !]{name}[}},]", text)] == []


def test_a_sentence_is_left_out_with_its_line_and_users_need_no_marks() -> None:
    text = "You lead. {leads} You write. {writes}\n\n{unknown} Free text.\n\nAlone. {alone}\n\nEnd."
    assert true_sentences(text, frozenset({"writes"})) == "You write.\n\n{unknown} Free text.\n\nEnd."
    assert not holds("leads, !alone", frozenset({"leads", "alone"}))


@dataclass(frozen=True)
class Case:
    """A condition of a run, and what is said there to whom."""

    organisation: str | Organisation
    more: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """How its seats stand to each other."""
        if self.more.get("arm") in ("oracle", "restricted"):
            return "alone"
        if self.more.get("arm") == "mute":
            return "apart"
        return KINDS.get(getattr(self.organisation, "name", str(self.organisation)), "group")


def pipeline_of_one() -> Organisation:
    """Four teams of one seat each."""
    pipeline = find_organisation("pipeline")
    return pipeline.of_size(1).model_copy(update={"size": 1, "flow": pipeline.flow[:3] + pipeline.flow[-1:]})


def remembering(name: str) -> Organisation:
    """An organisation in which each seat has one conversation, and one in which none has."""
    found = find_organisation(name)
    memory = "step" if name == "hybrid" else "conversation"
    teams = {key: team.model_copy(update={"memory": memory}) for key, team in found.teams.items()}
    return found.model_copy(update={"teams": teams})


NAMES = ("pipeline", "solo", "independent", "centralised", "decentralised", "hybrid", "blackboard")
SEEN = ("full", "team", "hidden")
SPLIT = {"evidence": "split:1"}
QUICK = [
    *(Case(name, {"visibility": SEEN[place % 3]}) for place, name in enumerate(NAMES)),
    Case("decentralised", {**SPLIT, "theory_of_mind": True}),
    Case("pipeline", {**SPLIT, "arm": "mute"}),
]
REST = [
    *(Case(name, {"visibility": seen}) for name, seen in itertools.product(NAMES, SEEN)),
    *(Case(name, SPLIT) for name in NAMES if name != "solo"),
    *(Case(name, {**SPLIT, "arm": "mute"}) for name in NAMES if name != "solo"),
    *(Case("solo", {**SPLIT, "arm": arm}) for arm in ("oracle", "restricted")),
    *(Case(remembering(name), {"theory_of_mind": True}) for name in ("pipeline", "hybrid")),
    Case("pipeline", {"team_size": 3, "theory_of_mind": True}),
]


WRITES = re.compile(r"[Yy]ou write `(\w+)`")


@pytest.mark.parametrize("case", QUICK, ids=str)
async def test_what_a_prompt_says_is_what_happens(tmp_path: Path, case: Case) -> None:
    assert await faults(tmp_path, case) == []


@pytest.mark.slow("tests/workflows/science/test_true_prompts.py")
@pytest.mark.parametrize("case", REST, ids=str)
async def test_what_a_prompt_says_is_what_happens_everywhere(tmp_path: Path, case: Case) -> None:
    assert await faults(tmp_path, case) == []


async def played(case: Case, play: Callable[[Heard], Draft], folder: Path) -> Run:
    """Run a condition with an own player."""
    with puppet(play) as model:
        values: dict[str, Any] = {"task": "anomaly", "model": model, "organisation": case.organisation, **case.more}
        store = f"sqlite:///{folder}/runs.db"
        [run] = await arun("science", store=store, settings={"sandbox": "unsafe-local"}, difficulty="easy", **values)
    assert run.status == "completed"
    return run


async def faults(folder: Path, case: Case) -> list[str]:
    """Run a condition; each sentence that a seat is told though it is false there, or is not told though it is true."""
    heard: dict[str, list[tuple[str, str]]] = {}

    def play(call: Heard) -> Draft:
        told = [text_of(m.content) for m in call.messages if m.type in ("system", "human")]
        heard.setdefault(agent_of(call), []).append((told[0], told[-1]))
        return dutiful(call)

    run = await played(case, play, folder)
    calls = [event for event in run.events if isinstance(event, LLMCallEvent)]
    known = World(case, [call.step.split("/")[:4] for call in calls])
    found = []
    for seat, told in heard.items():
        written = {name for _, order in told for name in re.findall(r"^# Step: write the artifact `(\w+)`", order)}
        for system, order in told:
            found += [f"{seat} never writes {name}" for name in {*WRITES.findall(order)} - written]
            step = order.removeprefix("# Step: ").partition("\n")[0].split(",")[0].split(" the artifact")[0]
            found += [f"{seat}, {step}: {fault}" for fault in known.faults(seat, step, system, order)]
    return list(dict.fromkeys(found))


ROWS = [  # what was false or missing once: a condition, what some order says, and what no text says
    (Case("pipeline", {}), "others spend theirs at the same time", "likely to cost"),
    (Case("pipeline", {}), "## Artifacts of others\n=== dataset_description ===", "no agent sees them"),
    (Case("pipeline", {}), "In the folder `in` you find: `in/dataset_description.md`, `in/clean.py`", "none yet"),
    (
        Case("pipeline", {}),
        "each of at most 4096 tokens, reasoning included",
        "Your work begins now: reply with one call of run_code, for example {}",
    ),
    (
        Case("pipeline", {}),
        "findings stand as you stated them last: call state_findings only to change them",
        "(no plan)",
    ),
    (Case("decentralised", SPLIT), "before peer_1 writes `final_paper`", "The plan:"),
    (Case("decentralised", SPLIT), "Peer_1 writes `final_paper` in the last phase", "know of each other's work only"),
    (Case("decentralised", SPLIT), "you see their work after this step, not before", "leads the team"),
    (Case("centralised", SPLIT), "Python session of its own with its part of the data", "you see their work"),
    (
        Case("independent", {}),
        "All researchers draw on one pool of $1.0000. Those who work at the same time",
        "teammate",
    ),
    (Case("hybrid", {}), "Members speak in turn, each once in a round", "[coordinator]: "),
    (Case("independent", {}), "- `final_paper`, which joins the reports of all", "write `final_paper`"),
    (Case("solo", {}), "call mark_complete; nobody else reads its summary", "hand over"),
    (Case("solo", {}), "Next you write `final_paper` in this same conversation", "your team"),
]


@pytest.mark.parametrize(("case", "said", "unsaid"), ROWS, ids=str)
async def test_what_was_false_once_is_true(tmp_path: Path, case: Case, said: str, unsaid: str) -> None:
    texts: list[str] = []

    def play(call: Heard) -> Draft:
        texts.extend(text_of(m.content) for m in call.messages if m.type != "ai")
        if agent_of(call) == "data_lead" and "# Step: work" in texts[-1]:
            code = "open('out/clean.py', 'w').write('def clean(df): return df')"
            return Draft("", (tool("run_code", code=code), tool("state_findings"), tool("mark_complete", summary="3")))
        return dutiful(call)

    await played(case, play, tmp_path)
    assert any(said in text for text in texts)
    assert not any(unsaid in text for text in texts)


async def test_an_artifact_that_is_revised_in_a_later_phase_is_no_result_yet(tmp_path: Path) -> None:
    orders: list[str] = []

    def play(call: Heard) -> Draft:
        orders.append(text_of(call.messages[-1].content))
        return dutiful(call)

    reviewed = find_organisation(str(Path(__file__).parents[3] / "examples/organisations/reviewed.yaml"))
    await played(Case(reviewed, {}), play, tmp_path)
    first, *_, last = (order for order in orders if order.startswith("# Step: write the artifact"))
    assert "The group's work of this phase is done." in first
    assert "Its newest version is the result of the project." in first
    assert "The group's work is done." in last
    assert "It is the result of the project." in last


PROMPTS = {"plan": ("plan",), "work": ("work",), "deliberation": ("deliberate",), "write": ("write",), "bid": ("bid",)}


class World:
    """What is known of a run from its record and its condition, without the lab's own facts."""

    def __init__(self, case: Case, calls: list[list[str]]) -> None:
        self.case, self.calls = case, calls
        self.teams = list(dict.fromkeys(team for team, *_ in calls))
        self.team_of = {seat: team for team, _, seat, _ in calls}

    def facts(self, seat: str) -> dict[str, bool]:
        """What holds for a seat in the whole run."""
        team, kind = self.team_of[seat], self.case.kind
        planners = {who for _, _, who, label in self.calls if label == "plan"}
        mates = {who for who, its in self.team_of.items() if its == team} - {seat}
        writers = {who for its, _, who, label in self.calls if label == "write" and its == team}
        together = bool(mates) and kind != "apart"
        return {
            **{name: name == kind for name in ("teams", "group", "apart", "alone")},
            "budget": self.case.more.get("visibility") != "hidden",
            "divided": "evidence" in self.case.more and self.case.more.get("arm") != "oracle",
            "merged": kind == "apart",
            "mates": together,
            "leads": together and seat in planners,
            "led": together and seat not in planners and bool(planners & mates),
            "writes": writers == {seat} and kind != "apart",
            "reads": together and not (self.case.organisation == "centralised" and seat != "coordinator"),
            "last": team == self.teams[-1],
            "hands_on": kind == "teams" and team != self.teams[-1],
            "several_phases": len({phase for its, phase, *_ in self.calls if its == team}) > 1,
        }

    def faults(self, seat: str, step: str, system: str, order: str) -> Iterator[str]:
        """The sentences of a system prompt and an order that don't fit."""
        facts = self.facts(seat)
        prompts = {"system": system, "role": system, "budget_rules": system, "data_set": system}
        prompts |= dict.fromkeys(PROMPTS.get(step, ()), order)
        prompts |= {"code_hint": order} if step == "work" and self.team_of[seat] != "writing" else {}
        for prompt, text in prompts.items():
            for sentence, marks in sentences(prompt).items():
                decided = [verdict(mark, facts) for mark in marks]
                is_told = re.search(sentence, text) is not None
                if is_told and not any(each is not False for each in decided):
                    yield f"told in vain: {sentence} {marks}"
                if not is_told and any(each is True for each in decided):
                    yield f"not told: {sentence} {marks}"


def verdict(mark: str, facts: Mapping[str, bool]) -> bool | None:
    """Whether a mark holds; None if that is not known."""
    names = [name for name in mark.split(", ") if name != "always"]
    known = {name: facts.get(name.lstrip("!")) for name in names}
    signs = [None if fact is None else fact != name.startswith("!") for name, fact in known.items()]
    return False if False in signs else None if None in signs else True


@cache
def sentences(prompt: str) -> dict[str, list[str]]:
    """The sentences of a template as patterns, each with all marks that it has."""
    found: dict[str, list[str]] = {}
    for line in TEXTS[prompt].split("\n"):
        for text, mark in marked(line)[:-1]:
            words = re.sub(r"\\\$\w+", ".*", re.escape(text.strip().replace("$$", "$")))
            if len(re.sub(r"\$\w+", "", text).strip()) > 12:
                found.setdefault(words, []).append(mark)
    return found
