"""Figures: the files that are asked for, drawn the same each time, and refused with a reason."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labmates.errors import UsageError
from labmates.games.registry import own_games
from labmates.stats.figures import check_figure, new_figure, paged, save_figure
from labmates_profiles.profile_figures import profile_figure, profile_pages
from labmates_profiles.profiles import games_of, profiles
from tests.profiles.test_profiles import record

GAMES = ("o-ring", "common-pool")


@pytest.mark.parametrize(("ending", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_figure_is_written_in_the_format_of_its_ending_and_is_the_same_each_time(
    tmp_path: Path, ending: str, begins: bytes
) -> None:
    for name in ("one", "two"):
        figure, [axes] = new_figure(3, 2)
        axes.plot([1, 2], [3, 4], label="model")
        save_figure(figure, tmp_path / "new folder" / f"{name}.{ending}")
    one, two = ((tmp_path / "new folder" / f"{name}.{ending}").read_bytes() for name in ("one", "two"))
    assert one == two
    assert one.startswith(begins)


def test_a_figure_that_cannot_be_written_is_refused_before_it_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"ends in \.png, \.svg, \.pdf, not 'figure\.bmp'"):
        check_figure(tmp_path / "figure.bmp")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="can't write a figure"):
        check_figure(tmp_path / "file" / "figure.png")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UsageError, match="can't write a figure"):
        save_figure(new_figure(1, 1)[0], tmp_path / "folder.png")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"labmates\[plots\]"):
        check_figure(tmp_path / "figure.png")


def test_each_game_has_a_panel_in_its_own_unit_with_models_by_family_and_size() -> None:
    models = ("qwen3-32b", "nobody", "gemma-3-1b-it", "qwen3-4b")
    runs = [record(f"m:{name}", game, i, level=2.0 + i) for name in models for game in GAMES for i in range(3)]
    runs += [record("m:silent", "o-ring", 0, failed_decision_rate=1.0)]
    runs += [record("scripted:d", "o-ring", 0, level=0.0)]

    figure = profile_figure(profiles(runs), games_of(runs))
    ring, pool = figure.axes
    [legend] = figure.legends

    assert {"between both", "95 % interval", "excluded"} <= {text.get_text() for text in legend.get_texts()}
    assert [axes.get_title() for axes in (ring, pool)] == list(GAMES)
    assert [axes.get_ylabel() for axes in (ring, pool)] == ["what you withdraw", "what you take from the pool"]
    models_in_order = ["gemma-3-1b-it", "qwen3-4b", "qwen3-32b", "nobody"]
    assert [label.get_text() for label in pool.get_xticklabels()] == models_in_order
    assert [label.get_text() for label in ring.get_xticklabels()] == [*models_in_order, "silent", "d"]
    drawn: list[Any] = [line for line in ring.lines if np.size(line.get_xdata()) == 1]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in drawn[:4]] == [(at, 3.0) for at in range(4)]
    assert drawn[0].get_color() != drawn[1].get_color() == drawn[2].get_color()
    assert drawn[1].get_markersize() < drawn[2].get_markersize()
    assert (drawn[4].get_marker(), drawn[4].get_label()) == ("x", "excluded")
    heights: dict[str, Any] = {str(line.get_label()): line.get_ydata() for line in ring.lines}
    assert (heights["equilibrium"][0], heights["social optimum"][0]) == (0, 6)


def test_a_game_under_other_rules_has_a_panel_of_its_own() -> None:
    runs = [record("m:a", "public-goods", i, level=5.0) for i in range(2)]
    small = [replace(run, key="k", condition={**run.condition, "group_size": 2}) for run in runs]
    runs = [replace(run, condition={**run.condition, "group_size": 5}) for run in runs]

    figure = profile_figure(profiles([*runs, *small]), games_of([*runs, *small]))

    titles = ["public-goods (group_size=2)", "public-goods (group_size=5)"]
    assert [axes.get_title() for axes in figure.axes] == titles
    nash, best = (line.get_ydata()[0] for line in figure.axes[0].lines[:2])  # type: ignore[index]
    assert nash == best, "drawn all the same"


@pytest.mark.parametrize(("models", "sizes", "pages"), [(12, 1, [6]), (7, 2, [4, 4, 4]), (20, 2, [2] * 6)])
def test_profiles_of_many_games_continue_on_further_pages(models: int, sizes: int, pages: list[int]) -> None:
    played = [record(f"m:model-{m}", game, i, level=2.0) for m in range(models) for game in own_games() for i in (0, 1)]
    runs = [
        replace(run, key=f"{run.key}-{size}", condition={**run.condition, "group_size": size})
        for run in played
        for size in range(4, 4 + sizes)
    ]
    measured, games = profiles(runs), games_of(runs)
    found = profile_pages(measured, games)
    assert list(map(len, found)) == pages
    titles = []
    for page in found:
        figure = profile_figure(measured, games, page)
        width, height = figure.get_size_inches()
        assert (width <= 6.5, height <= 9) == (True, True)
        titles += [axes.get_title().partition(" ")[0] for axes in figure.axes if axes.get_visible()]
    assert titles == [game.name for page in found for game in page]
    assert len(set(titles)) == 6


def test_the_pages_of_a_figure_have_names_and_titles_of_their_own() -> None:
    drawings = paged("actions", "Actions", "alt", [lambda: new_figure(1, 1)[0]] * 2)
    assert [drawing.name for drawing in drawings] == ["actions", "actions-2"]
    assert [drawing.title for drawing in drawings] == ["Actions, page 1 of 2", "Actions, page 2 of 2"]
    [alone] = paged("actions", "Actions", "alt", [lambda: None])
    assert (alone.name, alone.title, alone.draw()) == ("actions", "Actions", None)
