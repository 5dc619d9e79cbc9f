"""Tables of the prediction of lab outcomes, in the layout of the cooperative-profiles paper's Tables 2 and 7."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from labmates.stats.intervals import Estimate
from labmates.stats.multiplicity import mark
from labmates.stats.tables import Column, Table
from labmates_profiles.bayes.covariates import PREFIX
from labmates_profiles.clustered import clustered_ols
from labmates_profiles.prediction import Form
from labmates_profiles.prediction.data import FACTORS, PredictionData
from labmates_profiles.prediction.design_matrix import Assembled
from labmates_profiles.prediction.evidence import Evidence
from labmates_profiles.prediction.fit import BETWEEN, DATA_SET, DEVIATION, INTERCEPT, NOISE, RUN, PredictionFit
from labmates_profiles.prediction.published import PUBLISHED
from labmates_profiles.prediction.usefulness import Usefulness

if TYPE_CHECKING:
    import pandas as pd

LABELS: Final[Mapping[str, str]] = {
    INTERCEPT: "Intercept (α)",
    "thinking": "Thinking",
    "theory of mind": "Theory of mind",
    NOISE: "τ (residual SD)",
    BETWEEN: "ω (between models)",
    DEVIATION + "budget": "σ (model's reaction to budget)",
    **{DEVIATION + name: f"σ (model × {name.replace('_', ' ')})" for name in FACTORS},
    DEVIATION + "theory of mind": "σ (model's reaction to ToM)",
    DEVIATION + DATA_SET: "σ (data sets)",
    DEVIATION + RUN: "σ (runs of a condition)",
}
TITLES: Final[Mapping[Form, str]] = {
    "paper": "Prediction of lab outcomes, the paper's form",
    "robust": "Prediction of lab outcomes, robust: models differ in level and reactions",
    "correlated": "Prediction of lab outcomes, robust and with correlated dispositions",
}

HOLM: Final = (
    "† the 95 % interval excludes 0; ‡ also after Holm's adjustment for all outcomes and games (benchmarks and "
    "conditions likewise among themselves), p < .05."
)


def label(name: str) -> str:
    """A predictor's label for readers."""
    return LABELS.get(name, name.removeprefix(PREFIX))


@dataclass(frozen=True)
class OutcomeResult:
    """All results on one outcome; `p_holm` is of effects by form and name."""

    assembled: Assembled
    fits: Mapping[Form, PredictionFit]
    evidence: Evidence
    useful: Usefulness
    p_holm: Mapping[Form, Mapping[str, float]]
    verdict: tuple[str, ...]

    @property
    def warnings(self) -> list[str]:
        """The warnings about the fits, each with its form."""
        return [f"{form}: {text}" for form, fit in self.fits.items() for text in fit.warnings]

    def json(self) -> dict[str, Any]:
        """The object as JSON data."""
        return {
            "outcome": self.assembled.outcome,
            "better_than_mean": self.useful.answer,
            "usefulness": asdict(self.useful),
            **self.assembled.json(),
            "fits": {
                form: {
                    **fit.posterior.json(self.p_holm[form]),
                    "modes": [asdict(mode) for mode in fit.modes],
                    "warnings": list(fit.warnings),
                    "correlation": None if fit.correlation is None else fit.correlation.tolist(),
                }
                for form, fit in self.fits.items()
            },
            "evidence": asdict(self.evidence),
            "verdict": list(self.verdict),
        }


def effects_table(form: Form, results: Sequence[OutcomeResult]) -> Table:
    """All coefficients of one form: a row for each predictor, columns for each outcome."""
    columns = [Column("category", "Category", once=True), Column("predictor", "Predictor")]
    for result in results:
        outcome = result.assembled.outcome
        group = outcome.capitalize()
        columns.append(Column(outcome, "β", form="+.3f", group=group, marked=f"{outcome}_mark"))
        columns.append(Column(outcome, "95 % CI", form="+.3f", group=group, shows="interval"))
        if form == "paper" and outcome in PUBLISHED:
            columns.append(Column(f"{outcome}_printed", "printed", form="+.3f", group=group))
        if form != "paper":
            columns.append(Column(f"{outcome}_p", "p", form=".3f", group=group))
    rows = [
        {"category": category, "predictor": label(name), **_values(form, name, results)}
        for category, names in _categories(form, results)
        for name in names
    ]
    notes = [
        f"{result.assembled.outcome.capitalize()}: {len(result.assembled.data.outcome):,} observations of "
        f"{len(result.assembled.data.models)} models, scored by {result.assembled.judge}; {_drawn(result, form)}."
        for result in results
    ]
    if form != "paper":
        notes.insert(0, "p: sign flips of each model's own effect, over models, conditional on these data sets.")
    scales = "Games are latent dispositions; games and controls are in standard deviations between models."
    if any(column.heading == "printed" for column in columns):
        notes.append("Printed: Table 7 of the cooperative-profiles paper, from other runs scored by a model.")
    return Table(f"prediction-{form}", TITLES[form], columns, rows, [scales, HOLM, *notes])


