"""Runs for the viewer: a real one of each kind, made in seconds, and records as large or as hostile as a test needs."""

from __future__ import annotations

import json
import runpy
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from labmates.api import run
from labmates.condition_types import Kind
from labmates.models.scripted.base import Draft, Heard, call
from labmates.records.bodies import Bodies
from labmates.records.events import ChargeEvent, Event, LLMCallEvent, MessageEvent, PhaseEvent, ToolCallEvent
from labmates.records.run import RunRecord, Usage, new_run_id
from labmates.records.store import Store
from labmates.studies.settings import RunSettings
from labmates.workflows.protocol.experiment import EXPERIMENTS
from tests.support.plays import busy_without_code
from tests.support.plugins import ROOT
from tests.support.puppet import agent_of, dutiful, puppet, step_of, turn_of
from tests.support.shared import keeping

FIGURE = """import matplotlib.pyplot as plt
plt.plot([1, 3, 2])
plt.show()
open("out/notes.txt", "w").write("kept")
print(len(df))"""
STATED: dict[str, Any] = {"events": []}
GAME: dict[str, Any] = {"model": "scripted:random", "group_size": 2, "rounds": 2}


@dataclass(frozen=True)
class OtherKind:
    """A run of a kind of another package: its condition, made with files in a folder, and what tests say of it.

    `told` is what its page tells, apart by bars; `forged` changes its record, and `field` is what a replay finds then.
    """

    condition: Callable[[Path], Mapping[str, Any]]
    told: str
    forged: Mapping[str, Any]
    field: str


def other_kinds() -> dict[str, OtherKind]:
    """The kinds of the installed packages beside the core, from ``recorded_kinds.py`` among their tests."""
    files = sorted(ROOT.glob("packages/*/tests/recorded_kinds.py"))
    kinds = {name: kind for path in files for name, kind in runpy.run_path(str(path))["KINDS"].items()}
    return {name: kind for name, kind in kinds.items() if name in EXPERIMENTS}


@dataclass(frozen=True)
class Recorded:
    """A store with a run of each kind, and the ids of these."""

    store: Store
    ids: Mapping[str, str]


def storied(heard: Heard) -> Draft:
    """Use every part of the lab, with code in one place, and a paper with a block of findings that are stated, too."""
    if step_of(heard) == "work" and agent_of(heard) == "data_lead" and turn_of(heard) == 0:
        return Draft("I look at the data.", (call("run_code", code=FIGURE),))
    if step_of(heard) == "work":
        return busy_without_code(heard)
    draft = dutiful(heard)
    if draft.calls and json.loads(draft.calls[-1].arguments).get("name") == "final_paper":
        paper = f"# Results\nThere is **nothing**.\n\n```findings\n{json.dumps(STATED)}\n```\n"
        stated = call("state_findings", **STATED)
        return replace(draft, calls=(stated, call("write_artifact", name="final_paper", content=paper, description="")))
    return busy_without_code(heard)


def every_kind() -> Recorded:
    """A real run of each kind; in a thread of its own, since the caller's may have a browser open.

    They are made once a checkout; the model of the lab's run is known to each, since some judge or replay it.
    """
    with puppet(storied) as model, keeping("kinds") as folder:
        url, ids = f"sqlite:///{folder}/runs.db", folder / "ids.json"
        if not ids.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            with ThreadPoolExecutor(1) as pool:
                made = pool.submit(_every_kind, folder, url, model).result()
            ids.write_text(json.dumps(made))
    return Recorded(Store(url, read_only=True), json.loads(ids.read_text()))


def _every_kind(folder: Path, url: str, model: str) -> dict[str, str]:
    settings = RunSettings(sandbox="unsafe-local", processes=1)
    played: dict[str, tuple[str, dict[str, Any]]] = {
        "game": ("game", {**GAME, "game": "common-pool-sanctions", "deliberation": True}),
        "contract": ("dilemma", {"game": "prisoners", "mechanism": "contract"}),
        "repetition": ("dilemma", {"game": "stag-hunt", "mechanism": "repetition", "terms": {"rounds": 2}}),
        "tournament": (
            "tournament",
            {"structure": "sa", "teams": 2, "team_size": "1", "rounds": 3, "model": "scripted:random"},
        ),
        **{name: (name, dict(kind.condition(folder))) for name, kind in other_kinds().items()},
    }
    ids = {}
    for name, (kind, condition) in played.items():
        if kind == "dilemma":
            condition |= {"entrants": ["scripted:random", "scripted:equilibrium"]}
        [ended] = run(Kind(kind), store=url, settings=settings, **condition)
        assert ended.status == "completed", ended.error
        ids[name] = ended.id
    [lab] = run("science", store=url, settings=settings, task="anomaly", difficulty="easy", model=model)
    assert lab.status == "completed", lab.error
    ids["science"] = lab.id
    store = Store(url)
    ids["plugin"] = add(store, "somebody's", [PhaseEvent(step="1", team="crew", status="started", number=0)], Bodies())
    ids["long"] = long_run(store, 250)
    store.close()
    return ids


def copy_of(recorded: Recorded, folder: Path) -> Store:
    """Return a copy of the store that can be written."""
    assert recorded.store.sqlite_path is not None
    return Store(f"sqlite:///{shutil.copy(recorded.store.sqlite_path, folder / 'runs.db')}")


def a_record(kind: str = "science", **changes: Any) -> RunRecord:
    """Return the record of a run that nobody has executed."""
    condition = {"task": "anomaly", "budget": "1"}
    record = RunRecord(new_run_id(), kind, "k", 0, 7, condition, ["scripted:diligent"], status="completed")
    return replace(record, **{"started": 1_000.0, "usage": Usage(llm_calls=1), **changes})


def add(store: Store, kind: str, events: Sequence[Event], bodies: Bodies, **changes: Any) -> str:
    """Enter a run with its events and return its id."""
    record = a_record(kind, **changes)
    store.create(record, events=events, bodies=bodies.take_new())
    return record.id


def long_run(store: Store, events: int, *, text: Callable[[int], str] = lambda at: f"said number {at}") -> str:
    """Enter a run of the lab with so many events, as calls, charges, tool calls and talk follow each other."""
    bodies, told = Bodies(), list[Event]()
    told.append(PhaseEvent(at=1_000.0, step="data/0/phase", team="data", status="started", number=0))
    prompt = bodies.keep({"role": "system", "content": "You are an agent. " * 100})
    at = 0
    while len(told) < events:
        at += 1
        who: dict[str, Any] = {
            "at": 1_000.0 + at,
            "step": f"data/0/data_lead/work/{at}",
            "team": "data",
            "agent": "data_lead",
        }
        said = bodies.keep(text(at))
        reply = bodies.keep({"role": "assistant", "content": f"reply {at}"})
        asked = bodies.keep({"code": f"print({at})"})
        told += [
            LLMCallEvent(
                **who, model="m", messages=[prompt], reply=reply, finish="stop", input_tokens=9, output_tokens=2, seed=1
            ),
            ChargeEvent(**who, amount=20),
            ToolCallEvent(**who, tool="run_code", arguments=asked, result=said, ok=True, status="ok"),
            MessageEvent(**who, to="data", text=said),
        ]
    return add(store, "science", told[:events], bodies, budget={"total": "1", "spent": "0.2", "remaining": "0.8"})
