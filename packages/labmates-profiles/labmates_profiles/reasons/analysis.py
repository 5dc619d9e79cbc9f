"""``labmates analyze labels``: the labels that ``labmates analyze reasons`` gave."""

from __future__ import annotations

from functools import partial

from labmates.workflows.protocol.analysis import Analysis, Drawing, Params, Result, Runs, TooFewRunsError


class LabelsParams(Params):
    """The analysis of labels has no parameters."""


def labels(runs: Runs, _params: LabelsParams) -> Result:
    """Show the kinds of reasons that models gave for their choices in social dilemmas.

    Shares are of the choices that a judge labelled (see labmates analyze reasons), with 95 % intervals over runs. A
    second table shows how far judges agree on the reasons of the same choices.
    """
    from labmates.stats.tables import Table
    from labmates.workflows.dilemmas.analyses import columns_of
    from labmates_profiles.reasons.labels import agreement_frame, labelled, reasons_figure, reasons_frame

    given = labelled(runs)
    if not given:
        raise TooFewRunsError("no choice of these runs has labels; ask for them: labmates analyze reasons")
    frames = {
        "reasons": ("Kinds of reasons for choices", reasons_frame(given)),
        "agreement": ("Agreement of judges on the reasons of the same choices", agreement_frame(given)),
    }
    tables = [Table(name, title, columns_of(frame), frame) for name, (title, frame) in frames.items() if len(frame)]
    draw = partial(reasons_figure, reasons_frame(given, by_game=False))
    alt = "Kinds of reasons for choices; the numbers are in the table."
    return Result(
        tables,
        [Drawing("reasons", "Reasons", alt, draw)] if tables else [],
        objects=[{"table": table.name, **row} for table in tables for row in table.rows],
    )


LABELS = Analysis(
    "labels",
    "Reasons",
    LabelsParams,
    labels,
    example="labmates analyze labels --plots figures",
    kind="dilemma",
    objects="per row with its table",
    has_figures=True,
)
