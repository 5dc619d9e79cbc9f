"""Figures: the files that are asked for, drawn the same each time, and refused with a reason."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from labmates.errors import UsageError
from labmates.games.references import references
from labmates.games.registry import make_game
from labmates.stats.figures import check_figure, new_figure, save_figure
from labmates.workflows.games.convergence import convergence
from labmates.workflows.games.profile_figures import convergence_figure, profile_figure
from labmates.workflows.games.profiles import profiles
from tests.workflows.games.test_profiles import record

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


def test_a_profile_is_drawn_between_the_equilibrium_and_the_best_play() -> None:
    runs = [record("m:a", "o-ring", i, level=level) for i, level in enumerate((2.0, 4.0))]
    runs += [record("m:a", "common-pool", 0, level=0.0), record("m:b", "o-ring", 0, level=30.0)]
    runs += [record("m:silent", "o-ring", 0, failed_decision_rate=1.0)]
    plays = {name: references(make_game(name)) for name in GAMES}
    found = profiles(runs, {})
    [axes] = profile_figure(found, profiles([record("s:d", "o-ring", 0, level=0.0)], {}), plays).axes
    drawn: dict[str, Any] = {str(line.get_label()): line for line in axes.lines}
    assert list(drawn["s:d"].get_xdata()) == [0.0]
    points: dict[str, Any] = {str(one.get_label()): one for one in axes.containers}
    assert {name: list(one.lines[0].get_xdata()) for name, one in points.items()} == {"m:a": [0.5, 1.0], "m:b": [2.0]}
    assert [text.get_text() for text in axes.texts] == ["→ 5.0"]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(GAMES)


def test_convergence_is_drawn_with_the_reliability_where_there_are_models_to_tell_apart() -> None:
    runs = [record(f"m:{m}", "o-ring", i, level=m + i / 10) for m in range(3) for i in range(4)]
    assert len(convergence_figure(convergence(runs)).axes) == 2
    assert len(convergence_figure(convergence(runs[:4])).axes) == 1
