"""The default engine and NUTS agree; the paper's own way to write the model gives the same."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from benchmarks.plain_models import prediction_plain, prediction_rows
from labmates.errors import MissingExtraError
from labmates.stats.bayes.posterior import difference
from labmates.workflows.games.prediction import FORMS, Form
from labmates.workflows.games.prediction.density import Collapsed
from labmates.workflows.games.prediction.fit import fit_prediction
from labmates.workflows.games.prediction.nuts import collapsed, fit_nuts
from tests.workflows.games.prediction.test_fit import small, with_data_sets


@pytest.mark.usefixtures("quick_compilation")
@pytest.mark.parametrize(
    ("form", "written"),
    [*((form, collapsed) for form in FORMS), ("paper", prediction_plain), ("robust", prediction_plain)],
)
def test_the_density_that_nuts_samples_has_the_marginal_of_the_other(form: Form, written: Any) -> None:
    """Given the others the coefficients are normal: the density at one point and its curvature tell the rest."""
    jax = pytest.importorskip("jax")
    from numpyro.infer.util import log_density

    data = with_data_sets(models=9, rows=60)
    model = Collapsed(data, form)
    points = np.abs(np.random.default_rng(3).normal(0.4, 0.2, (2, model.size)))
    logarithms = [2 * model.games, *([model.size - 1] if "run" in model.tail else [])]
    points[:, logarithms] = np.log(points[:, logarithms])
    density, given = written(model)
    sizes = {"mu": 3, "intercept": 1, "columns": 4, "controls": 1, "d": len(data.runs.data_sets) if data.runs else 0}
    if written is prediction_plain:
        sizes |= {"z": 9 * 3, "u": 9, "s": 9 * len(model.reactions.factor)}
    ends = np.cumsum(list(sizes.values()))

    def at(linear: Any, hyper: Any) -> Any:
        parts = dict(zip(sizes, jax.numpy.split(linear, ends[:-1]), strict=True))
        sites = {**parts, **hyper, "intercept": parts["intercept"][0]}
        for name in ("z", "s"):
            if name in sites:
                sites[name] = sites[name].reshape(9, -1)
        for name in ("d", "u", "s") if form == "paper" else ():
            sites.pop(name, None)
        return log_density(density, (given,), {}, sites)[0]

    with jax.enable_x64(True):
        told = jax.jit(lambda x, hyper: (at(x, hyper), jax.grad(at)(x, hyper), jax.hessian(at)(x, hyper)))
        found = []
        for point in points:
            hyper = model.parts(point[None])
            sites = {"effect": hyper.effect[0], "spread": hyper.spread[0], "tau": hyper.noise[0]}
            if form != "paper":
                sites |= {"omega": hyper.between[0], "reactions": hyper.reactions[0]}
                sites |= {"shift": hyper.shift[0], "run": hyper.run[0]}
            value, slope, curvature = map(np.asarray, told(np.zeros(ends[-1]), sites))
            kept = np.diagonal(curvature) != 0  # the paper's form has no data sets
            precision, slope = -curvature[np.ix_(kept, kept)], slope[kept]
            marginal = value + 0.5 * slope @ np.linalg.solve(precision, slope)
            jacobian = np.log(hyper.noise[0]) + (np.log(hyper.run[0]) if "run" in model.tail else 0.0)
            found.append(marginal - 0.5 * np.linalg.slogdet(precision)[1] + jacobian)

    ours = model.log_density(points)

    assert found[0] - found[1] == pytest.approx(ours[0] - ours[1], abs=1e-6)


@pytest.mark.slow
def test_nuts_on_the_collapsed_density_agrees_within_a_tenth_of_a_standard_deviation() -> None:
    data = with_data_sets(models=10, rows=60, games=2)
    ours = fit_prediction(data, "correlated", draws=8000)
    theirs = fit_nuts(data, "correlated", warm_up=300, draws=1000, chains=2)
    assert max(difference(ours.posterior, theirs).values()) < 0.1
    assert theirs.diagnostics.r_hat is not None
    assert theirs.diagnostics.r_hat <= 1.01


def test_without_numpyro_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpyro", None)
    with pytest.raises(MissingExtraError, match="analysis"):
        fit_nuts(small())
    with pytest.raises(ValueError, match="independent"):
        prediction_rows(small(), "correlated")
    assert np.isfinite(small().outcome).all()
