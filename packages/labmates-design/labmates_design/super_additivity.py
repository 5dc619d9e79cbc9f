"""The power of a study's test of one-shot cooperation (H2), simulated with the test itself before any run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from labmates.studies.designs import PlannedRuns
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


@dataclass(frozen=True)
class Powers:
    """The probabilities that a test tells each true effect (p < .05)."""

    test: str
    powers: Mapping[str, float]

    def lines(self) -> Iterator[str]:
        """It in words."""
        yield f"{self.test}: simulated probability of p < .05:"
        for effect, told in self.powers.items():
            yield f"  {told:.2f} with {effect}"

    def as_json(self) -> Mapping[str, Any]:
        """It as JSON data."""
        return asdict(self)


def found(design: PlannedRuns, _parameter: str | None, _difference: float | None) -> list[Powers]:
    """The power of H2 for each design of a study of tournaments with all three structures."""
    if design.spec.kind != "tournament":
        return []
    conditions = [TournamentCondition.model_validate(run.condition) for run in design.planned]
    return list(powers(conditions, design.spec.replicates))


def powers(conditions: Sequence[TournamentCondition], replicates: int) -> Iterator[Powers]:
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
        told = {
            f"{case}, deviation of tournaments {deviation:g}": power(rates, made, deviation, replicates)
            for case, rates in CASES.items()
            for deviation in DEVIATIONS
        }
        yield Powers(test, told)


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
