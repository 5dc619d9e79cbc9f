"""The page of a behavioural game, round by round: decisions, payoffs and messages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

from labmates.pages.links import Links
from labmates.pages.rendering import as_text, templates_of
from labmates.pages.section import Section
from labmates.pages.svg import line_plot
from labmates.records.reading import RunReader

render = templates_of(__package__)


_MOST_PLAYERS: Final = 40
_MOST_ROUNDS: Final = 100
_MOST_SAID: Final = 300


@dataclass(frozen=True)
class Move:
    """A player's decision at a stage of a round."""

    number: int
    stage: str
    decision: dict[str, Any]
    failed: bool

    @property
    def shown(self) -> str:
        """The decision as text; a single value without its name."""
        if len(self.decision) == 1:
            return str(next(iter(self.decision.values())))
        return ", ".join(f"{name} {value}" for name, value in self.decision.items() if value)


def sections(reader: RunReader, links: Links) -> Iterator[Section]:
    """The sections of a game."""
    decisions, payoffs = reader.events("decision"), reader.all("payoff")
    groups: dict[str, str] = {event.agent: event.team for event in decisions.values()}
    players = list(groups)[:_MOST_PLAYERS]
    moves: defaultdict[tuple[int, str], list[Move]] = defaultdict(list)
    for number, event in decisions.items():
        moves[event.round, event.agent].append(Move(number, event.stage, event.decision, event.failed))
    got = {event.round: event.payoffs for event in payoffs}
    rounds = sorted({number for number, _ in moves})
    if not rounds:
        return
    messages = _messages(reader)
    note = "" if len(groups) <= _MOST_PLAYERS else f"{len(groups) - _MOST_PLAYERS} more players are in the story"
    if len(rounds) > _MOST_ROUNDS:
        note = f"{len(rounds) - _MOST_ROUNDS} more rounds are in the story"
    body = render(
        "game.html",
        rounds=rounds[:_MOST_ROUNDS],
        players=players,
        widths=Counter(groups[player] for player in players),
        moves=moves,
        got=got,
        totals=got.get(0, {}),
        said=messages,
        links=links,
        run=reader.run,
    )
    yield Section("rounds", "Rounds", body, note)
    if len(rounds) > 1 and (levels := _levels(decisions.values())):
        drawn = line_plot(levels, "Mean decision of each group by round", x_label="round")
        yield Section("course", "Course", render("plot.html", drawing=drawn, names=list(levels)))


def _messages(reader: RunReader) -> dict[int, list[tuple[int, Any, str]]]:
    """The messages before the decisions of each round, with their events' numbers."""
    messages = dict(list(reader.events("message").items())[:_MOST_SAID])
    bodies = reader.values(event.text for event in messages.values())
    by_round: dict[int, list[tuple[int, Any, str]]] = {}
    for number, event in messages.items():
        place = event.step.partition("/")[0]
        at = int(place) if place.isdecimal() else 0
        by_round.setdefault(at, []).append((number, event, as_text(bodies.get(event.text))))
    return by_round


def _levels(decisions: Any) -> dict[str, list[tuple[float, float]]]:
    """The mean decision of each group by round, for the first stage and single-number decisions only."""
    values: defaultdict[str, defaultdict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    first = ""
    for event in decisions:
        first = first or event.stage
        if event.stage != first or len(event.decision) != 1:
            continue
        [value] = event.decision.values()
        if isinstance(value, int | float) and not isinstance(value, bool):
            values[event.team][event.round].append(float(value))
    return {
        team: [(at, fmean(decided)) for at, decided in sorted(rounds.items())]
        for team, rounds in sorted(values.items())
    }
