"""What strategies that exhaust the machine cost a batch: when they are found out, and in the next batch.

Each attack of the tests' corpus sits in every game of a batch; its honest time is that of the same batch with a plain
strategy in its seats. Times are processor time of all processes, those that were killed included::

    make -C packages/labmates-populations bench NAME=hostile_strategies [ARGS="PART OF A NAME"]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from labmates_populations.engine.workers import Batch, Workers
from labmates_populations.repeated import make_repeated
from tests.populations.engine.attacks import EXHAUSTION, attack
from tests.support.strategies import HEAD, strategy

_GAMES, _SIZE, _ROUNDS = 64, 4, 20
_TICKS = os.sysconf("SC_CLK_TCK")
_PLAIN = """
if history.round_number == 0: return C
return C if history.opponent_cooperators[-1] * 2 >= self.game_description.n_players - 1 else D
"""
_ALONE = "type(self)\n"
"""Not in the compiled subset: it runs in a separate process, as attacks do."""


def main(part: str) -> None:
    chosen = {name: body for name, body in EXHAUSTION.items() if part in name}
    with Workers(processes=1) as workers:
        plain = strategy(_PLAIN, name="Strategy_COLLECTIVE_1"), strategy(_ALONE + _PLAIN, name="Strategy_COLLECTIVE_2")
        neighbour, alone = (one.index for one in workers.load("plain.py", HEAD + "".join(plain)))
        text = HEAD + "".join(attack(number, body) for number, body in enumerate(chosen.values()))
        hostile = [one.index for one in workers.load("attacks.py", text)]
        _cost(workers, neighbour, neighbour)
        together = min(_cost(workers, neighbour, neighbour)[0] for _ in range(3))
        honest = min(_cost(workers, alone, neighbour)[0] for _ in range(3))
        print(f"honest batch of {_GAMES} games: {together:.2f} s; with another process {honest:.2f} s")
        print(f"{'attack':40} {'first':>8} {'next':>8}   processor seconds")
        for name, index in zip(chosen, hostile, strict=True):
            first, broken = _cost(workers, index, neighbour)
            later, _ = _cost(workers, index, neighbour, broken)
            found = "" if broken else "   not found out"
            print(f"{name:40} {first:8.2f} {later:8.2f}{found}", flush=True)


def _cost(
    workers: Workers, strategy: int, neighbour: int, broken: frozenset[int] = frozenset()
) -> tuple[float, frozenset[int]]:
    """Processor time of a batch, and the strategies that it shows to be hostile."""
    groups = np.full((_GAMES, _SIZE), neighbour)
    groups[:, 0] = strategy
    began = processor_seconds(os.getpid())
    [result] = workers.play([Batch(make_repeated("public-goods", _SIZE, _ROUNDS), groups, 1, anew=True, broken=broken)])
    used = processor_seconds(os.getpid()) - began
    return used, broken | {index for index, error in result.errors.items() if error.stopped}


def processor_seconds(pid: int) -> float:
    """Processor time of a process and of all below it, those that have ended included."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    below = Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()
    return sum(map(int, fields[11:15])) / _TICKS + sum(processor_seconds(int(child)) for child in below)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
