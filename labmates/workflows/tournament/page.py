"""The page of a tournament: standings, payoffs, and every match as a strip of moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from labmates.pages.links import Links
from labmates.pages.rendering import templates_of
from labmates.pages.section import Section
from labmates.records.reading import RunReader
from labmates.stats.tables import Table
from labmates.util.grouping import grouped
from labmates.workflows.tournament.results import Tournament, standings, tournament_of

render = templates_of(__package__)


_MOST_MATCHES: Final = 400
ENDS = {
    "length": "full length",
    "chance": "ended by chance",
    "leave": "left",
    "rounds": "no rounds left",
    "forfeit": "forfeited",
    "not_played": "not played",
    "": "not ended",
}


@dataclass(frozen=True)
class Shown:
    """A match, ended or so far; moves are pairs of ``C`` and ``D``."""

    name: str
    players: tuple[str, ...]
    teams: tuple[str, ...]
    rounds: tuple[tuple[str, ...], ...]
    points: tuple[float, ...]
    end: str
    by: tuple[str, ...]


def sections(reader: RunReader, links: Links) -> Iterator[Section]:
    """The sections of a tournament."""
    events = reader.all("payoff", "decision")
    tournament = tournament_of(reader.run.condition, events, run_id=reader.run.id, seed=reader.run.seed)
    if tournament.matches:
        body = render("standings.html", standings=standings(tournament), links=links, run=reader.run)
        yield Section("standings", "Standings", body)
    matches = [*_ended(tournament), *_running(reader, tournament)]
    if matches:
        body = render("matches.html", matches=matches[:_MOST_MATCHES], ends=ENDS)
        left = len(matches) - _MOST_MATCHES
        yield Section("matches", "Matches", body, f"{left} more in the story" if left > 0 else "")
    yield Section("payoffs", "Payoffs of a round", render("points.html", payoffs=tournament.payoffs))


def tables(reader: RunReader) -> Iterator[Table]:
    """The standings, for ``labmates show``."""
    events = reader.all("payoff", "decision")
    tournament = tournament_of(reader.run.condition, events, run_id=reader.run.id, seed=reader.run.seed)
    if tournament.matches:
        yield Table("standings", "Standings", None, [asdict(standing) for standing in standings(tournament)])


def _ended(tournament: Tournament) -> Iterator[Shown]:
    for match in tournament.matches:
        points = tuple(float(tournament.payoffs.total(match.seen_by(player))) for player in match.players)
        name = f"match {match.number}"
        yield Shown(name, match.players, match.teams, match.rounds, points, match.end, match.by)


def _running(reader: RunReader, tournament: Tournament) -> Iterator[Shown]:
    """The matches that have begun and not ended, so far."""
    ended = {f"match {match.number}" for match in tournament.matches}
    rounds = grouped((event.match, event) for event in reader.all("payoff") if event.round and event.match not in ended)
    letters = {"action_a": "C", "action_b": "D"}
    moves = {(e.match, e.round, e.agent): e.decision.get("move", "") for e in reader.all("decision") if e.round}
    for name, played in rounds.items():
        players = tuple(played[0].payoffs)
        shown = tuple(
            tuple(e.details.get("executed") or (letters.get(moves.get((name, e.round, p), ""), "?") for p in players))
            for e in played
        )
        points = tuple(sum(e.payoffs.get(p, 0.0) for e in played) for p in players)
        yield Shown(name, players, ("", ""), shown, points, "", ())
