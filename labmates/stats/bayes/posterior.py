"""Posteriors of fitted models: draws, summaries, and diagnostics of the draws."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from labmates.stats.arrays import Array
from labmates.stats.bayes.importance import LEAST_EFFECTIVE, Sample
from labmates.stats.bayes.smoothing import GOOD_K
from labmates.stats.multiplicity import holm

if TYPE_CHECKING:
    import pandas as pd

GOOD_R_HAT = 1.01
AGREE = 0.1
"""Maximum difference of means between importance sampling and NUTS, in posterior standard deviations."""
IMPORTANCE, NUTS = "importance sampling", "NUTS"


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
class Diagnostics:
    """Diagnostics of draws.

    Attributes
    ----------
    method
        ``importance sampling`` or ``NUTS``.
    effective
        Effective number of draws; for NUTS, the minimum over parameters.
    k_hat
        Of importance sampling; above 0.7 the draws can't be trusted.
    r_hat
        Of NUTS, the maximum over parameters; above 1.01 the chains disagree.
    divergences
        Of NUTS.
    warnings
        Problems with their remedies.
    """

    method: str
    draws: int
    effective: float
    k_hat: float | None = None
    r_hat: float | None = None
    divergences: int | None = None
    warnings: tuple[str, ...] = ()


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

    def frame(self) -> pd.DataFrame:
        """One row per parameter: ``name``, ``mean``, ``sd``, ``low``, ``high``, ``positive``, ``credible``."""
        import pandas as pd

        return pd.DataFrame([{**asdict(summary), "credible": summary.credible} for summary in self.summaries.values()])

    def json(self, p_holm: Mapping[str, float] | None = None) -> dict[str, Any]:
        """Summaries and diagnostics as JSON data, with Holm-adjusted p values where given."""
        adjusted = p_holm or {}
        parameters = [
            {**asdict(summary), "credible": summary.credible, "p_holm": adjusted.get(name)}
            for name, summary in self.summaries.items()
        ]
        return {"parameters": parameters, "diagnostics": asdict(self.diagnostics)}


def adjusted(effects: Sequence[tuple[Posterior, str]]) -> list[float]:
    """Holm-adjusted p values of the effects in one table.

    An effect's p is twice the probability of its less likely sign, and at least 1 over the number of draws; it is below
    .05 if the 95 % interval excludes 0.
    """
    p_values = []
    for posterior, name in effects:
        positive = posterior.summaries[name].positive
        p_values.append(max(2 * min(positive, 1 - positive), 1 / len(posterior.draws)))
    return [1.0 if p is None else p for p in holm(p_values)]


def from_sample(names: Sequence[str], draws: Array, sample: Sample) -> Posterior:
    """The posterior from importance sampling; `draws` include derived parameters, shape ``(draws, parameters)``."""
    warnings = []
    if sample.k_hat > GOOD_K:
        warnings.append(
            f"k-hat is {sample.k_hat:.2f}, above {GOOD_K}: a few draws carry most of the weight, even after the "
            f"proposal was adapted, widened and sampled with more draws ({sample.attempts} attempts), so means and "
            "intervals can't be trusted. Compare them with --check-nuts (extra 'analysis'). Often the cause "
            "is too little data for the model: more models or games, or the simpler specification, help."
        )
    elif sample.effective < LEAST_EFFECTIVE:
        warnings.append(_few(sample.effective, "ask for more draws"))
    return Posterior(
        tuple(names),
        draws,
        Diagnostics(IMPORTANCE, len(draws), sample.effective, k_hat=sample.k_hat, warnings=tuple(warnings)),
    )


def from_chains(names: Sequence[str], chains: Array, *, divergences: int) -> Posterior:
    """The posterior from NUTS chains of shape ``(chains, draws, parameters)``."""
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    r_hat = float(np.max(split_gelman_rubin(chains)))
    effective = float(np.min(effective_sample_size(chains)))
    warnings = []
    if not r_hat <= GOOD_R_HAT:
        warnings.append(
            f"R-hat is {r_hat:.3f}, above {GOOD_R_HAT}: the chains of NUTS do not agree with each other yet. Run them "
            "longer (--nuts-draws), and do not use this cross-check as evidence until they do."
        )
    if divergences:
        warnings.append(
            f"{divergences} transitions of NUTS diverged: there may be a region that it could not enter. Trust the "
            "importance sampler if its k-hat is good."
        )
    if effective < LEAST_EFFECTIVE:
        warnings.append(_few(effective, "run the chains longer (--nuts-draws)"))
    draws = chains.reshape(-1, chains.shape[-1])
    diagnostics = Diagnostics(
        NUTS, len(draws), effective, r_hat=r_hat, divergences=divergences, warnings=tuple(warnings)
    )
    return Posterior(tuple(names), draws, diagnostics)


def _few(effective: float, advice: str) -> str:
    return (
        f"only {effective:.0f} effective draws, fewer than {LEAST_EFFECTIVE}: the ends of 95 % intervals are "
        f"uncertain; {advice}."
    )


def difference(ours: Posterior, theirs: Posterior) -> dict[str, float]:
    """The difference of two fits' means in posterior standard deviations, for each common parameter."""
    return {
        name: abs(ours.summaries[name].mean - theirs.summaries[name].mean) / ours.summaries[name].sd
        for name in ours.names
        if name in theirs.names
    }


def furthest(ours: Posterior, theirs: Posterior) -> tuple[float, str]:
    """The largest difference of means in posterior standard deviations, and its parameter."""
    differences = difference(ours, theirs)
    name = max(differences, key=differences.__getitem__)
    return differences[name], name


@dataclass(frozen=True)
class CrossCheck:
    """The comparison of a fit with NUTS.

    Attributes
    ----------
    name
        Of the fit.
    most
        The largest difference of means in posterior standard deviations, at `parameter`.
    """

    name: str
    posterior: Posterior
    most: float
    parameter: str

    @classmethod
    def of(cls, name: str, ours: Posterior, theirs: Posterior) -> CrossCheck:
        """The comparison of a fit with that of NUTS."""
        return cls(name, theirs, *furthest(ours, theirs))

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        diagnostics = self.posterior.diagnostics
        start = (
            f"NUTS ({self.name}): R-hat {diagnostics.r_hat:.3f}, {diagnostics.effective:.0f} effective draws; "
            "means differ by"
        )
        if self.most <= AGREE:
            return f"{start} {self.most:.3f} posterior standard deviations at most."
        return (
            f"{start} {self.most:.2f} posterior standard deviations for {self.parameter}, more than {AGREE}: run both "
            "longer, and trust neither until they agree."
        )
