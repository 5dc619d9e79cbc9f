"""``labmates analyze diversity|invasion|selfplay|evolution``: strategies written as code, and how populations fare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import store_option
from labmates.cli.console import clean, err, out, print_json
from labmates.cli.strategies import GAMES, make_workers, processes_option, rules_options, sandbox_option
from labmates.cli.tables import out_option, print_grid, write_files
from labmates.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from labmates.populations.library import Gene
    from labmates.records.run import RunRecord
    from labmates.records.store import Store

REFERENCES = ("cooperate", "defect", "random-0.5", "cc-1", "cc-2", "cc-3", "cd-1", "cd-2", "cd-3")
"""What strategies are shown beside on the map (paper, figure 1)."""

_plot = click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw it: png, svg or pdf.")
_game = click.option("--game", type=click.Choice(GAMES), required=True, help="The game.")
_models = click.option("--model", "models", multiple=True, metavar="NAME", help="Take this model's; repeatable.")
_attitudes = click.option(
    "--attitude", "attitudes", multiple=True, metavar="NAME", help="Take those of this attitude; repeatable."
)


@click.command("diversity", epilog="Example: labmates analyze diversity strategies --game public-goods --plot map.png")
@click.argument("path", type=click.Path(path_type=Path))
@_game
@_models
@_attitudes
@click.option(
    "--features",
    type=click.Choice(["histories", "counts"]),
    default="counts",
    show_default=True,
    help="Situations: what each opponent did, whoever it was, or how many cooperated in each round.",
)
@click.option("--group-size", type=click.IntRange(2, 64), default=4, show_default=True, help="Players of the games.")
@click.option("--rounds", type=click.IntRange(1, 12), default=5, show_default=True, help="Rounds of the games.")
@rules_options
@click.option(
    "--rollouts", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Games through each history."
)
@_plot
@processes_option
@sandbox_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per model and attitude and nothing else.")
def diversity(
    path: Path,
    game: str,
    models: tuple[str, ...],
    attitudes: tuple[str, ...],
    features: Any,
    group_size: int,
    rounds: int,
    rollouts: int,
    plot: Path | None,
    processes: int | None,
    sandbox: str,
    as_json: bool,
    **rules: float | None,
) -> int:
    """Tell how different strategies are.

    Each strategy is met with every history that its opponents can have, which gives a vector of cooperation rates. For
    each set (a model and an attitude): the mean pairwise distance (of random vectors: 1), the effective number of
    dimensions, and how far the model's sets of the other kind of attitude lie apart (Cohen's d).
    """
    import numpy as np

    from labmates.analysis.figures import check_figure
    from labmates.games.repeated import make_repeated
    from labmates.populations.behaviour import behaviours, situations
    from labmates.populations.library import load_population
    from labmates.populations.reference import reference_source

    if plot is not None:
        check_figure(plot)
    made = make_repeated(game, group_size, rounds, rules)
    situations(made, features)
    with make_workers(processes, sandbox) as workers, err().status("") as status:
        population = load_population(workers, path, game, models=models, attitudes=attitudes)
        known = workers.load("reference strategies", reference_source(REFERENCES)) if plot else []
        members = [index for indices in population.genes.values() for index in indices]
        indices = [*members, *(one.index for one in known)]
        found = behaviours(
            made,
            workers.play,
            indices,
            features=features,
            random={one.index: one.random for one in workers.loaded},
            cooperate=population.cooperate,
            rollouts=rollouts,
            tell=lambda done: status.update(f"{done} of {len(indices)} strategies"),
        )
    vectors = np.array([one.rates for one in found])
    rows = {index: row for row, index in enumerate(indices)}
    sets = {gene: [rows[index] for index in chosen] for gene, chosen in population.genes.items()}
    told = [
        {
            **_set_as_json(gene, sets, vectors),
            "deterministic": sum(found[row].deterministic for row in sets[gene]),
            "errors": sum(found[row].errors for row in sets[gene]),
        }
        for gene in sets
    ]
    if as_json:
        for one in told:
            print_json({"game": game, "features": features, "situations": vectors.shape[1], **one})
    else:
        _print_sets(told)
        for name, problems in population.refused.items():
            out().print(clean(f"{name} is left out: {problems[0]}"), style="dim", markup=False)
    if plot is not None:
        from labmates.analysis.diversity import principal_components
        from labmates.analysis.figures import save_figure
        from labmates.analysis.population_figures import diversity_figure

        references = {name: vectors[len(members) + place] for place, name in enumerate(REFERENCES)}
        drawn = {str(gene): chosen for gene, chosen in sets.items()}
        title = f"Strategies for {game}"
        save_figure(diversity_figure(principal_components(vectors[: len(members)]), drawn, references, title), plot)
    return 0


def _set_as_json(gene: Gene, sets: dict[Gene, list[int]], vectors: NDArray[np.float64]) -> dict[str, Any]:
    from labmates.analysis.diversity import cohens_d, mean_pairwise_distance, participation_ratio
    from labmates.populations.attitudes import falls_back_to_cooperation

    own = vectors[sets[gene]]
    kind = falls_back_to_cooperation(gene.attitude)
    return {
        "model": gene.model,
        "attitude": gene.attitude,
        "strategies": len(own),
        "cooperation": float(own.mean()),
        "mean_pairwise_distance": mean_pairwise_distance(own),
        "participation_ratio": participation_ratio(own),
        "cohens_d": {
            other.attitude: cohens_d(own, vectors[sets[other]])
            for other in sets
            if other.model == gene.model and falls_back_to_cooperation(other.attitude) != kind
        },
    }


def _print_sets(told: list[dict[str, Any]]) -> None:
    headings = ["model", "attitude", "strategies", "deterministic", "cooperation", "distance", "dimensions", "apart"]
    rows = []
    for one in told:
        apart = ", ".join(f"{_number(value)} from {name}" for name, value in one["cohens_d"].items())
        counts = (str(one[name]) for name in ("strategies", "deterministic"))
        numbers = (_number(one[name]) for name in ("cooperation", "mean_pairwise_distance", "participation_ratio"))
        rows.append([clean(one["model"]), clean(one["attitude"]), *counts, *numbers, apart or "–"])
    print_grid(headings, rows, [name not in ("model", "attitude", "apart") for name in headings])
    out().print("distance: mean of all pairs, 1 for random vectors; apart: Cohen's d; – is not defined.", style="dim")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


@click.command("invasion", epilog="Example: labmates analyze invasion strategies --game public-goods")
@click.argument("path", type=click.Path(path_type=Path))
@_game
@_models
@_attitudes
@click.option("--group-size", type=click.IntRange(2, 4096), default=4, show_default=True, help="Players in a group.")
@click.option("--rounds", type=click.IntRange(1, 1000), default=20, show_default=True, help="Rounds of a game.")
@rules_options
@click.option("--samples", type=click.IntRange(2, 100_000), default=500, show_default=True, help="Groups of each kind.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all random numbers.")
@processes_option
@sandbox_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per pair and nothing else.")
def invasion(
    path: Path,
    game: str,
    models: tuple[str, ...],
    attitudes: tuple[str, ...],
    group_size: int,
    rounds: int,
    samples: int,
    seed: int,
    processes: int | None,
    sandbox: str,
    as_json: bool,
    **rules: float | None,
) -> int:
    """Tell which sets of strategies can invade which: one invader does better than residents among themselves."""
    from labmates.games.repeated import make_repeated
    from labmates.populations import evolution
    from labmates.populations.library import load_population

    made = make_repeated(game, group_size, rounds, rules)
    with make_workers(processes, sandbox) as workers:
        population = load_population(workers, path, game, models=models, attitudes=attitudes)
        genes = list(population.genes)
        if len(genes) < 2:
            raise UsageError(f"there is one set of strategies alone, {genes[0]}; it takes two to invade")
        for resident in genes:
            for invader in genes:
                if invader == resident:
                    continue
                found = evolution.invasion(
                    made, population, workers.play, resident, invader, samples=samples, seed=seed
                )
                if as_json:
                    told = {"resident_payoff": found.resident_payoff, "invader_payoff": found.invader_payoff}
                    told |= {"standard_error": found.standard_error, "invades": found.invades}
                    print_json({"resident": str(resident), "invader": str(invader), **told})
                    continue
                verb = "invades" if found.invades else "does not invade"
                payoffs = f"{found.invader_payoff:.3f} against {found.resident_payoff:.3f} per round"
                out().print(clean(f"{invader} {verb} {resident}: {payoffs}"), markup=False)
    return 0


@click.command("selfplay", epilog="Example: labmates analyze selfplay --plot welfare.png")
@click.argument("run_ids", nargs=-1, metavar="[RUN]...")
@_plot
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per run and nothing else.")
@out_option
@store_option
def selfplay(
    run_ids: tuple[str, ...], plot: Path | None, as_json: bool, files: tuple[Path, ...], store: str | None
) -> int:
    """Show how groups fare by their share of selfish players; by default in all runs of self-play of the store."""
    from labmates.analysis.figures import check_figure, save_figure
    from labmates.analysis.population_figures import selfplay_figure
    from labmates.analysis.populations import curves_of, mixed, mixtures_table
    from labmates.workflows.selfplay.condition import SelfplayCondition

    if plot is not None:
        check_figure(plot)
    database, runs = _runs(store, run_ids, "selfplay")
    try:
        found = [mixed(database, run) for run in runs]
    finally:
        database.close()
    write_files([mixtures_table(found)], files)
    for run, one in zip(runs, found, strict=True):
        if as_json:
            points = [dict(zip(("selfish", "welfare", "low", "high"), point, strict=True)) for point in one.points]
            told = {"run": run.id, "game": one.game, "model": one.model, "group_size": one.group_size}
            print_json({**told, "mixtures": points})
            continue
        out().print(
            clean(f"\n{one.game}, {one.model}, groups of {one.group_size} (run {run.id})"), style="bold", markup=False
        )
        for share, welfare, low, high in one.points[:: max(1, len(one.points) // 16)]:
            out().print(f"  {100 * share:5.1f} % selfish: {welfare:.3f} [{low:.3f}, {high:.3f}]", markup=False)
    if plot is not None:
        games = sorted({(one.game, str(run.condition["rules"])) for run, one in zip(runs, found, strict=True)})
        if len(games) > 1:
            raise UsageError("a figure shows one game; name the runs that are to be drawn")
        condition = SelfplayCondition.model_validate(runs[0].condition)
        save_figure(
            selfplay_figure(curves_of(found), condition.make_game().bounds(), f"Self-play in {games[0][0]}"), plot
        )
    return 0


@click.command("evolution", epilog="Example: labmates analyze evolution --plot evolution.png")
@click.argument("run_ids", nargs=-1, metavar="[RUN]...")
@click.option(
    "--plot", type=click.Path(dir_okay=False, path_type=Path), help="Draw the first of the runs: png, svg or pdf."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per condition and nothing else.")
@out_option
@store_option
def evolution(
    run_ids: tuple[str, ...], plot: Path | None, as_json: bool, files: tuple[Path, ...], store: str | None
) -> int:
    """Show which genes win, by condition; by default in all evolutions of the store."""
    from labmates.analysis.figures import check_figure, save_figure
    from labmates.analysis.population_figures import evolution_figure
    from labmates.analysis.populations import evolved, gene_shares, winners_table

    if plot is not None:
        check_figure(plot)
    database, runs = _runs(store, run_ids, "evolution")
    try:
        found = evolved(database, runs)
        shares = gene_shares(database, runs[0]) if plot is not None else []
    finally:
        database.close()
    write_files([winners_table(found)], files)
    for one in found:
        if as_json:
            told = {"generations": one.generations, "welfare_efficiency": one.efficiency}
            told |= {"threshold_reached": one.reached, "cooperation": one.cooperation}
            print_json({"condition": dict(one.condition), "runs": one.runs, **told, "winners": dict(one.winners)})
            continue
        condition = one.condition
        where = f"{condition['game']}, groups of {condition['group_size']}, {condition['protocol']}"
        out().print(clean(f"\n{where}: {one.runs} runs"), style="bold", markup=False)
        for gene, wins in one.winners:
            out().print(clean(f"  {wins:4d} won by {gene}"), markup=False)
        out().print(
            f"  threshold reached in {one.reached}; {one.generations:.0f} generations, welfare efficiency "
            f"{100 * one.efficiency:.0f} %, cooperation {100 * one.cooperation:.0f} % on average",
            markup=False,
        )
    if plot is not None:
        save_figure(evolution_figure(shares, f"Evolution in {runs[0].condition['game']} (run {runs[0].id})"), plot)
    return 0


def _runs(store: str | None, run_ids: tuple[str, ...], kind: str) -> tuple[Store, list[RunRecord]]:
    """Return the completed runs of a kind: the named ones, or all."""
    from labmates.records.database import store_url
    from labmates.records.store import Store
    from labmates.studies.select import select_runs

    database = Store(store_url(store), must_exist=True)
    try:
        found = select_runs(database, run_ids, study=None, kind=kind, task=None)
        other = next((run for run in found if run.kind != kind), None)
        if other is not None:
            raise UsageError(f"the run '{other.id}' is of the kind {other.kind}, not {kind}")
        ended = [run for run in found if run.status == "completed"]
        if not ended:
            raise UsageError(f"the store has no completed run of the kind {kind}; make some with: labmates run {kind}")
    except BaseException:
        database.close()
        raise
    return database, ended
