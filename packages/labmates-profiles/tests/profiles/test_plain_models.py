"""The fast densities are the marginals of the models as one would write them down."""

from __future__ import annotations

import numpy as np
import pytest

from labmates_profiles.prediction import FORMS, Form
from labmates_profiles.prediction.density import Collapsed
from labmates_profiles.proximity.cells import REFERENCE_GAME, collapse, with_predictors
from labmates_profiles.proximity.mixed import PAPER, MixedModel
from tests.profiles.bayes.studies import ROBUST, small_design
from tests.profiles.plain_models import marginal, prediction_rows, proximity_rows
from tests.profiles.prediction.test_fit import with_data_sets
from tests.profiles.simulated_proximity import CLUSTERED, simulated_rows, true_names

pytestmark = pytest.mark.usefixtures("quick_compilation")


@pytest.mark.parametrize("components", [PAPER, ROBUST])
def test_the_regression_of_cooperation_has_the_density_of_its_rows(components: tuple[str, ...]) -> None:
    pytest.importorskip("numpyro")
    design = small_design(5, 300)
    rows = with_predictors(simulated_rows(design, CLUSTERED, seed=1), REFERENCE_GAME)
    model = MixedModel(collapse(rows, "pareto_proximity", true_names(design)), components)
    points = np.array([[0.11, 0.07, 0.05, 0.04, 0.03, 0.02, 0.2, 0.06], [0.1, 0.02, 0.1, 0.01, 0.08, 0.01, 0.1, 0.03]])
    points = points[:, : len(model.deviations)]

    integrated = marginal(*proximity_rows(rows, "pareto_proximity", model))
    first, second = (integrated({"deviations": point}) for point in points)

    ours = model.log_density(points)
    assert first - second == pytest.approx(ours[0] - ours[1], abs=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_the_prediction_of_an_outcome_has_the_density_of_its_rows(form: Form) -> None:
    pytest.importorskip("numpyro")
    model = Collapsed(with_data_sets(models=9, rows=60), form)
    points = np.abs(np.random.default_rng(3).normal(0.4, 0.2, (2, model.size)))
    logarithms = [2 * model.games, *([model.size - 1] if "run" in model.tail else [])]
    points[:, logarithms] = np.log(points[:, logarithms])
    integrated = marginal(*prediction_rows(model))
    found = []
    for point in points:
        hyper = model.parts(point[None])
        sites = {"effect": hyper.effect[0], "spread": hyper.spread[0], "tau": hyper.noise[0]}
        if form != "paper":
            sites |= {"omega": hyper.between[0], "reactions": hyper.reactions[0]}
            sites |= {"shift": hyper.shift[0], "run": hyper.run[0]}
        jacobian = np.log(hyper.noise[0]) + (np.log(hyper.run[0]) if "run" in model.tail else 0.0)
        found.append(integrated(sites) + jacobian)

    ours = model.log_density(points)
    assert found[0] - found[1] == pytest.approx(ours[0] - ours[1], abs=1e-5)
