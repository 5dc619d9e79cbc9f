"""Files of payoffs recorded elsewhere, for rating.

A file is one JSON object: ``models`` (names; a cell may have its own), ``cells`` (``run``, ``mechanism``, ``game``,
``discount``, ``models`` and ``matchups``), and, to normalise payoffs, ``conventions.normalisation``: for each game the
payoffs of full defection and full cooperation. ``conventions.range`` has the minimum and maximum payoff of each game,
which bound its intervals. A matchup has ``seats``, the index of each seat's model in ``models``, and ``rounds``, the
payoffs of all seats in each round; ``discount`` is the probability of another round, required if there are several.
Other keys are ignored.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from labmates.errors import UsageError, explaining, telling
from labmates.mechanisms.repetition import discount_weights
from labmates.stats.domains import Domain
from labmates.stats.metagame import metagame
from labmates.stats.ratings import Cell, Scale


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class _Matchup(_Part):
    seats: list[int] = Field(min_length=2)
    rounds: list[list[FiniteFloat]] = Field(min_length=1)

    @model_validator(mode="after")
    def _payoffs_of_all(self) -> _Matchup:
        if any(len(payoffs) != len(self.seats) for payoffs in self.rounds):
            raise ValueError(f"each round needs a payoff of each of the {len(self.seats)} seats")
        return self


class _Cell(_Part):
    run: str = ""
    mechanism: str
    game: str
    models: list[str] | None = Field(None, min_length=1)
    discount: float | None = Field(None, ge=0, le=1)
    matchups: list[_Matchup] = Field(min_length=1)

    @model_validator(mode="after")
    def _rounds_have_weights(self) -> _Cell:
        if self.discount is None and any(len(match.rounds) > 1 for match in self.matchups):
            raise ValueError("matches of several rounds need a discount, the probability of another round")
        return self


class _Conventions(_Part):
    normalisation: dict[str, tuple[FiniteFloat, FiniteFloat]] = {}
    range: dict[str, tuple[FiniteFloat, FiniteFloat]] = {}

    @model_validator(mode="after")
    def _ranges_have_a_width(self) -> _Conventions:
        for game, (low, high) in self.range.items():
            if low >= high:
                raise ValueError(f"the range of {game} is empty: from {low:g} to {high:g}")
        return self

    def domain(self, game: str) -> Domain:
        """The range of a player's payoffs in a game."""
        if game in self.range:
            return Domain(*self.range[game])
        defect, cooperate = self.normalisation.get(game, (0.0, 1.0))
        return Domain(unit=abs(cooperate - defect) or 1.0)


class _File(_Part):
    models: list[str] | None = Field(None, min_length=1)
    cells: list[_Cell] = Field(min_length=1)
    conventions: _Conventions = _Conventions()

    @model_validator(mode="after")
    def _models_of_all(self) -> _File:
        for place, cell in enumerate(self.cells):
            models = cell.models or self.models
            if models is None:
                raise ValueError(f"cells[{place}] names no models, nor does the file: add 'models' to either")
            if len(set(models)) < len(models):
                raise ValueError(f"cells[{place}] names a model twice: {', '.join(models)}")
        return self


def read_cells(path: Path) -> list[Cell]:
    """The cells of a file of recorded payoffs.

    Raises `UsageError` if the file is unreadable or invalid, or some models never met.
    """
    with telling(f"the payoffs can't be read: {path}"):
        text = path.read_bytes()
    with explaining(head=f"{path} is not a file of payoffs:\n"):
        file = _File.model_validate_json(text)
    return [_cell(cell, tuple(cell.models or file.models or ()), file.conventions, path) for cell in file.cells]


def _cell(cell: _Cell, models: tuple[str, ...], conventions: _Conventions, path: Path) -> Cell:
    def played(match: _Matchup) -> tuple[list[int], list[float]]:
        rounds = np.array(match.rounds)
        return match.seats, (discount_weights(cell.discount or 0.0, len(rounds)) @ rounds).tolist()

    try:
        payoffs = metagame(len(models), map(played, cell.matchups))
    except UsageError as error:
        raise UsageError(f"{path}, run '{cell.run}', {cell.mechanism}, {cell.game}: {error}") from error
    defect, cooperate = conventions.normalisation.get(cell.game, (0.0, 0.0))
    scale = Scale(defect, cooperate) if cooperate != defect else None
    return Cell(cell.run, cell.mechanism, cell.game, models, payoffs, scale, domain=conventions.domain(cell.game))
