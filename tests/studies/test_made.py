"""Runs know with which prompts, rules and code they were made, and nobody mixes them unawares."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import labmates
from labmates.records.made import MixedRunsError, joined, mixtures_of
from labmates.records.store import Store
from labmates.studies import fork, made
from labmates.studies.audit import audit
from labmates.util import sources
from labmates.workflows.protocol.experiment import make_condition
from tests.support.command_line import Labmates

PACKAGE = Path(labmates.__file__).parent
LAB: dict[str, Any] = {"task": "ecology", "model": "scripted:silent"}
GAME: dict[str, Any] = {"game": "o-ring", "model": "scripted:random"}
STUDY = """
kind: game
models: [scripted:random]
fixed: {game: o-ring, rounds: 1, groups: 1}
grid: {framing: [standard, alternate]}
replicates: N
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Compute hashes anew after each test."""
    yield
    forget()


def forget() -> None:
    for cached in (sources._read, sources._texts, sources._file, made._hash):
        cached.cache_clear()


def changed(path: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The parts of a lab's and a game's run whose hashes differ after a word was added to a file."""
    conditions, read = [make_condition("science", LAB), make_condition("game", GAME)], Path.read_bytes
    before = [made.made_of(condition) for condition in conditions]
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda self: read(self) + b"\n# word" * (self == path))
        forget()
        after = [made.made_of(condition) for condition in conditions]
    forget()
    return {part for one, other in zip(before, after, strict=True) for part in one if one[part] != other[part]}


