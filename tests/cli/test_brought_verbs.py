"""Verbs that another package brings: in the help, as commands with the options of their parameters, and in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import labmates as package
from labmates.registry import Registry
from labmates.workflows.protocol.verb import Verb
from tests.support.command_line import Labmates
from tests.support.plugins import install

CODE = '''
from pathlib import Path
from pydantic import Field
from labmates.registry import lazy
from labmates.stats.tables import Table
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command
from labmates.workflows.protocol.verb import Verb

class CountParams(Params):
    words: tuple[str, ...] = Field(description="Words.", json_schema_extra={"argument": True})
    least: int = Field(1, ge=0, description="Shorter words don't count.")

def letters(lab, words, *, least=1):
    """Count the letters of words."""
    return [len(word) for word in words if len(word) >= least]

def count(lab, params):
    """Count letters, word by word."""
    counts = letters(lab, params.words, least=params.least)
    yield Result([Table("letters", "Letters", None, [{"letters": count} for count in counts])])
    if not counts:
        yield Result((), objects=(), fault="no word is long enough")

def play(lab, params):
    """Play two games."""
    runs = lab.play([lab.condition("game", {"game": "o-ring"})], 2, at_once=1, part_of="the test")
    yield Result((), objects=[{"size": run.condition["group_size"], "seed": run.seed} for run in runs])

COUNTING = Command(count, CountParams, function=letters, has_tables=True, objects="per word")
TWICE = Command(play, kind="game", fixed=("game",), has_store=True, objects="per run")
PLAYING = Command(commands={"twice": TWICE})
COUNT = Verb("Count letters.", lazy("brought_verbs:COUNTING"))
GROUP = Verb("Play games.", lazy("brought_verbs:PLAYING"))
'''


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"labmates.verbs": {"letters": "brought_verbs:COUNT", "games2": "brought_verbs:GROUP"}}
    monkeypatch.syspath_prepend(install(tmp_path / "theirs", "more-verbs", points, {"brought_verbs": CODE}))
    verbs: Registry[Verb] = Registry("verb", "labmates.verbs")
    for module in ("labmates.workflows.protocol.verb", "labmates.cli.main", "labmates.cli.analyses", "labmates.api"):
        monkeypatch.setattr(f"{module}.VERBS", verbs)


def test_a_plug_in_s_verb_is_listed_and_takes_the_options_of_its_parameters(labmates: Labmates) -> None:
    listed = labmates("--help").out
    assert "letters" in listed
    assert "Count letters." in listed
    shown = labmates("letters", "--help").out
    assert "Count letters, word by word." in shown
    assert "WORD..." in shown
    assert "Shorter words don't count. [default: 1]" in " ".join(shown.split())
    done = labmates("letters", "one", "three", "--least", "4", "--json", "--out", "letters.csv")
    assert (done.code, done.records) == (0, [{"letters": 5}])
    assert (labmates.folder / "letters.csv").read_text() == "letters\n5\n"


def test_faults_and_wrong_parameters_of_a_plug_in_s_verb_are_told(labmates: Labmates) -> None:
    nothing = labmates("letters", "one", "--least", "9", "--json")
    assert (nothing.code, nothing.err) == (1, "labmates: no word is long enough\n")
    wrong = labmates("letters", "one", "--least", "-1")
    assert (wrong.code, "--least: must be at least 0" in wrong.err) == (2, True)
    unnamed = labmates("games2", "twise")
    assert (unnamed.code, "Did you mean 'twice'" in unnamed.err) == (2, True)


def test_a_plug_in_s_verb_plays_what_the_store_lacks(labmates: Labmates) -> None:
    words = ("games2", "twice", "--model", "scripted:random", "--group-size", "2", "--json")
    first = labmates(*words)
    assert (first.code, first.records) == (0, [{"size": 2, "seed": 0}, {"size": 2, "seed": 1}])
    assert first.err.count("completed") == 2
    assert labmates(*words).err == "", "the store has them"
    missing = labmates("games2", "twice")
    assert (missing.code, "missing: --model. Try 'labmates games2 twice --help'." in missing.err) == (2, True)


def test_a_plug_in_s_function_is_one_of_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert package.letters(["one", "three"], least=4) == [5]
    assert package.letters.__doc__ == "Count the letters of words."
    assert not hasattr(package, "games2")
    assert list(tmp_path.glob("*.db")) == []
