"""Bundles: how many of single edits a check refuses, and whether it refuses an honest one.

Half of the edits change a byte of the file; the other half change one value and make all digests, counts and tables
anew to fit it. An edit counts as refused if the check refuses it without a published digest. Of the others, the field
must be one of those that the check says rest on a published digest, and the check with that digest must refuse it.

Honest bundles are made from stores in SQLite and PostgreSQL, and with ``--other PYTHON`` by another installation, such
as one without extras, which also checks them all.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

from labmates.cli.main import run_command
from labmates_doors.bundles.checking import Checked, checking
from labmates_doors.bundles.container import sha256

REFEREE = "scripted:referee"
PLAYED: dict[str, dict[str, Any]] = {
    "game": {
        "kind": "game",
        "models": ["scripted:random", "scripted:fair-share"],
        "fixed": {"game": "common-pool-sanctions", "group_size": 2, "rounds": 2, "deliberation": True},
    },
    "dilemma": {
        "kind": "dilemma",
        "fixed": {"game": "prisoners", "entrants": ["scripted:random", "scripted:equilibrium"]},
        "grid": {"mechanism": ["contract", "none"]},
    },
    "tournament": {
        "kind": "tournament",
        "models": ["scripted:random", "scripted:tit-for-tat"],
        "fixed": {"structure": "sa", "teams": 2, "team_size": 1, "rounds": 3},
    },
    "science": {
        "kind": "science",
        "models": ["scripted:hasty"],
        "fixed": {"task": "anomaly", "difficulty": "easy", "organisation": "solo"},
    },
}


def studies(number: int, kinds: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield small studies of these kinds in turn, each with another seed."""
    for place in range(number):
        kind = kinds[place % len(kinds)]
        yield {"name": f"{kind}-{place}", "seed": 100 * place, **PLAYED[kind]}


def make(folder: Path, store: str, number: int, kinds: Sequence[str]) -> None:
    """Run studies in a store, and write a bundle of each into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for study in studies(number, kinds):
        file = folder / f"{study['name']}.yaml"
        file.write_text(json.dumps(study))
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            assert run_command(["study", "run", str(file), "--store", store]) == 0
            if study["kind"] == "science":  # later scores, which give a run another digest
                assert run_command(["judge", "--study", study["name"], "--judge", REFEREE, "--store", store]) == 0
            target = folder / f"{study['name']}.zip"
            assert run_command(["bundle", study["name"], "-o", str(target), "--store", store]) == 0


async def _check(path: Path, published: str | None = None) -> Checked:
    async with checking(path, published=published, first_only=True) as checked:
        return checked


def honest(folder: Path) -> dict[str, list[str]]:
    """The faults of all bundles below a folder, and what could not be checked."""
    found: dict[str, list[str]] = {"bundles": [], "faults": [], "unchecked": []}
    for path in sorted(folder.rglob("*.zip")):
        checked = asyncio.run(_check(path))
        found["bundles"].append(path.name)
        found["faults"] += [f"{path}: {fault}" for fault in checked.faults]
        found["unchecked"] += [f"{path}: {why}" for why in checked.unchecked[:1]]
    return found


def false_alarms(number: int, other: str | None) -> None:
    """Make honest bundles, in each store and installation, and print what the checks say of them."""
    from tests.support.postgres import database, drop_databases

    with tempfile.TemporaryDirectory() as name, database() as postgres:
        folder = Path(name)
        third = number // 3
        make(folder / "sqlite", f"{folder}/runs.db", third if other else number - third, [*PLAYED])
        make(folder / "postgresql", postgres, third, [*PLAYED])
        if other:
            kinds = ["game", "dilemma", "tournament"]  # the lab's code needs an extra
            given = ["make", str(folder / "other"), "--store", f"{folder}/other.db", "--kinds", *kinds]
            _elsewhere(other, *given, "--number", str(number - 2 * third))
        here = honest(folder)
        _tell("here", here)
        if other:
            _tell("the other installation", json.loads(_elsewhere(other, "check", str(folder))))
    drop_databases()


def _elsewhere(python: str, *arguments: str) -> str:
    command = [python, "-m", "benchmarks.bundles", *arguments]
    done = subprocess.run(command, env=dict(os.environ), stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def _tell(where: str, found: dict[str, list[str]]) -> None:
    print(f"{len(found['bundles'])} honest bundles checked by {where}: {len(found['faults'])} refused")
    print(f"  {len(found['unchecked'])} with a part that could not be checked there")
    for text in [*found["faults"], *found["unchecked"][:3]]:
        print(f"  {text[:300]}")


def edits(number: int, seed: int) -> None:
    """Edit bundles, and print how many edits are refused, and by what."""
    from tests.doors.forging import flipped, forged, rests

    draw, refused, only = random.Random(seed), Counter[str](), Counter[str]()
    missed = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, f"{folder}/runs.db", len(PLAYED), [*PLAYED])
        bundles = [folder / f"{study['name']}.zip" for study in studies(len(PLAYED), [*PLAYED])]
        published = {path: asyncio.run(_check(path)).digest for path in bundles}
        for place in range(number):
            path = draw.choices(bundles, (3, 3, 3, 1))[0]  # a run of the lab needs a sandbox, which takes seconds
            edit = (forged if place % 2 else flipped)(path, folder / "edited", draw)
            assert sha256(folder / "edited") != sha256(path)
            checked = asyncio.run(_check(folder / "edited"))
            if checked.faults:
                refused[edit.part] += 1
                continue
            with_digest = asyncio.run(_check(folder / "edited", published[path]))
            is_parameter = edit.field.startswith("condition ")  # which are without effect depends on the experiment
            if with_digest.faults and (is_parameter or rests(edit, checked)):
                only[f"{edit.part} {edit.field}"] += 1
            else:
                missed.append(f"{edit} ({checked.unchecked[:1]})")
    print(f"{number} edits: {refused.total()} refused without a published digest: {dict(refused)}")
    print(f"{only.total()} refused with one alone: {dict(only)}")
    print(f"{len(missed)} missed")
    for text in missed:
        print(f"  {text[:400]}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure edits and honest bundles; `make` and `check` are their parts in another installation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=("edits", "honest", "make", "check"))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=20261129, help="Of the edits.")
    parser.add_argument("--store", default="")
    parser.add_argument("--kinds", nargs="+", default=[*PLAYED])
    parser.add_argument("--other", help="Python of another installation of labmates and labmates-doors.")
    given = parser.parse_args(arguments)
    match given.part:
        case "edits":
            edits(given.number, given.seed)
        case "honest":
            false_alarms(given.number, given.other)
        case "make":
            make(given.folder, given.store, given.number, given.kinds)
        case "check":
            print(json.dumps(honest(given.folder)))


if __name__ == "__main__":
    main()
