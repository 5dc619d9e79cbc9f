"""Play games and the lab with baselines and small models, and write the page of results from the store.

    python -m benchmarks.results gguf:smollm2 gguf:/models/qwen05.gguf gguf:/models/qwen15.gguf
    python -m benchmarks.results --only-page gguf:smollm2

Runs that the store holds are not played again, so an interrupted command is completed by repeating it, and more models
or games are added by naming them. A model whose file is missing is left out, and the page says so.
"""

from __future__ import annotations

import argparse
import csv
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import labmates
from labmates import condition_types as types
from labmates._version import __version__
from labmates.errors import UsageError
from labmates.games.registry import GAMES
from labmates.models.catalog import Catalog
from labmates.models.options import ModelOptions
from labmates.records.run import ENDED, RunRecord
from labmates.records.store import Store
from labmates.reports.runs import is_baseline
from labmates.stats.tables import CREDIBLE, MISSING, Column, Table
from labmates.studies.settings import RunSettings

BASELINES = ("scripted:random", "scripted:fair-share", "scripted:defect")
ANALYST = "scripted:diligent"
GAME = {"groups": 1, "group_size": 4, "rounds": 2, "repair_turns": 3, "max_output_tokens": 64}
# Two rounds of four players can't win the game's own target of 100.
GAME_RULES = {"collective-risk": {"target": 30}}
SIMULATIONS = 2
LAB = {"task": "anomaly", "difficulty": "easy", "budget": "0.2", "max_turns": 3, "max_output_tokens": 384}
# The smallest teams that there are: more seats would only take small models longer.
TEAMS = {"organisation": "pipeline", "team_size": 2, "deliberation_rounds": 0, "max_requests": 0}
# The baseline shows what can be earned; cut at 384 tokens, it states nothing either.
ANALYST_LAB = {**LAB, "budget": "1", "max_output_tokens": 4096}
GAME_NOTE = (
    f"{SIMULATIONS} simulations each; replies without a schema; the target of collective-risk is 30. 1 is the social "
    "optimum, 0 the selfish equilibrium; in brackets, the decisions that failed after all repair turns. † marks "
    "invalid runs: more than 20 % failed. Tokens and seconds are those of a run."
)
ANALYST_RULES = "One run each. The baseline has $1 and 4,096 tokens a reply: it shows what is attainable."
STRONG = Path(__file__).with_name("strong_model_runs.csv")
SETTINGS = {"call_timeout": 900.0, "max_concurrent_calls": 2}


class Play(NamedTuple):
    """A condition, and how often it is played."""

    kind: str
    condition: dict[str, Any]
    replicates: int


def found(references: Sequence[str]) -> tuple[Catalog, list[str], list[str]]:
    """The models whose files can be read, by their full names, and why others are left out."""
    catalog, models, missing = Catalog(ModelOptions(**SETTINGS)), [], []
    for reference in references:
        try:
            models.append(catalog.name_of(reference))
        except UsageError as error:
            missing.append(str(error))
    return catalog, models, missing


def plays(models: Sequence[str], games: Sequence[str], *, with_lab: bool) -> Iterator[Play]:
    """All conditions: cheap ones first, so that an early end leaves whole tables."""
    for model in (*BASELINES, *models):
        for game in games:
            rules = {"rules": GAME_RULES[game]} if game in GAME_RULES else {}
            yield Play("game", {**GAME, **rules, "game": game, "model": model}, SIMULATIONS)
    if with_lab:
        for organisation in ({"solo": True}, TEAMS):
            for model in (ANALYST, *models):
                lab = ANALYST_LAB if model == ANALYST else LAB
                yield Play("science", {**lab, **organisation, "model": model}, 1)


def play_missing(store_url: str, planned: Iterable[Play], catalog: Catalog) -> None:
    """Play what the store lacks, and resume what was interrupted."""
    settings = RunSettings(models=catalog.options())
    for kind, condition, replicates in planned:
        with Store(store_url) as store:
            known = {run.seed: run for run in store.runs(kind=kind) if is_of(run, condition)}
        for seed in range(replicates):
            run = known.get(seed)
            if run is None:
                print(f"{kind}, seed {seed}: {condition}", flush=True)
                labmates.run(
                    types.Kind(kind), seed=seed, store=store_url, settings=settings, progress=True, **condition
                )
            elif run.status not in ENDED:
                labmates.resume([run.id], store=store_url, progress=True)


