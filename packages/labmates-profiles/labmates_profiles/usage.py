"""The analysis of usage: by experiment and model, and of games relative to lab runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, median
from typing import Any, Final

from labmates.records.run import RunRecord
from labmates.stats.answers import highest
from labmates.stats.tables import Column, Table
from labmates.workflows.protocol.analysis import Analysis, Params, Result, Runs, TooFewRunsError

SIMULATIONS: Final = 20
"""Simulations of each game in a profile (cooperative-profiles paper, section 4.2)."""
_MEDIAN: Final = "median"
_AMOUNTS: Final = ("calls", "input", "output", "total", "reasoning", "seconds")


def usage(runs: Runs, _params: Params) -> Result:
    """Show the tokens per run, by experiment and model.

    The first table shows means per run over ended runs with one model, and the median over models (cooperative-profiles
    paper, Table 10). For models with both profile games and lab runs, a second table shows how many simulations of a
    game cost as much as one lab run, and how many lab runs cost as much as a profile.
    """
    records = [run for run in runs.ended() if len(run.models) == 1]
    if not records:
        raise TooFewRunsError("none of these runs has ended with a single model")
    table = usage_table(records)
    rows = [row for row in table.rows if row["model"] != _MEDIAN]
    return Result([table, *ratio_tables(records)], verdict=highest(table, "total", ["model"], ["kind"], rows=rows))


def usage_table(records: Iterable[RunRecord]) -> Table:
    """The mean usage of a run: a row for each experiment and model, in ascending order of tokens."""
    by_kind: dict[str, dict[str, list[RunRecord]]] = defaultdict(lambda: defaultdict(list))
    for run in records:
        by_kind[run.kind][run.models[0]].append(run)
    rows: list[dict[str, Any]] = []
    for kind, by_model in by_kind.items():
        by_tokens = [
            {"kind": kind, "model": model, "conditions": len({run.key for run in runs}), **_amounts(runs)}
            for model, runs in by_model.items()
        ]
        rows += sorted(by_tokens, key=lambda row: row["total"])
        if len(by_tokens) > 1:
            amounts = {name: median(row[name] for row in by_tokens) for name in ("conditions", "runs", *_AMOUNTS)}
            rows.append({"kind": kind, "model": _MEDIAN, **amounts})
    columns = [
        Column("kind", "experiment", once=True),
        Column("model"),
        Column("conditions", form=",.0f"),
        Column("runs", form=",.0f"),
        Column("calls", "calls per run", ",.0f"),
        Column("input", "input tokens per run", ",.0f"),
        Column("output", "output tokens per run", ",.0f"),
        Column("total", "tokens per run", ",.0f"),
        Column("seconds", "seconds per run", ",.1f"),
    ]
    notes = ["Means over ended runs; prompts and replies, including reasoning. Judges are left out."]
    return Table("usage", "Usage of runs", columns, rows, notes)


def _amounts(records: Sequence[RunRecord]) -> dict[str, Any]:
    usages = [run.usage for run in records]
    return {
        "runs": len(records),
        "calls": fmean(each.llm_calls for each in usages),
        "input": fmean(each.input_tokens for each in usages),
        "output": fmean(each.output_tokens for each in usages),
        "total": fmean(each.input_tokens + each.output_tokens for each in usages),
        "reasoning": fmean(each.reasoning_tokens for each in usages),
        "seconds": fmean(run.seconds for run in records),
    }


def ratio_tables(records: Sequence[RunRecord]) -> list[Table]:
    """Games relative to the lab, a row for each model with runs of both; no table without such models."""
    from labmates_profiles.prediction.sources import is_lab_run, is_profile_run

    games: dict[str, dict[str, list[RunRecord]]] = defaultdict(lambda: defaultdict(list))
    lab: dict[str, list[RunRecord]] = defaultdict(list)
    for run in records:
        if run.kind == "game" and is_profile_run(run):
            games[run.models[0]][run.condition["game"]].append(run)
        elif is_lab_run(run):
            lab[run.models[0]].append(run)
    rows = [_ratios(model, games[model], lab[model]) for model in games if model in lab]
    if not rows:
        return []
    ratios = [name for name in rows[0] if name not in ("model", "games", "lab_runs")]
    if len(rows) > 1:
        known = {name: [row[name] for row in rows if row[name] is not None] for name in ratios}
        medians = {name: median(values) if values else None for name, values in known.items()}
        rows.append({"model": _MEDIAN, **medians})
    columns = [
        Column("model"),
        Column("games"),
        Column("lab_runs", "lab runs"),
        Column("game_tokens", "tokens of a simulation", ",.0f"),
        Column("lab_tokens", "tokens of a lab run", ",.0f"),
        Column("tokens_ratio", "lab run / simulation, tokens", ".1f"),
        Column("seconds_ratio", "in seconds", ".1f"),
        Column("profile_lab_runs", "profile / lab run, tokens", ".2f"),
        Column("profile_lab_runs_seconds", "in seconds", ".2f"),
    ]
    notes = [
        "A simulation is one game under the usual condition, the mean over a model's games; a profile is "
        f"{SIMULATIONS} simulations of each game. Below 1 a profile takes less than one lab run."
    ]
    return [Table("usage-ratio", "Games relative to the lab", columns, rows, notes)]


def _ratios(model: str, games: Mapping[str, Sequence[RunRecord]], lab: Sequence[RunRecord]) -> dict[str, Any]:
    simulated, worked = [_amounts(records) for records in games.values()], _amounts(lab)
    row: dict[str, Any] = {"model": model, "games": len(simulated), "lab_runs": len(lab)}
    row |= {"game_tokens": fmean(each["total"] for each in simulated), "lab_tokens": worked["total"]}
    for name, amount, ratio, profile in (
        ("total", row["game_tokens"], "tokens_ratio", "profile_lab_runs"),
        ("seconds", fmean(each["seconds"] for each in simulated), "seconds_ratio", "profile_lab_runs_seconds"),
    ):
        row[ratio] = worked[name] / amount if amount else None
        row[profile] = SIMULATIONS * len(simulated) * amount / worked[name] if worked[name] else None
    return row


USAGE = Analysis(
    "usage",
    "Usage of runs",
    Params,
    usage,
    example="labmates analyze usage --out usage.tex",
    choices=("runs", "study", "kind", "task"),
)
