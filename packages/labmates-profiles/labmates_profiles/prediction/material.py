"""The data of the prediction of lab outcomes: profiles and lab runs, from a store or from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labmates.errors import UsageError
from labmates.models.roster import KnownModel, read_roster, traits_of
from labmates.records.studies import study_record
from labmates.workflows.protocol.analysis import Runs
from labmates_profiles.prediction.design_matrix import Assembled, Choice, UninformativeError, assemble
from labmates_profiles.prediction.sources import (
    INSTEAD,
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

    def assemble(self, outcome: str, choice: Choice, without: str = "") -> Assembled:
        """The data of an outcome, without a model; see `labmates_profiles.prediction.design_matrix.assemble`."""
        levels = [level for level in self.levels if level.model != without]
        runs = [run for run in self.observations if run.model != without]
        return assemble(outcome, levels, runs, self.traits(), choice)

    def assembled(
        self, choice: Choice, outcomes: Sequence[str] = (), default: Sequence[str] = OUTCOMES
    ) -> tuple[list[Assembled], list[LeftOut]]:
        """The data of the requested outcomes, or of all that can be analysed, and the reasons against the others.

        For a `default` outcome that can't be analysed `INSTEAD` names another.

        Raises
        ------
        UsageError
            If the data of a requested outcome, or of all default outcomes, are insufficient.
        """
        if outcomes:
            return [self.assemble(outcome, choice) for outcome in dict.fromkeys(outcomes)], []
        found: list[Assembled] = []
        left: list[LeftOut] = []
        names = list(default)
        for outcome in names:
            try:
                found.append(self.assemble(outcome, choice))
            except UninformativeError as error:
                left.append(LeftOut(outcome, 1, str(error).removeprefix(f"{outcome} ")))
                if INSTEAD.get(outcome, outcome) not in names:
                    names.append(INSTEAD[outcome])
        if not found:
            raise UsageError("\n".join(f"{item.what}: {item.reason}" for item in left))
        return found, left


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
    known = tuple(model for path in rosters for model in read_roster(path))
    if games_file:
        levels, left = read_levels(games_file, variant)
        sources = [f"profiles of {games_file}"]
    else:
        levels, left = levels_of_runs(runs.together(runs.store.runs(kind="game")), variant)
        sources = [f"profiles of {runs.store.shown_url}"]
    if lab_file:
        observations, more = read_observations(lab_file)
        sources.append(f"lab runs of {lab_file}")
    else:
        store, study = runs.store, runs.study
        if study is not None:
            study_record(store, study)
        lab_runs = runs.records("science") if runs.ids else runs.together(store.runs(kind="science", study=study))
        observations, more = observations_of_runs(store, lab_runs)
        sources.append(f"lab runs of {store.shown_url}" + (f", study {study}" if study else ""))
        if not observations:
            raise UsageError(
                f"the store {store.shown_url} has no ended lab run of a team of one model"
                + (f" in the study '{study}'" if study else "")
                + "; make some with labmates run science or labmates study run"
            )
    return Material(levels, observations, [*left, *more], known, "; ".join(sources))
