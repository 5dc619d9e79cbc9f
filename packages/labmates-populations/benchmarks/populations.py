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
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates_populations.condition import EvolutionCondition
from labmates_populations.engine.evolution import Evolution
from labmates_populations.engine.kernel.ways import told
from labmates_populations.engine.library import Population, files_for, load_population
from labmates_populations.engine.workers import Batch, Result, Workers, total_costs
from labmates_populations.repeated import RepeatedGame

PUBLISHED = ("public-goods", "collective-risk", "common-pool")
"""The games of the published program."""
_GENERATIONS, _GROUPS_SEATS = 21, 256


def main(checkout: Path) -> None:
    sys.path.insert(0, str(checkout / "src"))
    logging.disable(logging.CRITICAL)
    library = checkout / "strategies"
    for game in PUBLISHED:
        for size in (4, 64):
            _evolution(library / game.replace("-", "_"), game, size)


def _evolution(library: Path, name: str, size: int) -> None:
    condition = EvolutionCondition.model_validate({"game": name, "group_size": size, "strategies": str(library)})
    game, ours = condition.make_game(), list[Result]()
    theirs_seconds = theirs_decisions = 0.0
    with Workers(processes=1) as workers:

        def play(batches: Sequence[Batch]) -> list[Result]:
            results = workers.play(batches)
            ours.extend(results)
            return results

        population = load_population(workers, library, name)
        theirs = _classes(library, name, population)
        workers.play([Batch(game, np.full((1, size), next(iter(theirs))), 0)])  # starts the processes
        sure = [number for number in theirs if not workers.loaded[number].random]
        groups = np.random.default_rng(1).choice(sure, (max(1, _GROUPS_SEATS // size), size))
        [result] = workers.play([Batch(game, groups, 0, cooperate=population.cooperate)])
        moves = [_play(game, row, theirs, population) for row in groups.tolist()]
        equal = sum(np.array_equal(one, own) for one, own in zip(moves, result.actions, strict=True))
        evolution = Evolution(condition, population, play, seed=1)
        for generation in islice(evolution.generations((0, evolution.first(), frozenset())), _GENERATIONS):
            _, batch = evolution.games(generation.number, generation.agents, generation.broken)
            part = batch.groups[: max(1, _GROUPS_SEATS // size)]
            began = time.process_time()
            for row in part.tolist():
                _play(game, row, theirs, population)
            theirs_seconds += time.process_time() - began
            theirs_decisions += part.size * game.n_rounds
    own = 1e6 * sum(result.seconds for result in ours) / sum(result.actions.size for result in ours)
    other, costs = 1e6 * theirs_seconds / theirs_decisions, total_costs(ours)
    print(f"{name}, groups of {size}: {own:.2f} µs a decision, published program {other:.2f}: "
          f"{other / own:.1f} times as fast; {equal} of {len(moves)} games without chance equal")  # fmt: skip
    print("  strategies", told(Counter(population.ways.values())))
    print("  decisions", told({way: cost.decisions for way, cost in costs.items()},
                              {way: cost.microseconds for way, cost in costs.items()}), flush=True)  # fmt: skip


def _classes(library: Path, game: str, population: Population) -> dict[int, type[Any]]:
    """The class of each strategy in the published program."""
    modules: dict[str, Any] = {}
    for file in files_for(library, game):
        name = f"{game}_{file.model}".replace("-", "_").replace(".", "_")
        spec = spec_from_file_location(name, file.path)
        assert spec is not None
        assert spec.loader is not None
        modules[file.model] = module_from_spec(spec)
        spec.loader.exec_module(modules[file.model])
    named = {number: name.rsplit(":", 1) for number, name in population.names.items()}
    return {number: getattr(modules[model], strategy) for number, (model, strategy) in named.items()}


def _play(
    game: RepeatedGame, group: Sequence[int], made_by: Mapping[int, type[Any]], population: Population
) -> NDArray[np.bool_]:
    """The moves of a game in the published program, ``(rounds, players)``."""
    games, players, common = (import_module(f"emergent_llm.{name}") for name in ("games", "players", "common"))
    kind = "".join(part.title() for part in game.name.split("-"))
    description = getattr(games, f"{kind}Description")(game.n_players, game.n_rounds, **game.parameters)
    attitudes = [common.COLLECTIVE if one in population.cooperate else common.COLLECTIVE.flip() for one in group]
    made = [
        players.LLMPlayer(
            str(seat), common.Gene("model", attitude), description, made_by[one], max_errors=game.n_rounds
        )
        for seat, (one, attitude) in enumerate(zip(group, attitudes, strict=True))
    ]
    played = description.game_type()(made, description)
    for _ in range(game.n_rounds):
        played._play_round(made)
    moves: NDArray[np.bool_] = played.history.actions
    return moves


if __name__ == "__main__":
    main(Path(sys.argv[1]))
