"""Posteriors of fitted models: draws, summaries, and diagnostics of the draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from labmates.stats.multiplicity import holm
from labmates_profiles.arrays import Array
from labmates_profiles.bayes.importance import Diagnostics


@dataclass(frozen=True)
class Summary:
    """Summary of one parameter of a posterior.

    Attributes
    ----------
    low, high
        Ends of the central 95 % interval.
    positive
        Probability that it is above 0: the paper's probability of direction.
    """

    name: str
    mean: float
    sd: float
    low: float
    high: float
    positive: float

    @property
    def credible(self) -> bool:
        """Whether the 95 % interval excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Posterior:
    """Equally weighted draws from a posterior.

    Attributes
    ----------
    names
        Of the parameters.
    draws
        Shape ``(draws, parameters)``.
    """

    names: tuple[str, ...]
    draws: Array
    diagnostics: Diagnostics

    def __getitem__(self, name: str) -> Array:
        """The draws of one parameter, shape ``(draws,)``."""
        return np.asarray(self.draws[:, self.names.index(name)])

    def columns(self, names: Sequence[str]) -> Array:
        """The draws of some parameters, shape ``(draws, len(names))``."""
        return np.asarray(self.draws[:, [self.names.index(name) for name in names]])

    def first(self, draws: int) -> Posterior:
        """The same posterior with its first draws only."""
        return replace(self, draws=self.draws[:draws])

    @cached_property
    def summaries(self) -> dict[str, Summary]:
        """Summaries of all parameters, by name."""
        low, high = np.quantile(self.draws, [0.025, 0.975], axis=0)
        means, spreads, positive = self.draws.mean(axis=0), self.draws.std(axis=0), (self.draws > 0).mean(axis=0)
        return {
            name: Summary(name, *map(float, (means[at], spreads[at], low[at], high[at], positive[at])))
            for at, name in enumerate(self.names)
        }

    def json(self, p_holm: Mapping[str, float] | None = None) -> dict[str, Any]:
        """Summaries and diagnostics as JSON data, with Holm-adjusted p values where given."""
        adjusted = p_holm or {}
        parameters = [
            {**asdict(summary), "credible": summary.credible, "p_holm": adjusted.get(name)}
            for name, summary in self.summaries.items()
        ]
        return {"parameters": parameters, "diagnostics": asdict(self.diagnostics)}


def adjusted(posteriors: Sequence[Posterior], *kinds: Sequence[Sequence[str]]) -> list[dict[str, float]]:
    """Holm-adjusted p values of the effects of each posterior, by name.

    An effect's p is twice the probability of its less likely sign, and at least 1 over the number of draws; it is below
    .05 if the 95 % interval excludes 0.

    Parameters
    ----------
    kinds
        The effects that are adjusted for each other: their names in each posterior.
    """
    found: list[dict[str, float]] = [{} for _ in posteriors]
    for kind in kinds:
        effects = [(at, name) for at, names in enumerate(kind) for name in names]
        positive = [posteriors[at].summaries[name].positive for at, name in effects]
        least = [1 / len(posteriors[at].draws) for at, _ in effects]
        p_values = holm([max(2 * min(p, 1 - p), most) for p, most in zip(positive, least, strict=True)])
        for (at, name), p in zip(effects, p_values, strict=True):
            found[at][name] = 1.0 if p is None else p
    return found
