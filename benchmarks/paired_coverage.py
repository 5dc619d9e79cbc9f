"""How often the intervals of `labmates compare` hold the truth and (in brackets) exclude 0.

Run it with ``python -m benchmarks.paired_coverage``. Worlds: `tests.stats.paired_worlds`.
One standard error of .95 is .007 at 1,000 studies.
"""

from __future__ import annotations

import argparse

from tests.stats.paired_worlds import UNREADABLE, WORLDS, coverage


def main() -> None:
    """Print a line per world: coverage and rejections by number of blocks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for name, world in {**WORLDS, **UNREADABLE}.items():
        found = {blocks: coverage(world, blocks, given.studies, given.seed) for blocks in world.blocks}
        cells = "  ".join(f"{blocks:2}: {each.held:.3f} ({each.rejected:.3f})" for blocks, each in found.items())
        low = any(each.held < 0.93 or (world.truth == 0 and each.rejected > 0.06) for each in found.values())
        print(f"{name:34} {cells}{'  <' if low else ''}", flush=True)


if __name__ == "__main__":
    main()
