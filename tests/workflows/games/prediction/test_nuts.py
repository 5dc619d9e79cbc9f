"""The default engine and NUTS agree; the paper's own way to write the model gives the same."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from benchmarks.plain_models import prediction_rows
from labmates.errors import MissingExtraError
from labmates.stats.bayes.posterior import difference
from labmates.workflows.games.prediction.fit import fit_prediction
from labmates.workflows.games.prediction.forms import Form
from labmates.workflows.games.prediction.nuts import fit_nuts
from tests.workflows.games.prediction.test_fit import small, with_data_sets


@pytest.mark.slow
@pytest.mark.parametrize("form", ["robust", "correlated"])
def test_nuts_on_the_collapsed_density_agrees_within_a_tenth_of_a_standard_deviation(form: Form) -> None:
    data = with_data_sets(models=20, rows=120, games=2)
    ours = fit_prediction(data, form, draws=8000)
    theirs = fit_nuts(data, form, warm_up=300, draws=1250, chains=2)
    assert max(difference(ours.posterior, theirs).values()) < 0.1
    assert theirs.diagnostics.r_hat is not None
    assert theirs.diagnostics.r_hat <= 1.01


@pytest.mark.slow
def test_the_model_of_rows_agrees_within_a_tenth_of_a_standard_deviation() -> None:
    data = with_data_sets(models=20, rows=120, games=2)
    ours = fit_prediction(data, "robust", draws=8000)
    theirs = prediction_rows(data, "robust", warm_up=400, draws=1500, chains=2)
    assert max(difference(ours.posterior, theirs).values()) < 0.1


def test_without_numpyro_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(MissingExtraError, match="analysis"):
        fit_nuts(small())
    with pytest.raises(ValueError, match="independent"):
        prediction_rows(small(), "correlated")
    assert np.isfinite(small().outcome).all()
