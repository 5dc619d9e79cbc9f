"""The pages of self-plays, evolutions and strategy writing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final

from labmates.errors import UsageError
from labmates.pages.courses import Course
from labmates.pages.links import Links
from labmates.pages.rendering import templates_of
from labmates.pages.section import Section
from labmates.pages.svg import Plot, line_plot, stacked_plot, thinned
from labmates.records.reading import RunReader
from labmates_populations.engine.crew import Crew
from labmates_populations.matches import STEPS, Replayed, recorded_steps, replay_matches
from labmates_populations.outcomes import payoff_events, welfare_curve, winner

render = templates_of(__package__)

_MOST_ROWS: Final = 60
_MOST_STEPS: Final = 200
_MOST_STRATEGIES: Final = 40


def selfplay_sections(reader: RunReader, links: Links) -> Iterator[Section]:
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
    yield from _matches_section(reader, links)


def evolution_sections(reader: RunReader, links: Links) -> Iterator[Section]:
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
    yield from _matches_section(reader, links)


def _matches_section(reader: RunReader, links: Links, chosen: Replayed | None = None) -> Iterator[Section]:
    """The choice of a match to replay; an exported page has none."""
    steps = recorded_steps(reader.run, payoff_events(reader.store, reader.run.id))
    if links.of_run(reader.run.id, "match"):
        shown = [steps[place] for place in thinned(steps, _MOST_STEPS)]
        step, group = (chosen.step, chosen.group) if chosen else (steps[-1], 0)
        facts = {"steps": sorted({*shown, step}), "step": step, "group": group, "step_name": STEPS[reader.run.kind]}
        body = render("matches.html", run=reader.run, links=links, **facts)
        yield Section("matches", "Matches", body)


def match_sections(reader: RunReader, links: Links, query: Mapping[str, str]) -> Iterator[Section]:
    """One replayed match: moves, payoffs, and the code of its strategies.

    Raises
    ------
    UsageError
        If there is no such match, or its replay requires earlier generations.
    """
    run, events = reader.run, payoff_events(reader.store, reader.run.id)
    step, group = _whole(query, "step"), _whole(query, "group") or 0
    if step is not None and events and step not in recorded_steps(run, events):
        raise UsageError(
            f"the agents of {STEPS.get(run.kind, 'step')} {step} are not recorded; replay its matches with: "
            f"labmates strategies match {run.id} --step {step} --group {group}"
        )
    with closing(Crew(processes=1)) as crew:
        [replayed] = replay_matches(run, events, crew, step, group)
    match = replayed.match
    facts = {"replayed": replayed, "match": match, "most": _MOST_ROWS}
    body = render("match.html", links=links, run=run, cooperative=match.cooperative, **facts)
    title = f"{STEPS[run.kind].capitalize()} {replayed.step}, group {replayed.group}"
    more = len(match.players) - _MOST_ROWS
    yield Section("moves", title, body, f"{more} more players are in the export" if more > 0 else "")
    note = f"All players, as CSV or JSON: labmates strategies match {run.id} --step {replayed.step} --group {group}"
    course = Course(match.players, match.moves, match.payoffs.T.tolist(), replayed.sources)
    yield from course.sections(note)
    yield from _matches_section(reader, links, replayed)


def _whole(query: Mapping[str, str], name: str) -> int | None:
    """An integer parameter of a query; None if it is missing."""
    value = query.get(name, "")
    if value and not (value.isdecimal() and len(value) < 10):
        raise UsageError(f"{name}: '{value[:40]}' is not a whole number")
    return int(value) if value else None


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