def least_squares(data: PredictionData) -> tuple[list[str], list[Estimate] | None]:
    """The labels and estimates of least squares on observed levels, for comparison; see `clustered_ols`."""
    by_model = np.column_stack([np.ones(len(data.models)), data.levels, data.benchmarks])
    design = np.column_stack([by_model[data.model_of], data.conditions])
    names = (INTERCEPT, *data.games, *data.controls, *data.columns)
    return [label(name) for name in names], clustered_ols(design, data.outcome, data.model_of)


def _categories(form: Form, results: Sequence[OutcomeResult]) -> Iterable[tuple[str, list[str]]]:
    data = [result.assembled.data for result in results]

    def all_of(parts: Iterable[tuple[str, ...]]) -> list[str]:
        return list(dict.fromkeys(name for part in parts for name in part))

    yield "", [INTERCEPT]
    yield "Game", all_of(part.games for part in data)
    yield "Benchmark", all_of(part.controls for part in data)
    yield "Condition", all_of(part.columns for part in data)
    names = all_of(result.fits[form].posterior.names for result in results)
    yield "Variance", [name for name in names if name in (NOISE, BETWEEN) or name.startswith(DEVIATION)]


def _values(form: Form, name: str, results: Sequence[OutcomeResult]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for result in results:
        outcome = result.assembled.outcome
        if form == "paper" and name in (printed := PUBLISHED.get(outcome, {})):
            row[f"{outcome}_printed"] = printed[name]
        summary, p_holm = result.fits[form].posterior.summaries.get(name), result.p_holm[form]
        if summary is not None:
            row |= {
                outcome: summary.mean,
                f"{outcome}_low": summary.low,
                f"{outcome}_high": summary.high,
                f"{outcome}_sd": summary.sd,
                f"{outcome}_positive": summary.positive,
                f"{outcome}_credible": summary.credible and name in p_holm,
                f"{outcome}_p_holm": p_holm.get(name),
                f"{outcome}_mark": mark(summary.credible and name in p_holm, p_holm.get(name)),
            }
            if name in result.evidence.signs:
                row[f"{outcome}_p"] = result.evidence.signs[name].p
        else:
            row[outcome] = None
    return row


def _drawn(result: OutcomeResult, form: Form) -> str:
    diagnostics = result.fits[form].posterior.diagnostics
    return f"k-hat {diagnostics.k_hat:.2f}, {diagnostics.effective:,.0f} effective draws"


def predictors_table(results: Sequence[OutcomeResult]) -> Table:
    """Variance inflation and reliability of each predictor, for the models of the first outcome."""
    tests = results[0].evidence
    rows = [
        {"predictor": label(name), "inflation": value, "reliability": tests.reliability.get(name)}
        for name, value in tests.inflation.items()
    ]
    columns = [
        Column("predictor"),
        Column("inflation", "variance inflation", form=".1f"),
        Column("reliability", form=".2f"),
    ]
    return Table("prediction-predictors", "Predictors", columns, rows)


def rows_frame(outcomes: Sequence[Assembled]) -> pd.DataFrame:
    """The observations of all outcomes, one per row.

    Metrics of games, their errors, and controls are in their original units; columns are those of the regression.
    """
    import pandas as pd

    frames = []
    for assembled in outcomes:
        data, place = assembled.data, assembled.data.model_of
        levels = data.levels * assembled.level_scale.spread + assembled.level_scale.centre
        errors = data.errors * assembled.level_scale.spread
        known = data.benchmarks * assembled.control_scale.spread + assembled.control_scale.centre
        table: dict[str, Any] = {
            "outcome": assembled.outcome,
            "judge": assembled.judge,
            "unit": assembled.unit,
            "model": [data.models[at] for at in place],
            "value": data.outcome,
        }
        table |= {name: data.conditions[:, at] for at, name in enumerate(data.columns)}
        for at, game in enumerate(data.games):
            table |= {f"{game}": levels[place, at], f"{game} error": errors[place, at]}
        frames.append(pd.DataFrame(table | {name: known[place, at] for at, name in enumerate(data.controls)}))
    return pd.concat(frames, ignore_index=True)
