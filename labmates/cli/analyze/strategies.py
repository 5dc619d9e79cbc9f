"""``labmates analyze diversity|invasion``: sets of strategies written as code, and which can take over from which."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import json_option
from labmates.cli.console import clean, err, out, print_json
from labmates.cli.figures import draw, plot_option
from labmates.cli.strategies import GAMES, make_workers, processes_option, rules_options, sandbox_option
from labmates.cli.tables import print_grid
from labmates.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from labmates.workflows.populations.engine.behaviour import Behaviour
    from labmates.workflows.populations.engine.library import Gene

REFERENCES = ("cooperate", "defect", "random-0.5", "cc-1", "cc-2", "cc-3", "cd-1", "cd-2", "cd-3")
"""What strategies are shown beside on the map (paper, figure 1)."""

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
@plot_option()
@processes_option
@sandbox_option
@json_option("per model and attitude")
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
    each set (a model and an attitude; strategies that were written by different prompts, versions of them, models or
    temperatures are different sets): the mean pairwise distance (of random vectors: 1), the effective number of
    dimensions, and how far the model's sets of the other kind of attitude lie apart (Cohen's d).
    """
    import numpy as np

    from labmates.games.repeated import make_repeated
    from labmates.workflows.populations.engine.behaviour import behaviours, situations
    from labmates.workflows.populations.engine.library import load_population
    from labmates.workflows.populations.engine.reference import reference_source

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
    told = [_set_as_json(gene, sets, found, vectors) for gene in sets]
    if as_json:
        for one in told:
            print_json({"game": game, "features": features, "situations": vectors.shape[1], **one})
    else:
        _print_sets(told)
        for name, problems in population.refused.items():
            out().print(clean(f"{name} is left out: {problems[0]}"), style="dim", markup=False)
        for index in members:
            if errors := found[rows[index]].errors:
                failed = f"{population.names[index]} failed in {errors} decisions and fell back"
                out().print(clean(failed), style="dim", markup=False)
    if plot is not None:
        draw(_map(game, sets, vectors), plot)
    return 0


def _map(game: str, sets: dict[Gene, list[int]], vectors: NDArray[np.float64]) -> Figure:
    """Return the figure of all strategies, beside the reference strategies, whose vectors are the last."""
    from labmates.workflows.populations.diversity import principal_components
    from labmates.workflows.populations.figures import diversity_figure

    own, others = vectors[: -len(REFERENCES)], vectors[-len(REFERENCES) :]
    named = {str(gene): rows for gene, rows in sets.items()}
    references = dict(zip(REFERENCES, others, strict=True))
    return diversity_figure(principal_components(own), named, references, f"Strategies for {game}")


def _set_as_json(
    gene: Gene, sets: dict[Gene, list[int]], found: Sequence[Behaviour], vectors: NDArray[np.float64]
) -> dict[str, Any]:
    from labmates.workflows.populations.diversity import cohens_d, mean_pairwise_distance, participation_ratio
    from labmates.workflows.populations.engine.attitudes import falls_back_to_cooperation

    own = vectors[sets[gene]]
    kind = falls_back_to_cooperation(gene.attitude)
    return {
        "model": gene.model,
        "attitude": gene.attitude,
        "variant": gene.variant,
        "set": gene.set_name,
        "strategies": len(own),
        "cooperation": float(own.mean()),
        "mean_pairwise_distance": mean_pairwise_distance(own),
        "participation_ratio": participation_ratio(own),
        "cohens_d": {
            other.set_name: cohens_d(own, vectors[sets[other]])
            for other in sets
            if other.model == gene.model and falls_back_to_cooperation(other.attitude) != kind
        },
        "deterministic": sum(found[row].deterministic for row in sets[gene]),
        "errors": sum(found[row].errors for row in sets[gene]),
    }


def _print_sets(told: list[dict[str, Any]]) -> None:
    headings = ["model", "set", "strategies", "deterministic", "cooperation", "distance", "dimensions", "apart"]
    rows = []
    for one in told:
        apart = ", ".join(f"{_number(value)} from {name}" for name, value in one["cohens_d"].items())
        counts = (str(one[name]) for name in ("strategies", "deterministic"))
        numbers = (_number(one[name]) for name in ("cooperation", "mean_pairwise_distance", "participation_ratio"))
        rows.append([clean(one["model"]), clean(one["set"]), *counts, *numbers, apart or "–"])
    print_grid(headings, rows, [name not in ("model", "set", "apart") for name in headings])
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
@json_option("per pair")
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
    from labmates.workflows.populations.engine import evolution
    from labmates.workflows.populations.engine.library import load_population

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
                    told |= {"standard_error": found.standard_error, "invades": found.invades, "errors": found.errors}
                    print_json({"resident": str(resident), "invader": str(invader), **told})
                    continue
                verb = "invades" if found.invades else "does not invade"
                payoffs = f"{found.invader_payoff:.3f} against {found.resident_payoff:.3f} per round"
                failed = f"; strategies failed in {found.errors} decisions and fell back" if found.errors else ""
                out().print(clean(f"{invader} {verb} {resident}: {payoffs}{failed}"), markup=False)
    return 0