def is_of(run: RunRecord, condition: dict[str, Any]) -> bool:
    """Whether a run is one of a condition."""
    wanted = dict(condition)
    is_alone = wanted.pop("solo", False)
    wanted.pop("organisation", None)
    rules = wanted.pop("rules", {})
    same = all(str(run.condition.get(name)) == str(value) for name, value in wanted.items())
    same = same and rules.items() <= run.condition.get("rules", {}).items()
    return same and (run.kind != "science" or (run.condition["organisation"] == "solo") is is_alone)


def markdown(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Rows as a table in Markdown."""
    if not (rows := list(rows)):
        return ["No runs."]
    table = Table(
        "results",
        "",
        [Column(key, form=".2f" if any(isinstance(row[key], float) for row in rows) else None) for key in rows[0]],
        rows,
    )
    lines = [f"| {' | '.join(column.title for column in table.columns)} |"]
    lines.append(f"|{'|'.join(' ---: ' if right else ' --- ' for right in table.sides())}|")
    return [*lines, *(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in table.cells())]


def grouped(runs: Iterable[RunRecord], key: Callable[[RunRecord], Any]) -> dict[Any, list[RunRecord]]:
    """The runs by a key; those of baselines first."""
    groups: dict[Any, list[RunRecord]] = {}
    for run in sorted(runs, key=lambda run: not is_baseline(run.models[0])):
        groups.setdefault(key(run), []).append(run)
    return groups


def in_game(runs: Sequence[RunRecord]) -> str:
    """The cooperation of runs of one game, and the share of their decisions that failed."""
    if not runs:
        return MISSING
    values = [value for run in runs if (value := run.metrics.get("cooperation")) is not None]
    mark = CREDIBLE if any(run.invalid for run in runs) else ""
    failed = fmean(run.metrics["failed_decision_rate"] for run in runs)
    return f"{f'{fmean(values):.2f}' if values else MISSING}{mark} ({failed:.0%})"


def used(runs: Sequence[RunRecord]) -> dict[str, Any]:
    """What runs used: the share of replies that failed, and per run the tokens read and written, and the time."""
    calls = sum(run.usage.llm_calls for run in runs)
    return {
        "failed replies": f"{sum(run.usage.failed_replies for run in runs) / calls:.0%}" if calls else MISSING,
        "tokens": round(fmean(run.usage.input_tokens + run.usage.output_tokens for run in runs)),
        "seconds": round(fmean(run.seconds for run in runs)),
    }


def games_table(runs: Sequence[RunRecord], names: Iterable[str]) -> list[str]:
    """A row for each model, with a cell for each game."""
    return markdown(
        {
            "models": models,
            **{n: in_game([run for run in mine if run.condition["game"] == n]) for n in names},
            **used(mine),
        }
        for models, mine in grouped(runs, lambda run: run.shown_models).items()
    )


def lab_table(runs: Sequence[RunRecord]) -> list[str]:
    """A row for each model alone, and one for its teams."""

    def team(run: RunRecord) -> str:
        return "one agent" if run.condition["organisation"] == "solo" else "four teams"

    return markdown(
        {
            "models": models,
            "who": who,
            "skill": mine[0].metrics.get("skill"),
            "tool calls": sum(run.usage.tool_calls for run in mine),
            **used(mine),
        }
        for (models, who), mine in grouped(runs, lambda run: (run.shown_models, team(run))).items()
    )


def page(store_url: str, planned: Sequence[Play], missing: Sequence[str]) -> str:
    """The page, from the runs in the store."""
    with Store(store_url) as store:
        runs = [
            run
            for run in store.runs()
            if run.status in ENDED and any(run.kind == p.kind and is_of(run, p.condition) for p in planned)
        ]
    games = [run for run in runs if run.kind == "game"]
    lab = [run for run in runs if run.kind == "science"]
    lines = [
        "# Results with small models",
        "",
        "Written by `make results` from its store. The language models are far too small for the lab: their zeros are "
        "the result. `MODEL@DIGEST` is a model file and the start of its SHA-256 digest.",
        "",
        'To repeat it with your files: `make results MODELS="gguf:smollm2 gguf:/models/qwen05.gguf?slots=2 …"`. It '
        "takes hours on two processors; other work ran on the machine while these times were taken.",
        "",
        f"labmates {__version__}, {platform.machine()}, {len(runs)} runs.",
        "",
    ]
    if all(map(is_baseline, {model for run in runs for model in run.models})):
        lines += ["Not measured yet: language models; so far the scripted baselines have played.", ""]
    lines += lacking(runs, planned)
    lines += [f"Left out: {reason}." for reason in missing]
    names = dict.fromkeys(play.condition["game"] for play in planned if play.kind == "game")
    lines += ["", "## Cooperation in games", "", *rules(GAME, GAME_NOTE), ""]
    lines += games_table(games, names)
    lines += ["", "## Skill in the lab", "", *rules(LAB, ANALYST_RULES), ""]
    lines += [*rules(TEAMS, "For the team; the rest is as above."), ""]
    lines += [*lab_table(lab), ""]
    return "\n".join([*lines, *strong(), ""])


def lacking(runs: Sequence[RunRecord], planned: Iterable[Play]) -> list[str]:
    """The planned runs that have not ended, a line for each model."""
    lacks: dict[str, list[str]] = {}
    for play in planned:
        ended = sum(run.kind == play.kind and is_of(run, play.condition) for run in runs)
        what = play.condition.get("game") or (
            "the lab alone" if play.condition.get("solo") else "the lab in four teams"
        )
        if ended < play.replicates:
            number = f"{play.replicates - ended} of {play.replicates} runs"
            lacks.setdefault(play.condition["model"], []).append(f"{what} ({number})")
    return [f"- Not measured with {model}: {', '.join(what)}." for model, what in lacks.items()]


def rules(condition: dict[str, Any], more: str) -> list[str]:
    """A condition as a sentence."""
    return [", ".join(f"{name.replace('_', ' ')} {value}" for name, value in condition.items()) + f". {more}"]


def strong() -> list[str]:
    """The runs of a strong model, which are not repeated here."""
    with STRONG.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    return [
        "## Eleven lab runs of a strong model",
        "",
        "Each was played once, in November 2026, at the commit 2c4febc5 unless another is named, with seed 3, "
        "medium difficulty, and bubblewrap. A strong chat model answered through an OpenAI-compatible server. Costs "
        "are credits at $0.5 and $3 per million tokens. In the runs at 2c4febc5 scikit-learn failed in the sandbox, "
        "which cost two to three replies each: do not compare their scores with later ones. The last paper "
        "contradicts the correct findings that it states: its heuristic quality is .85, its provenance 0.",
        "",
        *markdown(rows),
    ]


def main() -> None:
    """Read the arguments, play, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=["gguf:smollm2"], help="models, for instance gguf:PATH")
    parser.add_argument("--game", action="append", choices=GAMES.names(), help="a game; repeatable; default: all")
    parser.add_argument("--without-lab", action="store_true", help="play the games alone")
    parser.add_argument("--only-page", action="store_true", help="play nothing; write the page from the store")
    parser.add_argument("--store", default="sqlite:///build/results.db")
    parser.add_argument("--page", type=Path, default=Path("docs/results.md"))
    options = parser.parse_args()
    catalog, models, missing = found(options.models)
    planned = list(plays(models, options.game or GAMES.names(), with_lab=not options.without_lab))
    if not options.only_page:
        Path("build").mkdir(exist_ok=True)
        play_missing(options.store, planned, catalog)
    options.page.write_text(page(options.store, planned, missing), encoding="utf-8")
    print(f"wrote {options.page}")


if __name__ == "__main__":
    main()
