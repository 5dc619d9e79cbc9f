"""Sections on a run's team: the seats as a graph, the measures of coordination, findings by seats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import atan2, cos, hypot, pi, sin, sqrt
from typing import Final

from markupsafe import Markup

from labmates.budgets.money import show_dollars
from labmates.errors import UsageError
from labmates.grouping import grouped
from labmates.pages.reader import RunReader
from labmates.pages.rendering import templates_of
from labmates.pages.section import Section
from labmates.pages.svg import COLOURS, drawing, tag
from labmates.records.bodies import Bodies
from labmates.records.events import Event
from labmates.records.run import ENDED
from labmates.workflows.experiment import condition_of
from labmates.workflows.science.condition import ScienceCondition
from labmates.workflows.science.coordination import Coordination, coordination
from labmates.workflows.science.evidence import held_part
from labmates.workflows.science.experiment import COORDINATION
from labmates.workflows.science.fates import Fate, fates_of

render = templates_of(__package__)

MOST_EVENTS: Final = 5_000
"""A run with more events has no team sections, which would take too long."""
MOST_FATES: Final = 100
MOST_LABELS: Final = 12
"""A graph with more edges shows numbers only in tooltips."""
_INSTRUMENTS: Final = 3
_WIDTH, _HEIGHT, _RADIUS, _NODE, _BEND = 760, 430, 155, 14, 24

_Place = tuple[float, float]


def team_sections(reader: RunReader) -> Iterator[Section]:
    """The sections on the coordination of an ended run's seats; none for a single agent."""
    run = reader.run
    condition = None
    with suppress(UsageError):  # a condition of another version
        condition = condition_of(run)
    if not isinstance(condition, ScienceCondition) or not condition.crew.has_colleagues:
        return
    if run.status not in ENDED or reader.last > MOST_EVENTS:
        return
    events, bodies = reader.store.events(run.id), Bodies(reader.store.bodies(run.id))
    measured = coordination(events, bodies, condition.crew.seats)
    teams = _seats_with_calls(condition, events)
    values = [(metric, measured.metrics[metric.name]) for metric in COORDINATION]
    body = render("team.html", drawing=team_graph(measured, teams), values=values)
    yield Section("team", "The team at work", body)
    if followed := fates_of(run, events, bodies, measured.hand_overs):
        left = len(followed) - MOST_FATES
        note = f"{left} more findings are not shown" if left > 0 else ""
        body = render("fates.html", fates=followed[:MOST_FATES], seats=_heads(condition, teams, followed))
        yield Section("seats", "Findings and seats", body, note)


def _seats_with_calls(condition: ScienceCondition, events: Sequence[Event]) -> dict[str, str]:
    """The team of each seat with model calls, in the organisation's order, then by name."""
    teams = {event.agent: event.team for event in events if event.type == "llm_call"}
    return {seat: teams[seat] for seat in dict.fromkeys([*condition.crew.seats, *sorted(teams)]) if seat in teams}


def _heads(condition: ScienceCondition, seats: Mapping[str, str], followed: Sequence[Fate]) -> dict[str, str]:
    """The seats, with their instruments if evidence is divided."""
    all_ = dict.fromkeys([*seats, *(seat for fate in followed for seat in fate.seats)])
    if condition.evidence == "shared" or condition.crew.graph:
        return dict.fromkeys(all_, "")
    return {seat: f"instrument {held_part(condition.crew, seat, _INSTRUMENTS) + 1}" for seat in all_}


@dataclass(frozen=True)
class _Edge:
    sender: str
    receiver: str
    number: int
    used: int
    credits: float

    @property
    def text(self) -> str:
        used = f", {self.used} used" if self.used else ""
        return f"{self.number}{used}, {show_dollars(round(self.credits))}"


