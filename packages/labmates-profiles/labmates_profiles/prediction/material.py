"""The data of the prediction of lab outcomes: profiles and lab runs, from a store or from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labmates.errors import UsageError
from labmates.models.roster import KnownModel, read_roster, traits_of
from labmates.records.studies import study_record
from labmates.workflows.protocol.analysis import Runs
from labmates_profiles.prediction.design_matrix import Assembled, Choice, assemble, assemble_all
from labmates_profiles.prediction.sources import (
    OUTCOMES,
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
    """Profiles (`levels`) and lab runs (`observations`) for the prediction.

    Attributes
    ----------
    left_out
        Excluded simulations and runs.
    known
        Models of the user's rosters.
    told
        Source of the data, for readers.
    """

    levels: list[Level]
    observations: list[Observation]
    left_out: list[LeftOut]
    known: tuple[KnownModel, ...]
    told: str

    def traits(self, more: Sequence[str] = ()) -> Mapping[str, KnownModel]:
        """All known facts about its models, and about further models."""
        names = [*(level.model for level in self.levels), *(run.model for run in self.observations), *more]
        return traits_of(dict.fromkeys(names), self.known)

    def benchmarked(self) -> bool:
        """Whether benchmark scores of all models with both a profile and lab runs are known."""
        both = {level.model for level in self.levels} & {run.model for run in self.observations}
        traits = self.traits()
        return bool(both) and all(model in traits and traits[model].mmlu_pro and traits[model].ifeval for model in both)

    def assembled(
        self, choice: Choice, outcomes: Sequence[str] = (), default: Sequence[str] = OUTCOMES
    ) -> tuple[list[Assembled], list[LeftOut]]:
        """The data of outcomes; see `labmates_profiles.prediction.design_matrix.assemble_all`."""
        traits = self.traits()
        return assemble_all(
            outcomes, lambda name: assemble(name, self.levels, self.observations, traits, choice), default
        )


def read_material(
    runs: Runs,
    *,
    games_file: Path | None = None,
    lab_file: Path | None = None,
    rosters: Sequence[Path] = (),
    variant: Mapping[str, str] | None = None,
) -> Material:
    """The profiles and lab runs from files or, without a file, from the store (and study) of `runs`.

    Parameters
    ----------
    rosters
        Files of further models; see `labmates.models.roster.read_roster`.
    variant
        Changes to the standard condition of profiles.
    """
    variant = variant or {}
    known = tuple(model for path in rosters for model in read_roster(path))
    levels, levels_left = read_levels(games_file, variant) if games_file else ([], [])
    observations, observations_left = read_observations(lab_file) if lab_file else ([], [])
    sources = [f"profiles of {games_file}"] if games_file else []
    sources += [f"lab runs of {lab_file}"] if lab_file else []
    if not (games_file and lab_file):
        store, study = runs.store, runs.study
        if not games_file:
            levels, levels_left = levels_of_runs(runs.together(store.runs(kind="game")), variant)
            sources.insert(0, f"profiles of {store.shown_url}")
        if not lab_file:
            if study is not None:
                study_record(store, study)
            lab_runs = runs.records("science") if runs.ids else runs.together(store.runs(kind="science", study=study))
            observations, observations_left = observations_of_runs(store, lab_runs)
            sources.append(f"lab runs of {store.shown_url}" + (f", study {study}" if study else ""))
            if not observations:
                raise UsageError(
                    f"the store {store.shown_url} has no ended lab run of a team of one model"
                    + (f" in the study '{study}'" if study else "")
                    + "; make some with labmates run science or labmates study run"
                )
    return Material(levels, observations, [*levels_left, *observations_left], known, "; ".join(sources))
