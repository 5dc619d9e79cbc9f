"""``labmates judge``: judge ended runs, without executing them again."""

from __future__ import annotations

from dataclasses import asdict
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import json_option, run_choice, store_option, verbose_option
from labmates.cli.console import clean, complain, err, notify, out, print_json
from labmates.cli.interrupt import run_until_stopped
from labmates.cli.options import model_options, options_of
from labmates.errors import UsageError
from labmates.models.options import ModelOptions

if TYPE_CHECKING:
    from rich.progress import Progress

    from labmates.records.events import ScoreEvent
    from labmates.studies.judging import Judged


@click.command(
    epilog="Example: labmates judge 3f9a2c41d7 --judge openai:gpt-5.4-mini --judge google_genai:gemini-3.1-flash"
)
@run_choice
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="NAME",
    help="A model as provider:name (judges by rubrics), a registered judge, or your own judge as "
    "path/to/file.py:Class; repeatable. [default: heuristic, verified]",
)
@click.option(
    "--extractor",
    metavar="MODEL",
    help="Model that extracts findings from a report without a findings block, for the judge 'verified'. [default: "
    "the first judge model]",
)
@click.option("--again", is_flag=True, help="Score again with judges that have already scored a run.")
@click.option("--prices", metavar="PRICES", help="Price of judging. [default: each run's price list]")
@json_option("per run")
@store_option
@verbose_option
def judge(
    run_ids: tuple[str, ...],
    study: str | None,
    kind: str | None,
    task: str | None,
    judges: tuple[str, ...],
    extractor: str | None,
    again: bool,
    prices: str | None,
    as_json: bool,
    store: str | None,
    **values: Any,
) -> int:
    """Judge ended runs, without executing them again.

    Name runs, or select all of a study, experiment or task. New scores are added to existing ones; a judge scores a run
    once, unless --again is given. --base-url is the server of openai: judges.
    """
    from labmates.budgets.prices import read_prices
    from labmates.judges.panel import ALWAYS, make_panel
    from labmates.judges.registry import registered_name
    from labmates.models.catalog import Catalog
    from labmates.records.listing import select_runs
    from labmates.records.store import Store
    from labmates.studies.judging import judge_runs, judgeable
    from labmates.studies.settings import RunSettings

    if not (run_ids or study or kind or task):
        raise UsageError("name the runs to judge, or choose them by --study, --kind or --task")
    named = tuple(map(registered_name, judges)) or ALWAYS
    asked = RunSettings(models=model_options(values), judges=named, extractor=extractor)
    asked = asked.resolved(Catalog(asked.models))
    panel = make_panel(asked.judges, asked.extractor, always=())
    options = asked.models
    price_list = read_prices(prices) if prices else None
    with Store(store, must_exist=True) as database:
        chosen = select_runs(database, run_ids, study=study, kind=kind, task=task)
        runs = judgeable(chosen, strict=bool(run_ids))
        with Tally(len(runs), as_json=as_json) as tally:
            work = judge_runs(
                database, runs, panel, options, again=again, prices=price_list, watch=tally.watch, notify=notify
            )
            judged = run_until_stopped(work)
    if judged is None:
        err().print("Interrupted. Scores so far are kept; repeat the command to continue.")
        return 130
    if not as_json:
        tally.print_sum()
    return 0 if all(result.is_done for result in judged) else 1


judge.params += options_of(ModelOptions)


class Tally:
    """The progress display of judging; a context manager around the work."""

    def __init__(self, runs: int, *, as_json: bool) -> None:
        self._runs = runs
        self._as_json = as_json
        self._done: list[Judged] = []
        self._bar: Progress | None = None

    def __enter__(self) -> Tally:
        if err().is_terminal and not self._as_json:
            from rich.progress import Progress

            self._bar = Progress(console=err(), transient=True)
            self._bar.add_task("runs judged", total=self._runs)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def watch(self, judged: Judged) -> None:
        """Report the result of a run."""
        self._done.append(judged)
        if self._bar is not None:
            self._bar.advance(self._bar.task_ids[0])
        if judged.error is not None:
            complain(f"run {judged.run.id} was not judged: {judged.error}")
        if self._as_json:
            print_json(_json(judged))
        else:
            where = f"run {judged.run.id}"
            if not judged.added and judged.error is None:
                out().print(f"{where}: nothing to add, these judges have scored it (--again repeats)")
            for score in judged.added:
                value = "unscored" if score.value is None else f"{score.value:.3f}"
                out().print(f"{where}: {score.judge} {score.metric} {value}  {clean(score.reason)}")

    def print_sum(self) -> None:
        """Print the number of new scores, and their cost."""
        from labmates.budgets.money import show_dollars

        calls = [call for judged in self._done for call in judged.calls]
        tokens = sum(call.input_tokens + call.output_tokens for call in calls)
        cost = show_dollars(sum(call.cost for call in calls))
        added = sum(len(judged.added) for judged in self._done)
        out().print(
            f"{added} scores added to {len(self._done)} runs; {len(calls)} model calls, {tokens:,} tokens, {cost}",
        )


def _json(judged: Judged) -> dict[str, Any]:
    from labmates.budgets.money import format_dollars
    from labmates.studies.judging import judging_usage

    used = [{**asdict(usage), "cost": format_dollars(usage.cost)} for usage in judging_usage(judged.calls)]
    return {
        "id": judged.run.id,
        "kind": judged.run.kind,
        "added": [_score_json(score) for score in judged.added],
        "judging": used,
        "error": judged.error,
    }


def _score_json(score: ScoreEvent) -> dict[str, Any]:
    data = {name: getattr(score, name) for name in ("judge", "version", "metric", "value", "reason", "failed")}
    return {**data, "at": score.at}
