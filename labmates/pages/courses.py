"""The course of a match on a page: payoffs added up, moves and payoffs round by round, and the players' code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from labmates.pages.rendering import render
from labmates.pages.section import Section
from labmates.pages.svg import line_plot
from labmates.stats.tables import Column, Table

_MOST_LINES: Final = 12
"""Players whose payoffs are drawn."""
_MOST_COLUMNS: Final = 6
"""Players whose moves and payoffs are listed."""
_PARTS: Final = ("move", "payoff", "total")


@dataclass(frozen=True)
class Course:
    """The moves and payoffs of a match.

    Attributes
    ----------
    moves, payoffs
        By player, in the order of `players`, for each round.
    sources
        Code of strategies, by name.
    """

    players: Sequence[str]
    moves: Sequence[Sequence[str]]
    payoffs: Sequence[Sequence[float]]
    sources: Mapping[str, str]

    def sections(self, note: str = "") -> Iterator[Section]:
        """The sections of the match; the note tells where the rest of a large group is."""
        totals = [list(accumulate(payoffs)) for payoffs in self.payoffs]
        names = [f"{seat} {player}" for seat, player in enumerate(self.players)][:_MOST_LINES]
        lines = {
            name: [(t + 1.0, total) for t, total in enumerate(own)] for name, own in zip(names, totals, strict=False)
        }
        drawn = line_plot(lines, "Payoffs added up, by round", x_label="round")
        yield Section("payoffs", "Payoffs added up", render("plot.html", drawing=drawn, names=names))
        yield Section("rounds", "Rounds", self._table(totals), note)
        if self.sources:
            yield Section("code", "Code of the players", render("sources.html", sources=self.sources))

    def _table(self, totals: Sequence[Sequence[float]]) -> Table:
        shown = list(zip(self.moves, self.payoffs, totals, strict=True))[:_MOST_COLUMNS]
        each = [Column(f"{part} {seat}", part, group=f"seat {seat}") for seat in range(len(shown)) for part in _PARTS]
        rows = [
            {"round": t}
            | {
                f"{part} {seat}": own[t]
                for seat, player in enumerate(shown)
                for part, own in zip(_PARTS, player, strict=True)
            }
            for t in range(len(self.moves[0]))
        ]
        return Table("rounds", "Rounds", [Column("round"), *each], rows)
