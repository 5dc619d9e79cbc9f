"""An evolution: the shares of genes, welfare and cooperation, generation by generation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from labmates.pages.links import Links
from labmates.pages.reader import RunReader
from labmates.pages.rendering import templates_of
from labmates.pages.section import Section
from labmates.pages.svg import line_plot, stacked_plot, thinned
from labmates.workflows.populations.outcomes import payoff_events, winner

render = templates_of(__package__)


_MOST_ROWS: Final = 60


def sections(reader: RunReader, _links: Links) -> Iterator[Section]:
    """Tell an evolution."""
    events = payoff_events(reader.store, reader.run.id)
    if not events:
        return
    all_shares = [event.details["shares"] for event in events]
    genes = list(dict.fromkeys(gene for one in all_shares for gene in one))
    kept = [events[place] for place in thinned(events)]
    shares = {gene: [float(event.details["shares"].get(gene, 0.0)) for event in kept] for gene in genes}
    rounds = [float(event.round) for event in kept]
    drawn = stacked_plot(shares, rounds, "Shares of genes by generation", x_label="generation")
    body = render("plot.html", drawing=drawn, names=genes)
    yield Section("generations", "Generations", body)
    for name in ("welfare", "cooperation"):
        line = list(zip(rounds, (float(event.details[name]) for event in kept), strict=True))
        drawn = line_plot({name: line}, f"{name} by generation", x_label="generation")
        yield Section(name, name.capitalize(), render("plot.html", drawing=drawn, names=[]))
    rows = [events[place] for place in thinned(events, _MOST_ROWS)]
    best = winner(reader.run, all_shares)
    body = render("generations.html", events=rows, genes=genes, winner=best)
    left = len(events) - len(rows)
    yield Section("table", "In numbers", body, f"{left} more generations stand in the story" if left else "")
