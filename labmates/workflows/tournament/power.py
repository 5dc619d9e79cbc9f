"""The power of a study's test of one-shot cooperation (H2), simulated with the test itself before any run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from labmates.workflows.protocol.experiment import Power
from labmates.workflows.tournament.condition import TournamentCondition

CASES: Final = {
    "the published means of Qwen3": (0.27, 0.26, 0.39),
    "the published means of Phi4": (0.29, 0.29, 0.43),
    "an advantage of .1 over .5": (0.5, 0.5, 0.6),
    "an advantage of .2 over .5": (0.5, 0.5, 0.7),
}
"""The true rates of one-shot cooperation with repeated interaction, group competition and both."""
DEVIATIONS: Final = (0.05, 0.15)
"""Standard deviations of a tournament's true rate."""
SIMULATED: Final = 100
"""The standard error of a power of one half is .05."""


def powers(conditions: Sequence[TournamentCondition], replicates: int) -> Iterator[Power]:
    """The probabilities that ``analyze tournament`` tells H2, for each design with all three structures."""
    designs: dict[str, dict[str, int]] = {}
    for each in conditions:
        others = each.model_dump_json(exclude={"structure", "rounds_per_player"})
        designs.setdefault(others, {})[each.structure] = first_moves(each)
    moves = {tuple(design[name] for name in ("ri", "gc", "sa")) for design in designs.values() if len(design) == 3}
    if replicates < 2:
        return
    for made in sorted(moves):
        counts = ", ".join(map(str, made))
        test = f"analyze tournament, H2, {replicates} tournaments of each structure with {counts} first moves"
        for case, rates in CASES.items():
            for deviation in DEVIATIONS:
                effect = f"{case}, deviation of tournaments {deviation:g}"
                yield Power(test, effect, power(rates, made, deviation, replicates))


def first_moves(condition: TournamentCondition) -> int:
    """The first moves of all players of a tournament."""
    most = -(-condition.total_rounds // condition.rounds)
    return sum(min(most, condition.matches_of(player)) for player in condition.players)


def power(rates: Sequence[float], moves: Sequence[int], deviation: float, tournaments: int) -> float:
    """The probability of p < .05, with the true rates and the first moves of the three structures, the last above."""
    import numpy as np

    from labmates.stats.advantages import advantage
    from labmates.stats.domains import SHARE

    rng = np.random.default_rng(0)
    told = 0
    for _ in range(SIMULATED):
        true = (rng.normal(rate, deviation, tournaments).clip(0, 1) for rate in rates)
        *others, last = [(rng.binomial(n, rate) / n).tolist() for n, rate in zip(moves, true, strict=True)]
        p = advantage(last, others, SHARE.difference()).p
        told += p is not None and p < 0.05
    return told / SIMULATED
