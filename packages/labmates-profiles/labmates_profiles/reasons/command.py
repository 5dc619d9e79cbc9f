"""``labmates analyze reasons``: a separate command, since analyses never call models or add to runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field

from labmates.models.names import parse_model
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command
from labmates.workflows.protocol.verb import InterruptedWorkError

if TYPE_CHECKING:
    from labmates.records.run import RunRecord
    from labmates.workflows.protocol.command import Lab


class ReasonsParams(Params):
    """Parameters of labelling reasons."""

    judge: str = Field(description="Model that labels, provider:name.")
    most: int | None = Field(None, ge=1, description="Maximum number of choices to label per run, drawn at random.")


def reasons(lab: Lab, params: ReasonsParams) -> Iterator[Result]:
    """Have a model label the reasons that players give for their choices.

    Each choice in a social dilemma gets any number of 15 labels, or "other"; a reply without reasons gets none. Labels
    are added to the runs, and labelled choices are skipped. See the result with: labmates analyze labels
    """
    from labmates_profiles.reasons.labelling import label_reasons

    model = str(parse_model(lab.catalog.name_of(params.judge)))
    options = lab.catalog.options()
    runs = lab.runs.completed("dilemma")

    def watch(run: RunRecord, done: int, whole: int) -> None:
        lab.notify(f"run {run.id}: {done} of {whole} choices")

    store = lab.runs.store
    try:
        work = label_reasons(store, runs, model, options, most=params.most, watch=watch, notify=lab.notify)
        added = lab.finish(work)
    except InterruptedWorkError:
        lab.notify("Interrupted. Labels so far are kept; the same command resumes.")
        raise
    sentence = f"{added} choices of {len(runs)} runs labelled by {model}."
    yield Result((), verdict=[sentence], objects=[{"runs": len(runs), "judge": model, "labelled": added}])


REASONS = Command(
    reasons,
    ReasonsParams,
    example="labmates analyze reasons --judge openai:gpt-5.4-mini --most 200",
    asks_models=True,
    has_store=True,
    choices=("runs", "study"),
    objects="",
)
