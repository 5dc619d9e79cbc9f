"""How fast strategies play: our confined workers beside a straightforward engine, on the same strategies in one run.

The published program is not at hand. What we compare with is our own stand-in for its approach (`plain_engine`: an
object per player, fresh arrays for each decision, no isolation), and figures that were measured of it once: per core
about 9 µs a decision of which 2 µs are the strategy's own, and 25 s of processor time per strategy for the behaviour in
5,461 situations. Ratios to those figures are across machines, and no more than an orientation.

Times are processor time of the process that plays, the least of several tries, since other processes disturb them; but
that of two processes, which the clock tells.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from benchmarks import plain_engine
from benchmarks.strategy_sets import strategies
from labmates.games.repeated import make_repeated
from labmates.workflows.populations.engine.behaviour import behaviours
from labmates.workflows.populations.engine.workers import Batch, Result, Workers, chunks

PUBLISHED_MICROSECONDS, PUBLISHED_OWN, PUBLISHED_VECTOR_SECONDS = 9.0, 2.0, 25.0
_COUNT, _POPULATION, _GAMES, _TRIES, _PLAIN_GAMES = 512, 512, 4, 5, 16


def main() -> None:
    text = strategies(_COUNT)
    began = time.perf_counter()
    with Workers(processes=1) as workers:
        loaded = workers.load("strategies.py", text)
        print(f"loading {len(loaded)} strategies: {time.perf_counter() - began:.2f} s (at most 2 s)")
        plain = plain_engine.load(text)
        for size in (4, 64):
            _evolution(workers, plain, size)
        _diversity(workers, plain)
    _processors(text)


def _batch(size: int) -> Batch:
    groups = np.random.default_rng(0).integers(0, 2 * _COUNT, size=(_POPULATION * _GAMES // size, size))
    return Batch(make_repeated("public-goods", size), groups, seed=0)


def _evolution(workers: Workers, plain: list[type[object]], size: int) -> None:
    batch = _batch(size)
    game = batch.game
    parts = list(chunks(batch))
    decisions = batch.groups.size * game.n_rounds
    rows = batch.groups[: max(1, _PLAIN_GAMES * 4 // size)]
    ours, theirs, own = [], [], []
    for _ in range(_TRIES):
        ours.append(sum(result.seconds for result in workers.play(parts)) / decisions)
        measured = workers.play([replace(part, measure=True) for part in parts])
        own.append(sum(result.own_seconds for result in measured) / decisions)
        theirs.append(_seconds(lambda: [plain_engine.play([plain[i] for i in row], game) for row in rows]))
    least, theirs_least, own_least = (1e6 * min(one) for one in (ours, theirs, own))
    theirs_least /= rows.size * game.n_rounds
    print(
        f"groups of {size}: {least:.2f} µs a decision, {own_least:.2f} of it in strategies' code "
        f"({100 * min(1, own_least / least):.0f} %; at least 70 %); plain engine {theirs_least:.2f} µs: "
        f"{theirs_least / least:.1f} times as fast; {_relative(least, own_least):.1f} times by the published figures"
    )


def _relative(ours: float, own: float) -> float:
    """Return the ratio to the published figures if strategies' own code takes here as long as it did there."""
    return (PUBLISHED_MICROSECONDS / PUBLISHED_OWN) / (ours / own)


def _diversity(workers: Workers, plain: list[type[object]]) -> None:
    """Compare the behaviour of deterministic strategies in 5,461 situations; the plain way is timed on a part of it."""
    game = make_repeated("public-goods", 4, 7)
    chosen = [one.index for one in workers.loaded if not one.random][:8]
    seconds: list[float] = []

    def play(batches: Sequence[Batch]) -> list[Result]:
        results = workers.play(batches)
        seconds.append(sum(result.seconds for result in results))
        return results

    claims = dict.fromkeys(chosen, False)
    found = behaviours(game, play, chosen, features="counts", random=claims, cooperate=frozenset())
    assert all(one.deterministic and len(one.rates) == 5461 for one in found)
    each = sum(seconds) / len(chosen)
    # 50 games through each of the 4,096 histories, of which a few are timed.
    timed = _seconds(lambda: [plain_engine.play([plain[i]] * 4, game) for i in chosen]) / len(chosen) / 4
    theirs = timed * 4096 * 50
    print(
        f"behaviour in 5,461 situations: {each:.3f} s a deterministic strategy; 50 games through each history in the "
        f"plain way would take {theirs:.0f} s: {theirs / each:.0f} times (at least 50); the published figure is "
        f"{PUBLISHED_VECTOR_SECONDS:.0f} s: {PUBLISHED_VECTOR_SECONDS / each:.0f} times"
    )


def _processors(text: str) -> None:
    parts = list(chunks(_batch(4)))
    rates = {}
    for processes in (1, 2):
        with Workers(processes=processes) as workers:
            workers.load("strategies.py", text)
            workers.play(parts)
            rates[processes] = min(_wall(lambda: workers.play(parts)) for _ in range(_TRIES))
    print(f"two processes: {rates[1] / rates[2]:.2f} times as fast as one, by the clock (at least 1.8)")


def _seconds(action: Callable[[], object]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def _wall(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
