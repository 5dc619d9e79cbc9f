"""How often the 95 % intervals of game effects hold the truth, in simulated studies of lab outcomes.

    python -m benchmarks.coverage_prediction --studies 100

Each study has the 34 models of the cooperative-profiles paper with their benchmark scores, 1,462 observations, and the
published coefficients (T7) or games without any effect (null). What varies: how much models differ beyond the
predictors (ω/τ), and how strongly dispositions with and without sanctions correlate. Rows are written as they come.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from itertools import product

import numpy as np

from labmates.analysis.bayes.prediction import fit_prediction
from labmates.analysis.bayes.prediction_density import FORMS, Form
from labmates.analysis.bayes.prediction_simulation import GAMES, simulate_prediction
from labmates.games.base import Array
from labmates.models.roster import roster

LEFT_OUT = "qwen3.5-4b"
"""Of the paper's 35 models, the one that it leaves out of this analysis."""
DRAWS = 600


def controls_of_roster() -> Array:
    """Return IFEval, MMLU-Pro, log10 of the size and whether it thinks, of the paper's 34 models."""
    kept = [one for one in roster() if one.name != LEFT_OUT]
    return np.array([[one.ifeval, one.mmlu_pro, np.log10(one.size), one.thinking] for one in kept], dtype=float)


def coverage(
    outcome: str, effects: str, between: float, correlation: float, studies: int
) -> Iterator[tuple[Form, float, float, float, float, float]]:
    """Yield for each form: coverage, lowest of a game, share of "credible" effects, studies with any, bad k-hats."""
    covered: dict[Form, list[list[bool]]] = {form: [] for form in FORMS}
    credible: dict[Form, list[list[bool]]] = {form: [] for form in FORMS}
    bad = dict.fromkeys(FORMS, 0)
    for seed in range(studies):
        study = simulate_prediction(
            np.random.default_rng([seed, 7]),
            outcome,
            effects=[0.0] * len(GAMES) if effects == "null" else None,
            between=between,
            correlation=correlation,
            benchmarks=controls_of_roster(),
        )
        for form in FORMS:
            fit = fit_prediction(study.data, form, draws=DRAWS, starts=1, seed=seed)
            found = [fit.posterior.summaries[game] for game in GAMES]
            covered[form].append(
                [one.low <= true <= one.high for one, true in zip(found, study.truth.games, strict=True)]
            )
            credible[form].append([one.credible for one in found])
            bad[form] += (fit.posterior.diagnostics.k_hat or 0) > 0.7
    for form in FORMS:
        hit, claim = np.array(covered[form]), np.array(credible[form])
        yield form, hit.mean(), hit.mean(axis=0).min(), claim.mean(), claim.any(axis=1).mean(), bad[form] / studies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--outcome", default="quality")
    parser.add_argument("--between", type=float, nargs="*", default=[0.0, 0.25, 0.5, 1.0])
    parser.add_argument("--correlation", type=float, nargs="*", default=[0.8, 0.95])
    parser.add_argument("--effects", nargs="*", default=["null", "T7"])
    given = parser.parse_args()
    print(
        "| outcome | effects | corr | ω/τ | form | coverage | lowest | credible | any credible | k-hat > 0.7 | CPU s |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for between, correlation, effects in product(given.between, given.correlation, given.effects):
        began = time.process_time()
        for form, *numbers in coverage(given.outcome, effects, between, correlation, given.studies):
            cells = " | ".join(f"{number:.3f}" for number in numbers)
            spent = time.process_time() - began
            print(
                f"| {given.outcome} | {effects} | {correlation} | {between} | {form} | {cells} | {spent:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
