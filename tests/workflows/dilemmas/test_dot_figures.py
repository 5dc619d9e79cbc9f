"""Figures of actions, adoption and ratings fit on a page for any number of mechanisms, games and models."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from _pytest.mark.structures import ParameterSet
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from labmates.stats import pooled_ratings
from labmates.stats.ratings import Cell, Scale, rate, summarise
from labmates.workflows.dilemmas import dot_figures
from labmates.workflows.dilemmas.dot_figures import Dots


def large(*values: object) -> ParameterSet:
    """A figure that takes long to draw, beside smaller ones of the same test."""
    return pytest.param(*values, marks=pytest.mark.slow("tests/workflows/dilemmas/test_dot_figures.py"))


SIZES = [(1, 1, 1), (2, 1, 3), (4, 3, 2), large((5, 6, 4)), large((9, 6, 4)), large((14, 11, 8))]
"""Numbers of mechanisms, games and models."""


def names_of(mechanisms: int, games: int, models: int) -> tuple[list[str], list[str], list[str]]:
    first = [f"mechanism-{at}+repetition" for at in range(mechanisms - 1)]
    return [*first, "none"], [f"game-{at}" for at in range(games)], [f"openai:a-long-name-{at}" for at in range(models)]


def actions(mechanisms: int, games: int, models: int, *, actions_of: int = 2) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    rows = []
    for mechanism, game, model in product(*names_of(mechanisms, games, models)):
        for action, share in enumerate(rng.dirichlet(np.ones(actions_of))):
            interval = {"share_low": max(0.0, share - 0.1), "share_high": min(1.0, share + 0.1)}
            who = {"mechanism": mechanism, "game": game, "model": model}
            rows.append({**who, "action": f"A{action}", "share": share, **interval})
    return pd.DataFrame(rows)


def check_page(figure: Figure) -> None:
    """Check that a figure is at most 9 inches high, that nothing is cut, and that no text covers another."""
    assert figure.get_size_inches()[1] <= 9
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # type: ignore[no-untyped-call]
    renderer: RendererBase = canvas.get_renderer()  # type: ignore[no-untyped-call]
    width, height = canvas.get_width_height()
    hidden = {
        tick.label1
        for axes in figure.axes
        for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, sorted(axes.get_ylim())))
        for tick in axis.get_major_ticks()
        if not low <= tick.get_loc() <= high
    }
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text) and text not in hidden]
    texts = [text for text in texts if text.get_visible() and text.get_text()]
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in texts]
    boxes = [(text, box) for text, box in boxes if box.width and box.height]
    assert len(boxes) >= 5
    for text, box in boxes:
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y1 <= height + 1, text
    for (text, box), (other, there) in combinations(boxes, 2):
        across = min(box.x1, there.x1) - max(box.x0, there.x0)
        down = min(box.y1, there.y1) - max(box.y0, there.y0)
        # The box of a line of text has room above and below its letters.
        assert across <= 1 or down <= 0.25 * min(box.height, there.height), (text, other)


def check_dots(dots: Iterable[Dots]) -> list[Figure]:
    """Check that each figure is a page as wide as a letter, and return the first and the last one."""
    each = list(dots)
    figures = [each[0].figure(), each[-1].figure()]
    for figure in figures:
        check_page(figure)
        assert figure.get_size_inches()[0] <= 6.5
    return figures


@pytest.mark.parametrize("size", SIZES)
def test_the_actions_of_each_game_fit_on_a_page_with_a_legend_of_their_own(size: tuple[int, int, int]) -> None:
    frame = actions(*size)
    words = [("cooperates", "defects"), ("defects", "cooperates")]
    names = {
        game: {f"A{at}": f"A{at} ({word})" for at, word in enumerate(words[place % 2])}
        for place, game in enumerate(names_of(*size)[1])
    }
    dots = dot_figures.actions_dots(frame, names)
    assert [each.title for each in dots] == names_of(*size)[1]
    first, *_ = check_dots(dots)
    rows = size[0] * size[2]
    marks = [line for line in first.axes[0].lines if line.get_marker() == "o"]
    assert sum(len(np.asarray(line.get_xydata())) for line in marks) == rows, "each row is drawn once"


@pytest.mark.parametrize("size", SIZES[:5])
def test_adoption_fits_on_a_page(size: tuple[int, int, int]) -> None:
    frame = actions(*size).drop(columns=["action"]).drop_duplicates(["mechanism", "game", "model"])
    for place, name in enumerate(dot_figures.ADOPTION):
        for end in ("", "_low", "_high"):
            frame[f"{name}{end}"] = frame[f"share{end}"] * (1 - place / 10)
    frame.loc[frame["mechanism"] != "none", ["delegates", "delegates_low", "delegates_high"]] = None
    figure, *_ = check_dots(dot_figures.shares_dots(frame, dot_figures.ADOPTION, "Votes and adoption"))
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(dot_figures.ADOPTION.values())


@pytest.mark.parametrize("models", [2, 4, large(8), large(30)])
def test_responses_in_a_game_fit_on_a_page(models: int) -> None:
    frames = [actions(1, 1, models).assign(before=before) for before in ("-", "A0", "A1", "A0+A1", "A1+A1")]
    frames = [frame.assign(mechanism=mechanism) for frame in frames for mechanism in ("repetition", "reputation")]
    names = {"game-0": {"A0": "A0 (cooperates)", "A1": "A1 (defects)"}}
    dots = dot_figures.actions_dots(pd.concat(frames), names)
    check_dots(dots)
    assert [(each.title, len(each.rows)) for each in dots] == [
        ("game-0, repetition", 5 * models),
        ("game-0, reputation", 5 * models),
    ]


def rated(mechanisms: int, games: int, models: int, **options: Any) -> dict[str, Dots]:
    rng = np.random.default_rng(3)
    cells = []
    for mechanism, game in product(*names_of(mechanisms, games, models)[:2]):
        # The last model is the best against everybody.
        base = np.arange(1.0, models + 1)[:, np.newaxis] + np.zeros((models, models))
        for run in range(3):
            payoffs = base + rng.normal(0, 0.05, base.shape)
            names = tuple(names_of(mechanisms, games, models)[2])
            cells.append(rate(Cell(f"{mechanism} {game} {run}", mechanism, game, names, payoffs, **options)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooled_ratings, "REPLICATES", 20)  # enough for ends to be drawn
        return dot_figures.ratings_dots(summarise(cells))


@pytest.mark.parametrize("size", [(1, 1, 2), (1, 3, 4), large((1, 6, 8)), large((5, 6, 4)), large((9, 6, 6))])
def test_ratings_fit_on_a_page_and_are_sorted(size: tuple[int, int, int]) -> None:
    dots = rated(*size, scale=Scale(0.0, 5.0))
    check_dots(dots.values())
    _, games, names = names_of(*size)
    assert sorted(dots) == sorted(["all games", *games])
    for each in dots.values():
        assert [row.rpartition(", ")[2] for row in each.rows] == names[::-1] * size[0]


def test_ratings_of_games_without_a_common_scale_are_sorted_by_their_places() -> None:
    dots = rated(1, 2, 3)
    assert list(dots) == ["game-0", "game-1"]
    figure = dots["game-0"].figure()
    rows = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert rows == ["openai:a-long-name-2", "openai:a-long-name-1", "openai:a-long-name-0"]
    [mean] = (line for line in figure.axes[0].lines if line.get_marker() == "o")
    assert np.asarray(mean.get_xdata()) == pytest.approx([3, 2, 1], abs=0.2)
