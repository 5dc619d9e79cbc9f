"""How fast strategies play: our engine beside the published program's own, on its strategies, interleaved.

Needs a checkout of github.com/willis-richard/emergent_llm, whose own code plays the same groups in this process::

    make -C packages/labmates-populations bench NAME=populations ARGS=PATH/TO/emergent_llm

Games of strategies without chance have to be equal move for move. Then a population of 512 evolves by the paper's
protocol; the published program plays a part of each generation's groups. Times are processor time, since other
processes disturb the clock. Ratios are those of later generations too, in which our engine knows many moves.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates_populations.engine.attitudes import falls_back_to_cooperation
from labmates_populations.engine.kernel.ways import told
from labmates_populations.engine.library import read_text, strategy_files
from labmates_populations.engine.workers import Batch, Result, Workers, chunks, total_costs
from labmates_populations.repeated import RepeatedGame, make_repeated

PUBLISHED = ("public-goods", "collective-risk", "common-pool")
"""The games of the published program."""
_POPULATION, _GAMES, _ELITE, _MUTATION, _GENERATIONS, _GROUPS_SEATS = 512, 4, 64, 0.1, 21, 256


def main(checkout: Path) -> None:
    sys.path.insert(0, str(checkout / "src"))
    logging.disable(logging.CRITICAL)
    library = checkout / "strategies"
    for game in PUBLISHED:
        for size in (4, 64):
            _evolution(library, game, size)


def _evolution(library: Path, name: str, size: int) -> None:
    game, chance = make_repeated(name, size), np.random.default_rng(1)
    with Workers(processes=1) as workers:
        theirs = _load(workers, library, name)
        workers.play([Batch(game, np.zeros((1, size), np.int64), 0)])  # starts the processes
        # Of a class that is defined twice, as some are, only the last one is a strategy.
        played = [one for one in workers.loaded if not one.problems]
        numbers = np.array([one.index for one in played])
        made_by = [f"{theirs[one.index].__module__} {one.attitude}" for one in played]
        genes = np.unique(made_by, return_inverse=True)[1]
        cooperate = frozenset(one.index for one in workers.loaded if falls_back_to_cooperation(one.attitude))
        sure = [one.index for one in played if not one.random]
        groups = chance.choice(sure, (max(1, _GROUPS_SEATS // size), size))
        [result] = workers.play([Batch(game, groups, 0, cooperate=cooperate)])
        moves = [_play(game, [theirs[one] for one in row], [one in cooperate for one in row]) for row in groups]
        equal = sum(np.array_equal(one, own) for one, own in zip(moves, result.actions, strict=True))
        agents = chance.integers(0, len(played), _POPULATION)
        ours: list[Result] = []
        theirs_seconds = 0.0
        theirs_decisions = 0
        for generation in range(_GENERATIONS):
            seats = np.concatenate([chance.permutation(_POPULATION) for _ in range(_GAMES)]).reshape(-1, size)
            groups = numbers[agents][seats]
            results = workers.play(list(chunks(Batch(game, groups, generation, cooperate=cooperate))))
            actions = np.concatenate([result.actions for result in results])
            ours += results
            part = groups[: max(1, _GROUPS_SEATS // size)]
            began = time.process_time()
            for row in part:
                _play(game, [theirs[one] for one in row], [one in cooperate for one in row])
            theirs_seconds += time.process_time() - began
            theirs_decisions += part.size * game.n_rounds
            agents = _next(game, agents, genes, seats, actions, chance)
    own = 1e6 * sum(result.seconds for result in ours) / sum(result.actions.size for result in ours)
    other, costs = 1e6 * theirs_seconds / theirs_decisions, total_costs(ours)
    print(f"{name}, groups of {size}: {own:.2f} µs a decision, published program {other:.2f}: "
          f"{other / own:.1f} times as fast; {equal} of {len(moves)} games without chance equal")  # fmt: skip
    print("  strategies", told(Counter(one.way for one in played)))
    print("  decisions", told({way: cost.decisions for way, cost in costs.items()},
                              {way: cost.microseconds for way, cost in costs.items()}), flush=True)  # fmt: skip


def _load(workers: Workers, library: Path, game: str) -> list[type[Any]]:
    """The strategies of a game in both programs, in the same order."""
    classes: list[type[Any]] = []
    for file in (one for one in strategy_files(library) if one.game == game):
        spec = spec_from_file_location(f"{game}_{file.model}".replace("-", "_").replace(".", "_"), file.path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        classes += [getattr(module, one.name) for one in workers.load(file.path.name, read_text(file.path))]
    return classes


def _play(game: RepeatedGame, classes: Sequence[type[Any]], cooperate: Sequence[bool]) -> NDArray[np.bool_]:
    """The moves of a game in the published program, ``(rounds, players)``."""
    games, players, common = (import_module(f"emergent_llm.{name}") for name in ("games", "players", "common"))
    kind = "".join(part.title() for part in game.name.split("-"))
    description = getattr(games, f"{kind}Description")(game.n_players, game.n_rounds, **game.parameters)
    attitudes = [common.COLLECTIVE if one else common.COLLECTIVE.flip() for one in cooperate]
    made = [
        players.LLMPlayer(str(seat), common.Gene("model", attitude), description, strategy, max_errors=game.n_rounds)
        for seat, (strategy, attitude) in enumerate(zip(classes, attitudes, strict=True))
    ]
    played = description.game_type()(made, description)
    for _ in range(game.n_rounds):
        played._play_round(made)
    moves: NDArray[np.bool_] = played.history.actions
    return moves


def _next(
    game: RepeatedGame,
    agents: NDArray[np.int64],
    genes: NDArray[np.int64],
    seats: NDArray[np.int64],
    actions: NDArray[np.bool_],
    chance: np.random.Generator,
) -> NDArray[np.int64]:
    earned = game.play(actions).mean(axis=1).reshape(-1)
    payoffs = np.bincount(seats.reshape(-1), weights=earned, minlength=len(agents))
    drawn = genes[agents][chance.choice(len(agents), len(agents), p=payoffs / payoffs.sum())]
    mutants = chance.random(len(agents)) < _MUTATION
    drawn[mutants] = chance.integers(0, genes.max() + 1, mutants.sum())
    sizes = np.bincount(genes)
    places = (np.cumsum(sizes) - sizes)[drawn] + chance.integers(0, sizes[drawn])
    new: NDArray[np.int64] = np.argsort(genes, kind="stable")[places]
    elite = np.argsort(-payoffs)[:_ELITE]
    new[elite] = agents[elite]
    return new


if __name__ == "__main__":
    main(Path(sys.argv[1]))