def team_graph(measured: Coordination, teams: Mapping[str, str]) -> Markup:
    """The seats on a circle, with arrows for hand-overs: number, used ones, and cost; `teams` by seat."""
    # Merged reports, and texts of seats without a model, have no node.
    edges = [edge for edge in _edges(measured) if edge.sender in teams]
    names = list(teams)
    places = {
        name: (
            _WIDTH / 2 + 1.35 * _RADIUS * cos(2 * pi * at / len(names) - pi / 2),
            _HEIGHT / 2 + _RADIUS * sin(2 * pi * at / len(names) - pi / 2),
        )
        for at, name in enumerate(names)
    }
    most = max((edge.credits for edge in edges), default=0) or 1
    curves = [_Curve(edge, places[edge.sender], places[edge.receiver]) for edge in edges]
    lines = [curve.line(sqrt(curve.edge.credits / most)) for curve in curves]
    labels = [curve.label() for curve in curves] if len(edges) <= MOST_LABELS else []
    colours = {team: place % COLOURS for place, team in enumerate(dict.fromkeys(teams.values()))}
    costs = {
        name: show_dollars(measured.spent.get(name, 0)) + (", idle" if name in measured.idle else "") for name in names
    }
    nodes = [_node(name, places[name], costs[name], colours[team]) for name, team in teams.items()]
    return drawing(_WIDTH, _HEIGHT, "Seats, and hand-overs between them", *lines, *nodes, *labels, class_="wide")


def _edges(measured: Coordination) -> list[_Edge]:
    pairs = grouped(((item.sender, item.receiver), item) for item in measured.hand_overs)
    return [
        _Edge(*pair, len(items), sum(item.used for item in items), sum(item.credits for item in items))
        for pair, items in pairs.items()
    ]


@dataclass(frozen=True)
class _Curve:
    """An arrow bent to one side, so that both directions between two seats are visible."""

    edge: _Edge
    start: _Place
    end: _Place

    @property
    def bend(self) -> _Place:
        (x0, y0), (x1, y1) = self.start, self.end
        length = hypot(x1 - x0, y1 - y0) or 1
        return (x0 + x1) / 2 - _BEND * (y1 - y0) / length, (y0 + y1) / 2 + _BEND * (x1 - x0) / length

    def line(self, share: float) -> Markup:
        start_x, start_y, _ = _towards(self.start, self.bend)
        x, y, angle = _towards(self.end, self.bend)
        head = "".join(
            f"M{x:.1f} {y:.1f}L{x + 9 * cos(angle + side):.1f} {y + 9 * sin(angle + side):.1f}" for side in (0.4, -0.4)
        )
        path = f"M{start_x:.1f} {start_y:.1f}Q{self.bend[0]:.1f} {self.bend[1]:.1f} {x:.1f} {y:.1f}{head}"
        title = tag("title", f"{self.edge.sender} → {self.edge.receiver}: {self.edge.text}")
        class_ = "handed" if self.edge.used else "handed unused"
        return tag("path", title, d=path, class_=class_, stroke_width=round(1 + 3 * share, 1))

    def label(self) -> Markup:
        # A third of the way, apart from the other direction's label.
        x, y = (0.4 * s + 0.47 * b + 0.13 * e for s, b, e in zip(self.start, self.bend, self.end, strict=True))
        return tag("text", self.edge.text, x=round(x, 1), y=round(y + 4, 1), class_="tick middle over")


def _towards(seat: _Place, aim: _Place) -> tuple[float, float, float]:
    """The point on the rim of a seat in the direction of `aim`, and the angle."""
    angle = atan2(aim[1] - seat[1], aim[0] - seat[0])
    return seat[0] + (_NODE + 3) * cos(angle), seat[1] + (_NODE + 3) * sin(angle), angle


def _node(name: str, place: _Place, cost: str, colour: int) -> Markup:
    x, y = place
    side = x - _WIDTH / 2
    if abs(side) < _RADIUS / 2:
        at, anchor, up = x, "middle", -_NODE - 18 if y < _HEIGHT / 2 else _NODE + 15
    else:
        at, anchor, up = x + (_NODE + 6) * (1 if side > 0 else -1), "end" if side < 0 else "begin", -2
    return (
        tag("circle", tag("title", name), cx=round(x, 1), cy=round(y, 1), r=_NODE, class_=f"seat phase c{colour}")
        + tag("text", name, x=round(at, 1), y=round(y + up, 1), class_=f"row {anchor} over")
        + tag("text", cost, x=round(at, 1), y=round(y + up + 13, 1), class_=f"tick {anchor} over")
    )
