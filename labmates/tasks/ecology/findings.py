"""Findings and truth of the ecology task."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from labmates.tasks.base import Difficulty, finding
from labmates.tasks.choices import AnySign
from labmates.tasks.ecology.data import HORIZON

Name = Annotated[str, Field(max_length=200)]


class Interaction(BaseModel):
    """An effect of one species on the growth of another."""

    source: Name = Field(description="species that acts")
    target: Name = Field(description="species whose growth is changed")
    sign: AnySign | None = Field(None, description="'+' if the target gains, '-' if it loses")
    strength: float | None = Field(
        None,
        description="change of the target's log abundance from one survey to the next for each unit by which the "
        "source's log abundance deviates from its typical level in the regime, as a size without sign",
    )


class Forecast(BaseModel):
    """The expected abundance of one species."""

    species: Name = Field(description="name of the species")
    abundance: float = Field(description="mean count per survey and site")


class EcologyFindings(BaseModel):
    """The findings of a report on the ecology task."""

    n_species: int | None = finding("number of distinct species in the data", 12)
    shift_surveys: list[int] | None = finding(
        "number of the first survey of each regime shift, ascending; empty if there is none", [9], most=200
    )
    declining_species: list[Name] | None = finding(
        "species whose geometric mean count after the last shift is below four fifths of that before the first",
        ["Genus epithet"],
        most=200,
    )
    increasing_species: list[Name] | None = finding(
        "species whose geometric mean count after the last shift is above five quarters of that before the first",
        ["Genus epithet"],
        most=200,
    )
    interactions: list[Interaction] | None = finding(
        "direct effects between different species, one entry for each direction; without the effect of "
        "a species on itself",
        [{"source": "Genus epithet", "target": "Other species", "sign": "-", "strength": 0.5}],
        most=400,
    )
    warmth_gains: list[Name] | None = finding("species that grow faster when it is warmer", ["Genus epithet"], most=200)
    warmth_loses: list[Name] | None = finding(
        "species that grow more slowly when it is warmer", ["Genus epithet"], most=200
    )
    forecast: list[Forecast] | None = finding(
        f"for every species the expected mean count per survey and site in the {HORIZON} surveys after the last",
        [{"species": "Genus epithet", "abundance": 1.0}],
        most=200,
    )


class EcologyTruth(BaseModel):
    """The truth of one ecology data set; fields as in `EcologyFindings`.

    Whether a `borderline_species` is rarer or more common can't be told.
    """

    difficulty: Difficulty
    species: list[str]
    shift_surveys: list[int]
    declining_species: list[str]
    increasing_species: list[str]
    borderline_species: list[str]
    interactions: list[Interaction]
    warmth_gains: list[str]
    warmth_loses: list[str]
    forecast: list[Forecast]
