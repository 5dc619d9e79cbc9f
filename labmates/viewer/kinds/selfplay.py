"""Self-play: what groups of every mixture of two attitudes earn."""

from __future__ import annotations

from collections.abc import Iterator

from labmates.analysis.populations import mixed
from labmates.viewer.kinds import Section
from labmates.viewer.links import Links
from labmates.viewer.reader import RunReader
from labmates.viewer.rendering import render
from labmates.viewer.svg import Plot


def sections(reader: RunReader, _links: Links) -> Iterator[Section]:
    """Tell a self-play."""
    if not reader.events("payoff"):
        return
    points = mixed(reader.store, reader.run).points
    lows, highs = ([(share, one.ends()[side]) for share, one in points] for side in (0, 1))
    plot = Plot((0, 1), (min(low for _, low in lows), max(high for _, high in highs)))
    band = plot.area(lows, highs, 0)
    line = plot.line([(share, one.value) for share, one in points], 0)
    title = "Welfare by the share of selfish players, with its 95 % interval"
    axes = plot.axes("share of selfish players", "welfare", x_format="{:.0%}")
    body = render("kinds/selfplay.html", drawing=plot.drawn(title, band, axes, line), points=points)
    yield Section("mixtures", "Mixtures", body)
