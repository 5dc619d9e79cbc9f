"""``labmates analyze reasons``: a model labels the reasons that players give for their choices."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import json_option, store_option, verbose_option
from labmates.cli.console import clean, err, out, print_json
from labmates.cli.interrupt import run_until_stopped
from labmates.cli.options import model_options, options_of
from labmates.models.options import ModelOptions

if TYPE_CHECKING:
    from labmates.records.run import RunRecord


@click.command("reasons", epilog="Example: labmates analyze reasons --judge openai:gpt-5.4-mini --most 200")
@click.argument("run_ids", nargs=-1, metavar="[RUN]...")
@click.option("--study", metavar="NAME", help="Runs of this study.")
@click.option("--judge", required=True, metavar="MODEL", help="The model that labels, provider:name.")
@click.option("--most", type=click.IntRange(min=1), help="Label so many choices of each run at most, drawn at random.")
@json_option()
@store_option
@verbose_option
def reasons(
    run_ids: tuple[str, ...],
    study: str | None,
    judge: str,
    most: int | None,
    as_json: bool,
    store: str | None,
    **values: Any,
) -> int:
    """Let a model label the reasons that players of social dilemmas give for their choices.

    Each choice gets any of 15 kinds of reasons, or "other"; a choice whose reply gives no reasons gets none. Labels are
    added to the runs, and choices that are labelled already are not asked about again. See the result with: labmates
    analyze dilemmas --table reasons
    """
    from labmates.models.catalog import Catalog
    from labmates.models.names import parse_model
    from labmates.studies.reasons import label_reasons
    from labmates.workflows.analysis import Runs

    catalog = Catalog(model_options(values))
    model = str(parse_model(catalog.name_of(judge)))
    options = catalog.options()

    def notify(text: str) -> None:
        err().print(clean(text), markup=False)

    def watch(run: RunRecord, done: int, whole: int) -> None:
        notify(f"run {run.id}: {done} of {whole} choices")

    with closing(Runs(store, run_ids, study=study)) as chosen:
        runs = chosen.completed("dilemma")
        labelling = label_reasons(chosen.store, runs, model, options, most=most, watch=watch, notify=notify)
        added = run_until_stopped(labelling)
    if added is None:
        notify("Interrupted. What is labelled is kept; the same command goes on with the rest.")
        return 130
    if as_json:
        print_json({"runs": len(runs), "judge": model, "labelled": added})
    else:
        out().print(f"{added} choices of {len(runs)} runs labelled by {clean(model)}.", markup=False)
    return 0


reasons.params += options_of(ModelOptions)
