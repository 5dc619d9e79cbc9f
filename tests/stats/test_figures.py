"""What all figures share."""

from __future__ import annotations

import pytest

from labmates.stats.figures import new_figure, title_figure


@pytest.mark.parametrize("width", [2.0, 3.2, 7.0])
def test_a_title_is_no_wider_than_its_figure(width: float) -> None:
    figure, _ = new_figure(width, 2.0)
    title_figure(figure, "What predicts lab outcomes among models with many parameters (95 % intervals)")
    figure.draw_without_rendering()
    [title] = figure.texts
    assert title.get_window_extent().x1 <= figure.bbox.x1
