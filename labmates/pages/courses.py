"""The course of a match on a page: cumulative payoffs, moves and payoffs by round, and players' code."""

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
"""Maximum number of drawn players."""
_MOST_COLUMNS: Final = 6
"""Maximum number of players in the table of rounds."""
_PARTS: Final = ("move", "payoff", "total")


@dataclass(frozen=True)
class Course:
    """The moves and payoffs of a match by player and round, in the order of `players`, and strategies' code by name."""

    players: Sequence[str]
    moves: Sequence[Sequence[str]]
    payoffs: Sequence[Sequence[float]]
    sources: Mapping[str, str]

    def sections(self, note: str = "") -> Iterator[Section]:
        """The sections of the match; `note` is a remark on omitted players."""
        totals = [list(accumulate(payoffs)) for payoffs in self.payoffs]
        names = [f"{seat} {player}" for seat, player in enumerate(self.players)][:_MOST_LINES]
        lines = {
            name: [(t + 1.0, total) for t, total in enumerate(sums)] for name, sums in zip(names, totals, strict=False)
        }
        drawn = line_plot(lines, "Cumulative payoffs, by round", x_label="round")
        yield Section("payoffs", "Cumulative payoffs", render("plot.html", drawing=drawn, names=names))
        yield Section("rounds", "Rounds", self._table(totals), note)
        if self.sources:
            yield Section("code", "Code of the players", render("sources.html", sources=self.sources))

    def _table(self, totals: Sequence[Sequence[float]]) -> Table:
        shown = list(zip(self.moves, self.payoffs, totals, strict=True))[:_MOST_COLUMNS]
        each = [Column(f"{part} {seat}", part, group=f"seat {seat}") for seat in range(len(shown)) for part in _PARTS]
        rows = [
            {"round": t}
            | {
                f"{part} {seat}": values[t]
                for seat, player in enumerate(shown)
                for part, values in zip(_PARTS, player, strict=True)
            }
            for t in range(len(self.moves[0]))
        ]
        return Table("rounds", "Rounds", [Column("round"), *each], rows)
