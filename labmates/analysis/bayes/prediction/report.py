"""From the data of outcomes to all that is said of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from labmates.analysis.bayes.importance import DRAWS
from labmates.analysis.bayes.posterior import Posterior
from labmates.analysis.bayes.prediction.assembly import Assembled
from labmates.analysis.bayes.prediction.density import FORMS, Form
from labmates.analysis.bayes.prediction.evidence import Evidence, evidence, verdict
from labmates.analysis.bayes.prediction.fit import PredictionFit, fit_prediction
from labmates.analysis.bayes.prediction.nuts import fit_nuts
from labmates.analysis.bayes.prediction.tables import OutcomeResult
from labmates.analysis.bayes.prediction.usefulness import Usefulness, usefulness


def predict_outcomes(
    outcomes: Sequence[Assembled],
    *,
    forms: Sequence[Form] = FORMS,
    draws: int = DRAWS,
    seed: int = 0,
    check: bool = False,
    watch: Callable[[str], None] | None = None,
) -> list[OutcomeResult]:
    """Fit the model to each outcome (cooperative-profiles paper, section 4.1.2).

    Parameters
    ----------
    outcomes
        Their data; see `labmates.analysis.bayes.prediction.assembly`.
    check
        Fit each once more by NUTS.
    watch
        Told what is being done.

    Raises
    ------
    MissingExtraError
        If a check is asked for without the extra `analysis`.
    """
    found = {one.outcome: (one.data, evidence(one.data, seed=seed)) for one in outcomes}
    useful = usefulness(found)
    return [
        _result(one, found[one.outcome][1], useful[one.outcome], forms, draws, seed, check, watch or (lambda _: None))
        for one in outcomes
    ]


def _result(
    one: Assembled,
    found: Evidence,
    useful: Usefulness,
    forms: Sequence[Form],
    draws: int,
    seed: int,
    check: bool,
    watch: Callable[[str], None],
) -> OutcomeResult:
    fits: dict[Form, PredictionFit] = {}
    checks: dict[Form, Posterior] = {}
    for form in forms:
        watch(f"{one.outcome}: the form {form}")
        fits[form] = fit_prediction(one.data, form, draws=draws, seed=seed)
        if check:
            watch(f"{one.outcome}: the form {form} by NUTS")
            checks[form] = fit_nuts(one.data, form, seed=seed)
    said = (useful.sentence, *verdict(one.outcome, fits, found, useful.p_holm))
    return OutcomeResult(one, fits, checks, found, useful, said)
