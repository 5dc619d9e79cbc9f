"""Self-play: what groups of every mixture of two attitudes earn."""

from __future__ import annotations

from collections.abc import Iterator

from labmates.pages.links import Links
from labmates.pages.reader import RunReader
from labmates.pages.rendering import templates_of
from labmates.pages.section import Section
from labmates.pages.svg import Plot
from labmates.workflows.populations.outcomes import mixed

render = templates_of(__package__)


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
    body = render("selfplay.html", drawing=plot.drawn(title, band, axes, line), points=points)
    yield Section("mixtures", "Mixtures", body)
