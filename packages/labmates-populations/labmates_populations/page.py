"""The pages of self-plays, evolutions and strategy writing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from labmates.pages.links import Links
from labmates.pages.rendering import templates_of
from labmates.pages.section import Section
from labmates.pages.svg import Plot, line_plot, stacked_plot, thinned
from labmates.records.reading import RunReader
from labmates_populations.engine.kernel.ways import slower, told
from labmates_populations.outcomes import payoff_events, welfare_curve, winner

render = templates_of(__package__)

_MOST_ROWS: Final = 60
_MOST_STRATEGIES: Final = 40


def selfplay_sections(reader: RunReader, _links: Links) -> Iterator[Section]:
    """Welfare of groups of every mixture of two attitudes."""
    if not reader.events("payoff"):
        return
    points = welfare_curve(reader.store, reader.run).points
    lows, highs = ([(share, one.ends()[side]) for share, one in points] for side in (0, 1))
    plot = Plot((0, 1), (min(low for _, low in lows), max(high for _, high in highs)))
    band = plot.area(lows, highs, 0)
    means = [(share, mean.value) for share, mean in points]
    line = plot.line(means, 0)
    title = "Welfare by the share of selfish players, with its 95 % interval"
    axes = plot.axes("share of selfish players", "welfare", x_format="{:.0%}")
    series = {"mean": means, "low": lows, "high": highs}
    body = render("selfplay.html", drawing=plot.drawn(title, band, axes, line, series=series), points=points)
    yield Section("mixtures", "Mixtures", body)
    yield from _ways_sections(reader)


def evolution_sections(reader: RunReader, _links: Links) -> Iterator[Section]:
    """The shares of genes, welfare and cooperation, generation by generation."""
    events = payoff_events(reader.store, reader.run.id)
    if not events:
        return
    all_shares = [event.details["shares"] for event in events]
    genes = list(dict.fromkeys(gene for shares in all_shares for gene in shares))
    plotted = [events[place] for place in thinned(events)]
    shares = {gene: [float(event.details["shares"].get(gene, 0.0)) for event in plotted] for gene in genes}
    rounds = [float(event.round) for event in plotted]
    drawn = stacked_plot(shares, rounds, "Shares of genes by generation", x_label="generation")
    body = render("plot.html", drawing=drawn, names=genes)
    yield Section("generations", "Generations", body)
    for name in ("welfare", "cooperation"):
        line = list(zip(rounds, (float(event.details[name]) for event in plotted), strict=True))
        drawn = line_plot({name: line}, f"{name} by generation", x_label="generation")
        yield Section(name, name.capitalize(), render("plot.html", drawing=drawn, names=[]))
    rows = [events[place] for place in thinned(events, _MOST_ROWS)]
    best = winner(reader.run, all_shares)
    body = render("generations.html", events=rows, genes=genes, winner=best)
    left = len(events) - len(rows)
    yield Section("table", "In numbers", body, f"{left} more generations are in the story" if left else "")
    yield from _ways_sections(reader)


def _ways_sections(reader: RunReader) -> Iterator[Section]:
    """How strategies were played, why, and what a decision cost."""
    bodies = reader.values(event.content for event in reader.events("artifact").values())
    for played in (body for body in bodies.values() if isinstance(body, dict)):
        costs = {way: 1e6 * seconds for way, seconds in played["seconds"].items()}
        summary = told(Counter(played["ways"].values()), costs)
        body = render("ways.html", summary=summary, lines=slower(played["whys"]))
        yield Section("ways", "How strategies were played", body)


def strategies_sections(reader: RunReader, links: Links) -> Iterator[Section]:
    """Descriptions, and the code that passed the checks."""
    written = reader.events("artifact")
    if not written:
        return
    shown = dict(list(written.items())[:_MOST_STRATEGIES])
    bodies = reader.values(event.content for event in shown.values())
    strategies = [(number, event, bodies.get(event.content, {})) for number, event in shown.items()]
    body = render("strategies.html", strategies=strategies, links=links, run=reader.run)
    left = len(written) - len(shown)
    yield Section("strategies", "Strategies", body, f"{left} more in the story" if left else "")