def test_a_hash_is_that_of_contents_wherever_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = set[str]()
    for place in ("here", "there"):
        folder = tmp_path / place / "hashed"
        (folder / "prompts").mkdir(parents=True)
        for name, text in (("__init__", ""), ("rules", "from hashed import words"), ("words", "import os"), ("no", "")):
            (folder / f"{name}.py").write_text(text)
        (folder / "prompts" / "ask.md").write_text("Ask.")
        with monkeypatch.context() as patch:
            patch.syspath_prepend(str(folder.parent))
            found.add(sources.source_hash(["hashed.rules"], lambda module: module.startswith("hashed.")))
        forget()
    assert len(found) == 1
    assert "hashed" not in sys.modules


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("agents/prompts/work.md", {"science", "step plan", "step work", "step talk", "step write", "game"}),
        ("workflows/games/prompts/decide.md", {"game", "scripted:random"}),
        ("workflows/science/steps/plan.py", {"step plan"}),
        ("tasks/ecology/data.py", {"task ecology"}),
        ("games/o_ring.py", {"game o-ring", "scripted:random"}),
        ("workflows/science/baselines/hasty.py", {"scripted:silent"}),
        *((path, set()) for path in ("viewer/app.py", "workflows/games/page.py", "models/connection.py")),
        *((path, set()) for path in ("tasks/anomaly/task.py", "judges/rubric.py")),
    ],
)
def test_what_a_run_rests_on_changes_its_hash_and_nothing_else_does(
    path: str, parts: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (PACKAGE / path).is_file()
    assert changed(PACKAGE / path, monkeypatch) == parts


def remade(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the game's rules be others from now on."""
    before = made.made_of
    for module in (made, fork):
        monkeypatch.setattr(module, "made_of", lambda condition: before(condition) | {"game o-ring": "0ther000"})


def test_a_run_that_goes_on_with_other_rules_knows_both() -> None:
    assert joined({"game": "a"}, {"game": "a"}) == {"game": "a"}
    assert joined({"game": "a"}, {"game": "b"}) == {"game": "a b"}
    assert joined(None, {"game": "b"}) == {"game": "unknown b"}


def test_a_study_goes_on_with_other_rules_only_if_told_and_everything_says_so(
    labmates: Labmates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mixed.yaml"
    file.write_text(STUDY.replace("N", "1"))
    assert labmates("study", "run", "mixed.yaml").code == 0
    rules = {"report": ["report", "mixed", "--out", "r.html"], "compare": ["compare", "--by", "framing"]}
    rules |= {"analyze": ["analyze", "contrasts"]}
    remade(monkeypatch)
    file.write_text(STUDY.replace("N", "2"))
    refused = labmates("study", "run", "mixed.yaml")
    assert (refused.code, "0ther000" in refused.err, "--allow-mixed" in refused.err) == (2, True, True)
    assert "2 planned" in labmates("study", "status").out
    assert labmates("study", "run", "mixed.yaml", "--allow-mixed").code == 0
    assert labmates("study", "run", "mixed.yaml").code == 0  # nothing is left to mix
    assert "made with different game o-ring (2 runs with" in labmates("study", "status").out
    assert len(labmates("study", "status", "--json").records[0]["mixed"]) == 1
    for name, command in rules.items():
        assert "game o-ring (2 runs with" in labmates(*command).err, name
        allowed = labmates(*command, "--allow-mixed")
        told = (tmp_path / "r.html").read_text() if name == "report" else allowed.out + allowed.err
        assert (allowed.code, "made with different game o-ring" in told) == (0, True), (name, allowed)


def test_a_run_that_has_not_begun_is_made_with_nothing_yet(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    [run] = labmates.run("game", store=url, **GAME)
    with Store(url) as store:
        begun = store.run(run.id)
        assert not mixtures_of([begun, replace(begun, status="running", made=None, chain="")])
        assert mixtures_of([begun, replace(begun, made=None)])


def test_a_begun_run_is_resumed_with_other_rules_only_if_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    [run] = labmates.run("game", store=url, **GAME)
    with Store(url) as store:
        whole = store.run(run.id)
        events, bodies = store.events(run.id)[:4], store.bodies(run.id)
        begun = replace(whole, id="0123456789", status="interrupted", invalid=None, metrics={}, digest=None)
        store.create(begun, events=events, bodies=bodies)
        remade(monkeypatch)
        with pytest.raises(MixedRunsError, match=r"the run '0123456789' .*game o-ring \(1 run with \w+, then 0ther000"):
            labmates.resume(["0123456789"], store=url)
        [resumed] = labmates.resume(["0123456789"], store=url, allow_mixed=True)
        assert resumed.status == "completed"
        assert store.run(resumed.id).made == joined(whole.made, {**(whole.made or {}), "game o-ring": "0ther000"})


def test_a_continuation_is_made_by_the_code_that_runs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    runs = [labmates.run("game", store=url, **GAME, framing=framing)[0] for framing in ("standard", "alternate")]

    def forked(number: int) -> list[labmates.Run]:
        return labmates.fork(runs[0].id, at=2, changes={"model": "scripted:cooperate"}, replicates=number, store=url)

    with monkeypatch.context() as patch:
        remade(patch)
        forks = forked(2)
    with Store(url) as store:
        assert {(store.run(each.id).made or {})["game o-ring"] for each in forks} == {"0ther000"}
    among_forks: Any = {"store": url, "by": ["model"], "where": [f"origin={runs[0].id}"]}
    assert not labmates.compare(**among_forks).warnings
    assert not labmates.compare(store=url, by=["framing"]).warnings, "forks are left out"
    forked(3)
    with pytest.raises(MixedRunsError, match=r"game o-ring \(4 runs with 0ther000, 2 runs with"):
        labmates.compare(**among_forks)
    [warning] = labmates.compare(**among_forks, allow_mixed=True).warnings
    assert "made with different game o-ring" in warning


def test_an_edit_of_what_a_run_was_made_with_is_found(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    [run] = labmates.run("game", store=url, **GAME)
    with Store(url) as store:
        assert [faults for _, faults in audit(store, [run.id])] == [[]]
        for other in ('\'{"game": "00000000"}\'', "NULL"):
            with store.engine.begin() as connection:
                connection.exec_driver_sql(f"UPDATE runs SET made = {other}")
            [(_, [fault])] = audit(store, [run.id])
            assert "differ from its digest" in fault.text


def test_two_organisations_of_one_name_are_not_pooled(labmates: Labmates) -> None:
    table = "name: NAME\nplayers: 2\nactions: [a, b]\npayoffs: {a a: [1, 1], a b: [0, 2], b a: [2, 0], b b: [0, 0]}\n"
    run = ("run", "dilemma", "--entrants", "scripted:random", "--reasoning", "none", "--game")
    for name, changed in (("mine", "1, 1"), ("mine", "3, 3"), ("prisoners", "1, 1")):
        (labmates.folder / f"{name}.yaml").write_text(table.replace("NAME", name).replace("1, 1", changed))
        assert labmates(*run, f"{name}.yaml").code == 0
    assert labmates(*run, "prisoners").code == 0
    refused = labmates("analyze", "dilemmas")
    assert refused.code == 2
    assert "game mine (2 of this name); game prisoners (2 of this name)" in refused.err
    assert labmates("analyze", "dilemmas", "--allow-mixed").code == 0
