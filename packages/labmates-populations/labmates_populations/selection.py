"""Selection among types of strategies in a finite population: fixation, stationary distribution, α-rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from scipy.stats import t

from labmates.stats.answers import highest
from labmates.stats.deviation import deviation_ratings
from labmates.stats.metagame import Array
from labmates.stats.tables import Column, Row, Table
from labmates_populations.engine.meetings import Meetings
from labmates_populations.fixation import (
    ALPHA_RANK_POPULATION,
    Process,
    alpha_rank,
    drift,
    log_fixation,
    stationary_distribution,
)
from labmates_populations.outcomes import FOR_THESE
from labmates_populations.repeated import RepeatedGame

_REPLICATES: Final = 200
"""Bootstrap replicates."""
_TIED: Final = 0.001
_ROUNDING: Final = 1e-9
"""Differences below this share of the largest one are rounding."""


@dataclass(frozen=True)
class Selection:
    """Types that met in games, and the population in which selection acts on them."""

    meetings: Meetings
    game: RepeatedGame
    population: int
    strength: float
    process: Process
    seed: int

    def scaled(self, pairs: Array) -> Array:
        """Payoffs scaled to 0 for an exploited player and 1 for an exploiting one."""
        low, high = self.game.individual_bounds()
        return np.asarray((pairs - low) / (high - low))

    def log_fixation(self, pairs: Array) -> Array:
        """Logarithms of fixation probabilities; residents in rows, mutants in columns."""
        return log_fixation(self.scaled(pairs), self.population, self.strength, self.process)

    @cached_property
    def fixation(self) -> Array:
        """Fixation probabilities; residents in rows, mutants in columns."""
        return np.exp(self.log_fixation(self.meetings.pairs()))

    @cached_property
    def _replicates(self) -> list[Array]:
        """Payoffs of pairs in bootstrap replicates over groups."""
        chance = np.random.default_rng(self.seed)
        return [self.meetings.pairs(chance) for _ in range(_REPLICATES)]

    @cached_property
    def tied(self) -> Array:
        """Pairs of types whose difference in fitness may be noise: a t test by the bootstrap has p > `_TIED`."""
        groups = min(map(len, self.meetings.payoffs.values()))
        population = max(ALPHA_RANK_POPULATION, self.meetings.players)
        advantage = np.abs(drift(self.meetings.pairs(), population))
        if groups < 2:
            return np.ones_like(advantage, dtype=bool)
        errors = np.std([drift(pairs, population) for pairs in self._replicates], axis=0, ddof=1)
        limit = t.ppf(1 - _TIED / 2, groups - 1) * np.sqrt(groups / (groups - 1)) * errors
        return np.asarray(advantage <= np.maximum(limit, _ROUNDING * advantage.max()))

    @cached_property
    def shares(self) -> Array:
        """The stationary distribution and its 95 % bootstrap interval over groups; shape ``(3, types)``."""
        replicates = [self._stationary(pairs) for pairs in self._replicates]
        return np.stack([self._stationary(self.meetings.pairs()), *np.quantile(replicates, (0.025, 0.975), axis=0)])

    def _stationary(self, pairs: Array) -> Array:
        return stationary_distribution(self.log_fixation(pairs))

    def type_rows(self, sizes: Sequence[int]) -> Iterator[Row]:
        """Table rows of types, with `sizes` as their numbers of strategies."""
        pairs = self.meetings.pairs()
        ranks = alpha_rank(pairs, self.tied)
        ratings = deviation_ratings(self.meetings.metagame()) if self.meetings.whole else None
        types = self.meetings.types
        for place, name in enumerate(types):
            share, low, high = self.shares[:, place]
            yield {
                "type": name,
                "strategies": sizes[place],
                "payoff": pairs[place, place, -1],
                "share": share,
                "share_low": low,
                "share_high": high,
                "alpha_rank": ranks[place],
                "tied": ", ".join(other for at, other in enumerate(types) if at != place and self.tied[place, at]),
                "deviation_rating": None if ratings is None else ratings[place],
            }

    def verdict(self, types: Table) -> list[str]:
        """A sentence on the types with the highest share in the table of types; none of them where all tie."""
        if self.tied[self.shares[0].argmax()].all():
            return [f"Can't tell the types apart: their payoffs may differ by chance (p > {_TIED})."]
        return highest(types, "share", ["type"])

    def fixation_rows(self) -> Iterator[Row]:
        """Table rows of pairs: one mutant in a population of residents."""
        pairs, types = self.meetings.pairs(), self.meetings.types
        for resident, mutant in np.argwhere(~np.eye(len(types), dtype=bool)):
            fixation = self.fixation[resident, mutant]
            yield {
                "resident": types[resident],
                "mutant": types[mutant],
                "resident_payoff": pairs[resident, resident, -1],
                "mutant_payoff": pairs[mutant, resident, 0],
                "fixation": fixation,
                "times_neutral": fixation * self.population,
                "favoured": bool(fixation * self.population > 1),
            }

    def payoff_rows(self) -> Iterator[Row]:
        """Table rows of payoffs: a type beside another, by its number of players in the group."""
        types = self.meetings.types
        rows = {}
        for group, payoffs in self.meetings.payoffs.items():
            present = sorted(set(group))
            errors = payoffs.std(axis=0, ddof=1) / np.sqrt(len(payoffs))
            for place, this in enumerate(present if len(present) <= 2 else ()):
                beside, players = present[-1 - place], group.count(this)
                rows[this, beside, players] = {
                    "type": types[this],
                    "beside": types[beside],
                    "players": players,
                    "payoff": payoffs[:, place].mean(),
                    "standard_error": errors[place],
                }
        yield from (rows[place] for place in sorted(rows))


def types_table(selection: Selection, sizes: Sequence[int]) -> Table:
    """The table of types; `sizes` are their numbers of strategies."""
    notes = [
        f"Share of time in a population of {selection.population} with rare mutations ({selection.process}, strength "
        f"{selection.strength:g}), with its 95 % bootstrap interval. Alpha-rank: the share of time in a population of "
        f"50 under infinitely strong selection; types whose payoffs may differ by chance (p > {_TIED}) tie.",
    ]
    notes.append(FOR_THESE)
    if not selection.meetings.whole:
        notes.append("No deviation ratings: too many sets of types to play them all (use fewer types or players).")
    if errors := selection.meetings.errors:
        notes.append(f"{errors} decisions failed and fell back.")
    columns = [Column("type"), Column("strategies"), Column("payoff", "payoff per round among themselves")]
    columns += [Column("share", "share of time", ".3f", "both"), Column("alpha_rank"), Column("tied", "tied with")]
    columns.append(Column("deviation_rating"))
    return Table("types", "Which types selection favours", columns, selection.type_rows(sizes), notes)


def pair_tables(selection: Selection) -> Iterator[Table]:
    """The tables of fixation probabilities and of payoffs."""
    columns = [Column("resident", once=True), Column("mutant"), Column("resident_payoff", "residents earn")]
    columns += [Column("mutant_payoff", "one mutant earns"), Column("fixation", "fixation probability", ".3g")]
    columns += [Column("times_neutral", "times neutral", ".3g"), Column("favoured")]
    yield Table("fixation", "Whose mutants take over", columns, selection.fixation_rows())
    columns = [Column("type", once=True), Column("beside", once=True), Column("players", "players of the type")]
    columns += [Column("payoff"), Column("standard_error", "SE")]
    yield Table("payoffs", "Payoffs per round by the composition of the group", columns, selection.payoff_rows())
