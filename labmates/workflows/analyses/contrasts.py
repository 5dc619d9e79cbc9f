"""The analysis of contrasts between the levels of an experiment's factors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from labmates.errors import UsageError
from labmates.workflows.protocol.analysis import Analysis, Params, Result, Runs, TooFewRunsError

if TYPE_CHECKING:
    from labmates.records.store import Store


class ContrastsParams(Params):
    """The parameters of contrasts."""

    within: str = Field(
        "all", description="Also compare within each level of this factor (game, mechanism, wording, …)."
    )


def contrasts(runs: Runs, params: ContrastsParams) -> Result:
    """Test for differences between mechanisms, structures, wordings, ablations and models.

    By default, all social dilemmas in the store count, or its tournaments if it has no dilemmas; --kind tournament
    selects tournaments. Two levels of a factor are compared between otherwise equal runs: in dilemmas with equal game,
    models, seatings and other factors, in tournaments with equal teams, payoffs and other factors. Models are also
    compared within each run, in dilemmas in the same seat against the same co-players. Outcomes are cooperation and
    payoff. Intervals are over runs, and p-values are adjusted for all pairs of a factor (Holm). Models with more than
    20 % failed decisions are excluded.
    """
    from labmates.stats.contrasts import contrasts as contrasts_of
    from labmates.stats.contrasts import contrasts_drawing, contrasts_table, verdict
    from labmates.workflows.protocol.experiment import EXPERIMENTS

    experiment = EXPERIMENTS.get(runs.records(None if runs.study else _kind_in(runs.store))[0].kind)
    if experiment.design is None:
        raise UsageError(f"runs of kind {experiment.name} have no contrasts; choose another kind with --kind")
    if params.within != "all" and params.within not in experiment.condition.model_fields:
        raise UsageError(f"--within: '{params.within}' is not a parameter of {experiment.name}")
    design = experiment.design(runs)
    parts = {"all": list(design.runs)}
    for run in design.runs:
        if level := run.part(params.within):
            parts.setdefault(level, []).append(run)
    differences = {part: contrasts_of(design, some) for part, some in parts.items()}
    if not any(differences.values()):
        raise TooFewRunsError("nothing to compare: the runs have one model, and no factor with two levels")
    table = contrasts_table(differences, design.remark)
    return Result([table], figures=list(contrasts_drawing(differences)), verdict=verdict(differences["all"]))


def _kind_in(store: Store) -> str | None:
    """The first comparable kind of experiment in a store; None if there is none."""
    from labmates.records.listing import facets
    from labmates.workflows.protocol.experiment import EXPERIMENTS

    present = [kind for kind in facets(store.database).kinds if kind in EXPERIMENTS]
    return next((kind for kind in sorted(present) if EXPERIMENTS.get(kind).design is not None), None)


CONTRASTS = Analysis(
    "contrasts",
    "Contrasts",
    ContrastsParams,
    contrasts,
    example="labmates analyze contrasts --study dilemmas-wordings --within wording",
    choices=("runs", "study", "kind"),
    objects="per pair of levels",
    has_figures=True,
    shown_for=("dilemma", "tournament"),
)
