"""What lab outcomes are predicted from: profiles and lab runs, of a store or of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labmates.errors import UsageError
from labmates.models.roster import KnownModel, read_roster, traits_of
from labmates.records.store import Store
from labmates.records.studies import study_record
from labmates.workflows.games.prediction.sources import (
    LeftOut,
    Level,
    Observation,
    levels_of_runs,
    observations_of_runs,
    read_levels,
    read_observations,
)


@dataclass(frozen=True)
class Material:
    """What there is to predict from.

    Attributes
    ----------
    levels, observations
        Profiles and lab runs.
    left_out
        Simulations and runs that none of it rests on.
    known
        Models that the user's own rosters name.
    told
        Where it is from.
    """

    levels: list[Level]
    observations: list[Observation]
    left_out: list[LeftOut]
    known: tuple[KnownModel, ...]
    told: str

    def traits(self, more: Sequence[str] = ()) -> Mapping[str, KnownModel]:
        """Return what is known of all models in it, and of more."""
        names = [*(one.model for one in self.levels), *(one.model for one in self.observations), *more]
        return traits_of(dict.fromkeys(names), self.known)


def read_material(
    store: str | None = None,
    *,
    study: str | None = None,
    games_file: Path | None = None,
    lab_file: Path | None = None,
    rosters: Sequence[Path] = (),
    variant: Mapping[str, str] | None = None,
) -> Material:
    """Read profiles and lab runs from files, or where none is given from the store.

    Parameters
    ----------
    study
        Lab runs of this study alone.
    rosters
        Files of further models; see `labmates.models.roster.read_roster`.
    variant
        Other values of the condition of profiles than the usual ones.

    Raises
    ------
    UsageError
        If something is wrong with a file, or the store or the study is not there.
    """
    variant = variant or {}
    known = tuple(model for path in rosters for model in read_roster(path))
    levels, levels_left = read_levels(games_file, variant) if games_file else ([], [])
    observations, observations_left = read_observations(lab_file) if lab_file else ([], [])
    told = [f"profiles of {games_file}"] if games_file else []
    told += [f"lab runs of {lab_file}"] if lab_file else []
    if not (games_file and lab_file):
        with Store(store, must_exist=True) as database:
            if not games_file:
                levels, levels_left = levels_of_runs(database.runs(kind="game"), variant)
                told.insert(0, f"profiles of {database.shown_url}")
            if not lab_file:
                if study is not None:
                    study_record(database.database, study)
                runs = database.runs(kind="science", study=study)
                observations, observations_left = observations_of_runs(database, runs)
                told.append(f"lab runs of {database.shown_url}" + (f", study {study}" if study else ""))
                if not observations:
                    raise UsageError(
                        f"the store {database.shown_url} has no lab run of a team of one model that has ended"
                        + (f" in the study '{study}'" if study else "")
                        + "; make some with labmates run science or labmates study run"
                    )
    return Material(levels, observations, [*levels_left, *observations_left], known, "; ".join(told))
