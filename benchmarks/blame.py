"""How often ``labmates blame`` names the seat that spoiled the findings, in chains of four scripted seats.

    python -m benchmarks.blame [--seeds 2] [--replicates 3]

Each seat is the saboteur in turn: it drops findings, corrupts numbers, contradicts them or hands nothing on. All others
lose a finding in twenty by chance. A saboteur by nature is told by another model in its seat, one by chance
by a second attempt of each seat. Runs in which chance left nothing to blame count as well.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import labmates
from tests.support.saboteurs import SABOTAGE, SEATS, sabotaged


def named(seed: int, seat: str, how: str, replicates: int, *, once: bool) -> tuple[bool, bool]:
    """Whether the saboteur comes first, and whether its interval excludes 0."""
    with TemporaryDirectory() as folder, sabotaged(Path(folder), seed, seat, how, once=once) as run:
        model = None if once else "scripted:honest"
        found = labmates.blame(run.id, model=model, replicates=replicates, store=run.store)
    first = found.table("blame").rows[0]
    return first["seat"] == seat, first["seat"] == seat and (first["back_low"] or 0) > 0


def main() -> None:
    """Play, and print a line for each kind of sabotage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--replicates", type=int, default=3)
    options = parser.parse_args()
    cells = list(product(range(options.seeds), SEATS))
    for once, how in product((False, True), SABOTAGE):
        ends = [named(seed, seat, how, options.replicates, once=once) for seed, seat in cells]
        first, told = (sum(end[side] for end in ends) for side in (0, 1))
        told_by = "its own second attempt" if once else "another model"
        print(f"{how}, told by {told_by}: first in {first} of {len(ends)}, told in {told}", flush=True)


if __name__ == "__main__":
    main()
