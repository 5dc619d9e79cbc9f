"""Names complete in the shell: what is registered, and the runs and studies of the store."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import labmates as package
from tests.support.command_line import Labmates


def offered(labmates: Labmates, words: list[str], **environment: str) -> list[str]:
    """The names that bash offers for the last word."""
    asked = {"COMP_WORDS": "\n".join(["labmates", *words]), "COMP_CWORD": str(len(words))}
    done = labmates.process(environment={"_LABMATES_COMPLETE": "bash_complete", **asked, **environment})
    return [line.partition(",")[2] for line in done.out.splitlines() if line.startswith("plain,")]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("run game --game o", "o-ring"),
        ("run dilemma --game pri", "prisoners"),
        ("run dilemma --mechanism med", "mediation"),
        ("run science --task = ec", "ecology"),  # as bash divides it
        ("run science --organisation blac", "blackboard"),
        ("run game --model scripted : fair", "fair-share"),
        ("run science --judge ver", "verified"),
        ("games show o", "o-ring"),
        ("organisations show blac", "blackboard"),
        ("study run games-sm", "games-small"),
        ("runs --kind scien", "science"),
    ],
)
def test_a_registered_name_is_completed(labmates: Labmates, line: str, name: str) -> None:
    assert offered(labmates, line.split()) == [name]


def test_runs_and_studies_of_the_store_are_completed(labmates: Labmates, tmp_path: Path) -> None:
    store = shutil.copy(Path(package.__file__).parent / "viewer" / "sample.sqlite", tmp_path / "sample.db")
    newest = labmates("runs", "--limit", "1", "--json", "--store", str(store)).records[0]
    for verb in (["show"], ["analyze", "scores"]):
        assert offered(labmates, [*verb, newest["id"][:6]], LABMATES_STORE=str(store)) == [newest["id"]]
    assert offered(labmates, ["show", "--store", str(store), newest["id"][:6]]) == [newest["id"]]
    studies = offered(labmates, ["analyze", "scores", "--study", ""], LABMATES_STORE=str(store))
    assert {*studies} == {"sample-games", "sample-science"}
    assert offered(labmates, ["show", newest["id"][:6]], LABMATES_STORE="sqlite:///none.db") == []
