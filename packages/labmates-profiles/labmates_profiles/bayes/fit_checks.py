"""Checks of fitted models: goodness of fit, out-of-sample prediction by form, and sensitivity to priors.

Sources: posterior predictive checks, Gelman, Meng and Stern (Statistica Sinica 1996); leave-one-group-out comparison,
Vehtari, Gelman and Gabry (Statistics and Computing 2017); power-scaling of the prior, Kallioinen, Paananen, Bürkner and
Vehtari (Statistics and Computing 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from labmates.stats.intervals import quantile
from labmates.stats.multiplicity import holm
from labmates.stats.tables import Column, P, Table
from labmates_profiles.arrays import Array
from labmates_profiles.bayes.blocks import Block, Evaluated
from labmates_profiles.bayes.smoothing import GOOD_K, smooth

if TYPE_CHECKING:
    import pandas as pd

SENSITIVE: Final = 0.1
"""Minimum shift of a mean, in posterior standard deviations for a doubled prior weight, that marks sensitivity."""
SHOWN: Final = 10
"""Rows of long tables shown on a screen."""
POWERS: Final = (0.8, 1.25)
_STATISTICS: Final[Mapping[str, Callable[[Array], Array]]] = {
    "standard deviation": lambda values: values.std(axis=1),
    "skewness": lambda values: _skewness(values),
    "smallest": lambda values: values.min(axis=1),
    "largest": lambda values: values.max(axis=1),
}


def _skewness(values: Array) -> Array:
    away = values - values.mean(axis=1, keepdims=True)
    return np.asarray((away**3).mean(axis=1) / np.maximum((away**2).mean(axis=1), 1e-300) ** 1.5)


def p_values(fit: Evaluated) -> Array:
    """Two-sided posterior predictive p of each outcome, shape (n,)."""
    from scipy.stats import norm

    above = norm.sf((fit.observed - fit.expected) / fit.spread).mean(axis=0)
    return np.asarray(2 * np.minimum(above, 1 - above))


def cells_table(fit: Evaluated) -> Table:
    """Observed and predicted outcomes, worst fit first."""
    p = p_values(fit)
    low, high = np.quantile(fit.replicated, [0.025, 0.975], axis=0)
    adjusted = holm(p.tolist())
    rows = [
        {
            "cell": fit.cells[at],
            "count": int(fit.count[at]),
            "observed": fit.observed[at],
            "predicted": fit.replicated[:, at].mean(),
            "predicted_low": low[at],
            "predicted_high": high[at],
            "p": p[at],
            "p_holm": adjusted[at],
        }
        for at in np.argsort(p, kind="stable")
    ]
    columns = [Column("cell"), Column("count"), Column("observed"), Column("predicted", shows="both")]
    columns += [Column("p", form=P), Column("p_holm", "p (Holm)", P)]
    title = f"{fit.name}: observed and predicted {fit.outcome}"
    return Table(f"check-{fit.name}-cells", title, columns, rows, shown=SHOWN)


def statistics_table(fit: Evaluated) -> Table:
    """Summary statistics of the observed and the predicted outcomes."""
    from scipy.stats import norm

    def row(name: str, observed: float, drawn: Array, p: float | None) -> dict[str, object]:
        low, high = np.quantile(drawn, [0.025, 0.975])
        predicted = {"predicted": drawn.mean(), "predicted_low": low, "predicted_high": high}
        return {"statistic": name, "observed": observed, **predicted, "p": p}

    rows = []
    for name, statistic in _STATISTICS.items():
        observed, drawn = float(statistic(fit.observed[None])[0]), statistic(fit.replicated)
        above = float((drawn >= observed).mean())
        tail = min(1.0, max(2 * min(above, 1 - above), 1 / len(drawn)))
        rows.append(row(f"{name} of outcomes", observed, drawn, tail))
    share = float((p_values(fit) < 0.05).mean())
    rows.append({"statistic": "share of outcomes with p < .05", "observed": share, "predicted": 0.05})
    if fit.observed.min() >= 0 and fit.observed.max() <= 1:
        weight, noise = fit.count / fit.count.sum(), fit.noise[:, None]
        outside = norm.sf((1 - fit.expected) / noise) + norm.cdf(-fit.expected / noise)
        rows.append(row("share of single results below 0 or above 1", 0.0, outside @ weight, None))
    columns = [Column("statistic"), Column("observed"), Column("predicted", shows="both"), Column("p", form=P)]
    note = "Predicted: for new data of the same models, with 95 % intervals. Scores are bounded; predictions are not."
    return Table(f"check-{fit.name}-statistics", f"{fit.name}: the data as a whole", columns, rows, [note])


def left_out(models: Sequence[str], blocks: Iterator[Block], *, seed: int = 0) -> pd.DataFrame:
    """The quality of a form's predictions for each model, given the blocks of fits without it.

    Returns
    -------
    DataFrame
        By model: log predictive ``density`` of its outcomes, their mean minus the predicted one (``missed``), and
        whether that one's 95 % interval contains it (``held``).
    """
    import pandas as pd

    rng = np.random.default_rng([seed, 5])
    rows = []
    for block in blocks:
        logs = block.log_density()
        drawn = block.predicted(rng).mean(axis=1)
        low, high = np.quantile(drawn, [0.025, 0.975])
        observed = float(block.outcome.mean())
        density = logs.max() + np.log(np.exp(logs - logs.max()).mean())
        rows.append({"density": density, "missed": observed - drawn.mean(), "held": low <= observed <= high})
    return pd.DataFrame(rows, index=list(models))


def comparison_table(name: str, forms: Mapping[str, pd.DataFrame]) -> Table:
    """Forms by their predictions for models left out (`left_out`), the best first."""
    ordered = sorted(forms, key=lambda form: -forms[form]["density"].sum())
    rows = []
    for form in ordered:
        found, is_best = forms[form], form == ordered[0]
        loss, m = found["density"] - forms[ordered[0]]["density"], len(found)
        half = quantile(m - 1) * float(loss.std() * np.sqrt(m))
        rows.append(
            {
                "form": form,
                "elpd": found["density"].sum(),
                "difference": loss.sum(),
                "difference_low": None if is_best else loss.sum() - half,
                "difference_high": None if is_best else loss.sum() + half,
                "error": np.sqrt((found["missed"] ** 2).mean()),
                "held": found["held"].mean(),
                "models": m,
                "worst": found["density"].idxmin(),
            }
        )
    columns = [Column("form"), Column("elpd", "log predictive density", ".1f")]
    columns += [Column("difference", "less than the best", ".1f", "both"), Column("error", "error of the mean")]
    columns += [Column("held", "held in 95 %", ".2f"), Column("models"), Column("worst", "worst predicted")]
    notes = [
        "Each model is left out in turn, the rest is fitted again, and its outcomes are predicted. In brackets the 95 "
        "% t interval over models; if it contains 0, the data do not distinguish the forms.",
        "Error: root mean square difference between models' mean and predicted outcomes; held: share of means in their "
        "95 % interval.",
    ]
    return Table(f"check-{name}-left-out", f"{name}: models left out in turn", columns, rows, notes)


def sensitivity_table(fit: Evaluated) -> Table:
    """The shift of each mean in posterior standard deviations when the prior counts twice."""
    log_prior = fit.log_prior
    shifted, worst = {}, 0.0
    draws = fit.posterior.draws[: len(log_prior)]
    sd = np.maximum(draws.std(axis=0), 1e-300)
    for power in POWERS:
        weights, k_hat = smooth((power - 1) * log_prior)
        worst = max(worst, k_hat)
        shifted[power] = weights @ draws
    shift = (shifted[POWERS[1]] - shifted[POWERS[0]]) / np.log2(POWERS[1] / POWERS[0]) / sd
    rows = [
        {"parameter": fit.posterior.names[at], "mean": draws[:, at].mean(), "sd": sd[at], "shift": shift[at]}
        for at in np.argsort(-np.abs(shift), kind="stable")
    ]
    marked = [{**row, "mark": abs(row["shift"]) > SENSITIVE} for row in rows]
    columns = [Column("parameter"), Column("mean"), Column("sd"), Column("shift", form="+.3f", marked="mark")]
    notes = [
        "Shift: change of the mean in posterior standard deviations when all priors count twice (power-scaling "
        f"between {POWERS[0]:g} and {POWERS[1]:g}). † more than {SENSITIVE:g}: the prior matters; it matters less with "
        "more models."
    ]
    if worst > GOOD_K:
        notes.append(f"k-hat of the weights is {worst:.2f}, above {GOOD_K}: these shifts are unreliable.")
    title = f"{fit.name}: how much priors matter"
    return Table(f"check-{fit.name}-priors", title, columns, marked, notes, shown=SHOWN)


def verdict(fit: Evaluated) -> str:
    """The result of the checks of a fit, as a sentence."""
    p = p_values(fit)
    bad = [at for at, value in enumerate(holm(p.tolist())) if value is not None and value < 0.05]
    share = float((p < 0.05).mean())
    rows = {row["parameter"]: row["shift"] for row in sensitivity_table(fit).rows if row["mark"]}
    fits = (
        f"{len(bad)} of {len(p)} outcomes contradict the model even after Holm's adjustment, first of "
        f"all {fit.cells[min(bad, key=lambda at: p[at])]}."
        if bad
        else f"No single outcome contradicts the model ({share:.0%} of {len(p)} have p < .05, 5 % are expected)."
    )
    priors = f" Priors matter for {', '.join(list(rows)[:5])}." if rows else " No mean depends on the priors."
    return f"{fit.name}: {fits}{priors}"
