"""Tables and figures of evolutions."""

from __future__ import annotations

import numpy as np
from matplotlib.text import Text

from labmates_populations.figures import evolution_figure
from labmates_populations.outcomes import EvolutionResult, winners_table


def test_winners_under_other_settings_are_told_apart() -> None:
    common = {"game": "public-goods", "group_size": 4, "protocol": "paper", "generations": 200, "elite": 64}
    found = [
        EvolutionResult({**common, **own}, 2, 15.0, 0.2, 1, 0.3, {"one/selfish": 2})
        for own in ({"rules": {"k": 2}}, {"rules": {"k": 3}, "generations": 10})
    ]
    table = winners_table(found)
    assert [(row["rules"], row["generations"]) for row in table.rows] == [("k=2", 15), ("k=3", 15)]
    keys = [column.key for column in table.columns]
    assert "rules" in keys
    assert "elite" not in keys
    assert len(set(keys)) == len(keys)


def test_settings_that_a_protocol_does_not_use_do_not_tell_evolutions_apart() -> None:
    common = {"game": "public-goods", "group_size": 4, "structure": "well-mixed"}
    conditions: list[dict[str, object]] = [
        {"protocol": "paper", "elite": 4, "strength": 1.0, "degree": 4},
        {"protocol": "imitation", "elite": 64, "strength": 2.0, "degree": 2},
        {"protocol": "imitation", "elite": 32, "strength": 3.0, "degree": 4},
    ]
    found = [EvolutionResult({**common, **own}, 2, 15.0, 0.2, 1, 0.3, {"one/selfish": 2}) for own in conditions]
    table = winners_table(found)
    assert {"elite", "degree"}.isdisjoint(column.key for column in table.columns)
    assert [row["strength"] for row in table.rows] == [None, 2, 3]


def test_a_figure_of_evolutions_shows_every_run_and_means_that_keep_those_that_ended() -> None:
    short, long = [{"a": 0.5, "b": 0.5}, {"a": 1.0}], [{"a": 0.5, "b": 0.5}, {"b": 1.0}, {"a": 0.5, "b": 0.5}]
    figure = evolution_figure({"k=2, 2 runs": [short, long], "k=3, 1 run": [[{"b": 1.0}]]}, "title")
    [both, one] = figure.axes
    drawn = [np.asarray(line.get_ydata()).tolist() for line in both.lines]
    assert drawn[:3] == [[0.5, 0.0], [0.5, 1.0, 0.5], [0.5, 0.5, 0.25]], "gene b: both runs and their mean"
    assert [axes.get_title(loc="left") for axes in (both, one)] == ["k=2, 2 runs", "k=3, 1 run"]
    assert both.lines[2].get_color() == one.lines[1].get_color()


def test_the_names_of_panels_stand_over_their_own_panels() -> None:
    name = "group_size=4, protocol=imitation, structure=well-mixed, population=32, mutation=0.0025, strength=1, 2 runs"
    figure = evolution_figure({f"{k}, {name}": [[{"a": 1.0}]] for k in ("k=2", "k=3")}, "title")
    figure.draw_without_rendering()
    for axes in figure.axes:
        [title] = [text for text in axes.findobj(Text) if "group_size" in text.get_text()]
        assert title.get_window_extent().x1 <= axes.get_window_extent().x1
