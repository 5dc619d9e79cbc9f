from __future__ import annotations

from itertools import pairwise

import pytest

from labmates.stats.bayes.forest import draw_estimates
from labmates.stats.bayes.posterior import Summary
from labmates.stats.figures import new_figure, svg_text


@pytest.mark.parametrize("scale", [0.001, 0.15, 1.0, 30.0])
def test_numbers_below_narrow_panels_do_not_run_into_each_other(scale: float) -> None:
    figure, panels = new_figure(1.6 + 2.9 * 3, 1.6, columns=3)
    for axes in panels:
        draw_estimates(
            axes, [0.0], [Summary("x", -0.39 * scale, 0.3 * scale, -0.9 * scale, 0.12 * scale, 0.1)], 0, 1, "robust"
        )
    assert svg_text(figure)  # which lays it out
    figure.draw_without_rendering()
    for axes in panels:
        boxes = [text.get_window_extent() for text in axes.get_xticklabels() if text.get_text()]
        inside = [box for box in boxes if axes.bbox.x0 - 1 <= (box.x0 + box.x1) / 2 <= axes.bbox.x1 + 1]
        assert len(inside) >= 3
        assert all(left.x1 < right.x0 for left, right in pairwise(inside))
