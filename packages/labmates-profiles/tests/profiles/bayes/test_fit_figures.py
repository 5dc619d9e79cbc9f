from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from labmates.stats.figures import new_figure, svg_text
from labmates_profiles.bayes.figures import draw_forest
from labmates_profiles.bayes.importance import Diagnostics
from labmates_profiles.bayes.posterior import Posterior


@pytest.mark.parametrize("scale", [0.001, 0.15, 1.0, 30.0])
def test_numbers_below_narrow_panels_do_not_run_into_each_other(scale: float) -> None:
    figure, panels = new_figure(1.6 + 2.9 * 3, 1.6, columns=3)
    draws = np.array([-0.9, -0.39, 0.12])[:, None] * scale
    fitted = Posterior(("x",), draws, Diagnostics(3, 3.0, 0.0))
    for axes in panels:
        draw_forest(axes, ["x"], {"robust": fitted}, str, "")
    assert svg_text(figure)  # which lays it out
    figure.draw_without_rendering()
    for axes in panels:
        boxes = [text.get_window_extent() for text in axes.get_xticklabels() if text.get_text()]
        inside = [box for box in boxes if axes.bbox.x0 - 1 <= (box.x0 + box.x1) / 2 <= axes.bbox.x1 + 1]
        assert len(inside) >= 3
        assert all(left.x1 < right.x0 for left, right in pairwise(inside))
