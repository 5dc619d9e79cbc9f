"""The comparison of any conditions, models, organisations, mechanisms, wordings, budgets, arms or studies."""

from __future__ import annotations

from typing import Any

from labmates.workflows.analyses.compare_params import CompareParams, ComparisonParams
from labmates.workflows.protocol.analysis import ANY_KIND, Analysis, Result, Runs


def compare(runs: Runs, params: CompareParams) -> Result:
    """Test whether conditions differ, and by how much.

    A CONDITION is NAME=VALUE (as in study=FIRST study=SECOND) or NAME!=VALUE, or several joined by commas, optionally
    after LABEL:. --by compares the values of a parameter: organisation, model, mechanism, wording, budget, arm, study;
    --by player compares the models that played in the same run; --each answers for each value of a further parameter.
    Runs are paired by seed with all else equal. All conditions of a data set (task and seed) are one unit, so the
    interval holds for new data sets; --over makes it hold for new tasks, models or families too. The primary outcome is
    unadjusted for two conditions, and simultaneous for more; secondary ones have Holm's p. Unreadable results count
    (intention to treat). Forks count with --where origin=RUN only.
    """
    if params.each:
        from labmates.workflows.analyses.each import compared_each

        return compared_each(runs, params)
    from labmates.workflows.analyses.comparison_result import compared

    return compared(runs, params)


def preset(
    name: str, title: str, text: str, example: str, kind: str | None = None, *, is_shown: bool = False, **given: Any
) -> Analysis[Any]:
    """An analysis that is a comparison of given conditions, or by given parameters; `text` is its help.

    Reports and pages of its kind show it if `is_shown`.
    """

    def compute(runs: Runs, params: ComparisonParams) -> Result:
        return compare(runs, CompareParams(**params.model_dump(), **given))

    compute.__doc__ = text
    return Analysis(
        name,
        title,
        ComparisonParams,
        compute,
        example=example,
        choices=COMPARE.choices,
        kind=kind,
        objects=COMPARE.objects,
        has_figures=True,
        answers=True,
        shown_for=None if is_shown else (),
    )


COMPARE = Analysis(
    "compare",
    "What makes a difference",
    CompareParams,
    compare,
    example="labmates analyze compare --by organisation --study science-small",
    choices=("study", "kind", "task"),
    objects="per pair and outcome",
    has_figures=True,
    answers=True,
    shown_for=ANY_KIND,
)

CONTRASTS = preset(
    "contrasts",
    "Contrasts",
    "Compare the values of every parameter that varies, and models in the same run; see labmates compare.",
    "labmates analyze contrasts --study dilemmas-wordings --where wording=paper",
)
