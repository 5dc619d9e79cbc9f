"""What each way to play a strategy costs, beside a plain Python loop, which keeps histories as arrays.

First mixed groups of a whole file play, then each strategy against random moves; moves without chance have to be equal.
Times are processor time of all processes, with their start; every player is asked in every round, in batches of 200::

    make -C packages/labmates-populations bench NAME=ways ARGS="public-goods FILE.py"
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates_populations.engine.kernel.interface import BaseStrategy, C, PlayerHistory
from labmates_populations.engine.kernel.names import interfaces
from labmates_populations.engine.kernel.players import describe
from labmates_populations.engine.workers import Batch, Cost, Workers, total_costs
from labmates_populations.repeated import RepeatedGame, make_repeated

_SIZE, _GROUPS, _ROUNDS = 4, 200, 20
_TICKS = os.sysconf("SC_CLK_TCK")


def main(name: str, path: Path) -> None:
    game, text = make_repeated(name, _SIZE, _ROUNDS), path.read_text()
    names: dict[str, Any] = {"__name__": "strategy"}
    published = interfaces(BaseStrategy, paper=False)
    sys.modules |= {name: one for name, one in published.items() if name != "labmates"}
    sys.modules["strategy"] = ModuleType("strategy")  # where `dataclass` looks up names
    exec(compile(text, path.name, "exec"), names)
    with Workers(processes=1) as workers:
        loaded = workers.load(path.name, text)
        groups = np.random.default_rng(0).integers(0, len(loaded), (_GROUPS, _SIZE))
        began = processor_seconds(os.getpid())
        [result] = workers.play([Batch(game, groups, 0, anew=True)])
        ours = processor_seconds(os.getpid()) - began
        plain, _ = _plain(game, [[names[loaded[one].name] for one in row] for row in groups.tolist()])
        decisions = groups.size * _ROUNDS
        print(f"all {len(loaded)}: {1e6 * ours / decisions:.1f} µs a decision, plain {1e6 * plain / decisions:.1f}: "
              f"{ours / plain:.2f} times")  # fmt: skip
        for way, cost in total_costs([result]).items():
            print(f"  {way}: {cost.decisions} decisions, {cost.microseconds:.1f} µs each in the players' process")
        print(f"{'strategy':24} {'way':20} {'µs':>7} {'own':>7} {'plain':>7}")
        others = np.random.default_rng(1).random((_GROUPS, _ROUNDS, _SIZE - 1)) < 0.5
        for one in loaded:
            groups = np.full((_GROUPS, 1), one.index)
            began = processor_seconds(os.getpid())
            [result] = workers.play([Batch(game, groups, 0, opponents=others, anew=True)])
            ours = processor_seconds(os.getpid()) - began
            plain, moves = _plain(game, [[names[one.name]]] * _GROUPS, others)
            assert one.random or np.array_equal(moves, result.actions), one.name
            each, own = 1e6 / groups.size / _ROUNDS, total_costs([result]).get(one.way, Cost()).microseconds
            print(f"{one.name:24} {one.way:20} {ours * each:7.1f} {own:7.1f} {plain * each:7.1f}", flush=True)


def _plain(
    game: RepeatedGame, groups: list[list[Any]], others: NDArray[np.bool_] | None = None
) -> tuple[float, NDArray[np.bool_]]:
    """The processor time of a loop over groups of classes, and their moves ``(groups, rounds, players)``."""
    began, description = time.process_time(), describe(game)
    played = np.zeros((len(groups), game.n_rounds, game.n_players), bool)
    if others is not None:
        played[:, :, 1:] = others
    for actions, classes in zip(played, groups, strict=True):
        players = [made(description) for made in classes]
        payoffs, counts = np.zeros(actions.shape), np.zeros(actions.shape, np.int64)
        stock = game.start(1)
        for t, row in enumerate(actions):
            seen = (PlayerHistory(actions[:t, i], payoffs[:t, i], counts[:t, i]) for i in range(len(players)))
            told = () if stock is None else (stock[0],)
            row[: len(players)] = [player(one, *told) is C for player, one in zip(players, seen, strict=True)]
            payoffs[t] = game.payoffs(row[None], stock)
            counts[t] = row.sum() - row
            stock = game.next_stock(stock, payoffs[t : t + 1])
    return time.process_time() - began, played[:, :, : len(groups[0])]


def processor_seconds(pid: int) -> float:
    """Processor time of a process and of all below it, those that have ended included."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    below = Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()
    return sum(map(int, fields[11:15])) / _TICKS + sum(processor_seconds(int(child)) for child in below)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
