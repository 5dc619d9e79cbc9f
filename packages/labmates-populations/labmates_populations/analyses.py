"""Analyses of self-play, of evolution, and of strategies written as code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import Field

from labmates.errors import UsageError
from labmates.stats.answers import highest
from labmates.stats.tables import Column, Table
from labmates.util.display_names import in_words
from labmates.util.grouping import grouped
from labmates.util.seeds import derive
from labmates.workflows.protocol.analysis import Analysis, Drawing, Params, Result, Runs
from labmates_populations.condition import Attitudes, Game, ModelNames, Processes, RulesParams

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from labmates.records.run import RunRecord
    from labmates_populations.engine.behaviour import Behaviour
    from labmates_populations.engine.library import Gene, Population
    from labmates_populations.engine.workers import Workers
    from labmates_populations.outcomes import WelfareCurve
    from labmates_populations.repeated import RepeatedGame


def selfplay(runs: Runs, _params: Params) -> Result:
    """Show the welfare of groups by their share of selfish players; by default for all self-play in the store."""
    from labmates_populations.outcomes import mixtures_table, welfare_curve

    curves = [welfare_curve(runs.store, record) for record in runs.completed("selfplay")]
    table = mixtures_table(curves)
    within = [column.key for column in table.columns if column.once]
    return Result(
        [table],
        list(_welfare_drawings(curves)),
        highest(table, "welfare", ["selfish"], within),
        objects=[curve.as_json() for curve in curves],
    )


def _welfare_drawings(curves: Sequence[WelfareCurve]) -> Iterator[Drawing]:
    from labmates_populations.condition import SelfplayCondition
    from labmates_populations.figures import selfplay_figure
    from labmates_populations.outcomes import named_points

    for game in dict.fromkeys(curve.game for curve in curves):
        members = [curve for curve in curves if curve.game == game]
        bounds = [SelfplayCondition.model_validate(curve.condition).make_game().bounds() for curve in members]
        title = f"Self-play in {game}"
        alt = f"Welfare in {game} by the share of selfish players; the numbers are in the table."
        yield Drawing(f"selfplay-{game}", title, alt, partial(selfplay_figure, named_points(members), bounds, title))


SELFPLAY = Analysis(
    "selfplay",
    "Mixtures",
    Params,
    selfplay,
    example="labmates analyze selfplay --plot welfare.png",
    choices=("runs",),
    kind="selfplay",
    objects="per run",
    has_figures=True,
)


def evolution(runs: Runs, _params: Params) -> Result:
    """Show the winning genes and strategies by condition; by default for all evolutions in the store."""
    from labmates_populations.outcomes import evolution_results, survivors_table, winners_table

    records = runs.completed("evolution")
    results = evolution_results(runs.store, records)
    tables = [winners_table(results), survivors_table(runs.store, records)]
    shown = [table for table in tables if table.rows]
    drawings = list(_share_drawings(runs, records))
    within = [column.key for column in tables[0].columns if column.once]
    verdict = highest(tables[0], "wins", ["winner"], within, "number of runs won")
    return Result(shown, drawings, verdict, objects=[vars(result) for result in results])


def _share_drawings(runs: Runs, records: Sequence[RunRecord]) -> Iterator[Drawing]:
    from labmates_populations.figures import evolution_figure
    from labmates_populations.outcomes import gene_shares, named_conditions

    def draw(members: Sequence[RunRecord], title: str) -> Figure:
        named = named_conditions(members)
        panels = {name: [gene_shares(runs.store, record) for record in each] for name, each in named.items()}
        return evolution_figure(panels, title)

    for game, members in grouped((record.condition["game"], record) for record in records).items():
        title = f"Shares of genes in {game}"
        alt = f"Shares of genes in {game} over the generations; the table counts the runs that each gene wins."
        yield Drawing(f"evolution-{game}", title, alt, partial(draw, members, title))


EVOLUTION = Analysis(
    "evolution",
    "Winners",
    Params,
    evolution,
    example="labmates analyze evolution --plot evolution.png",
    choices=("runs",),
    kind="evolution",
    objects="per condition",
    has_figures=True,
)


class StrategiesParams(RulesParams):
    """Common parameters of analyses of strategies: the players, the rules and the sandbox."""

    path: Path = Field(description="A library or a file of strategies.", json_schema_extra={"argument": True})
    models: ModelNames = ()
    attitudes: Attitudes = ()
    processes: Processes = None

    def load(self, workers: Workers) -> Population:
        """The strategies, loaded into the workers."""
        from labmates_populations.engine.library import load_population

        return load_population(workers, self.path, self.game, models=self.models, attitudes=self.attitudes)


REFERENCES: Final = ("cooperate", "defect", "random-0.5", "cc-1", "cc-2", "cc-3", "cd-1", "cd-2", "cd-3")
"""Reference strategies on the map (paper, figure 1)."""


class DiversityParams(StrategiesParams):
    """The parameters of the analysis of diversity."""

    features: Literal["histories", "counts"] = Field(
        "counts",
        description="Features of a history: each opponent's moves, in any order (histories), or the number of "
        "cooperators per round (counts).",
    )
    group_size: int = Field(4, ge=2, le=64, description="Players of the games.")
    rounds: int = Field(5, ge=1, le=12, description="Rounds of the games.")
    rollouts: int = Field(50, ge=1, le=10_000, description="Games per history.")
    joint: tuple[Game, ...] = Field(
        (), description="A further game whose strategies stand on one map with those of --game; repeatable."
    )

    def behaviours(
        self, runs: Runs, workers: Workers, indices: Sequence[int], cooperate: frozenset[int] = frozenset()
    ) -> list[Behaviour]:
        """Behaviour of strategies in every situation; those in `cooperate` fall back to cooperation."""
        from labmates_populations.engine.behaviour import behaviours

        steps = max(1, len(indices) // 10)

        def report(done: int) -> None:
            if done % steps == 0:
                runs.watch(f"{done} of {len(indices)} strategies")

        return behaviours(
            self.make_game(self.group_size, self.rounds),
            workers.play,
            indices,
            features=self.features,
            random={loaded.index: loaded.random for loaded in workers.loaded},
            cooperate=cooperate,
            rollouts=self.rollouts,
            tell=report,
        )


def diversity(runs: Runs, params: DiversityParams) -> Result:
    """Measure the behavioural diversity of strategies.

    Each strategy is played against every possible history of its opponents, which yields a vector of cooperation rates.
    A set has one model, attitude and way of writing (prompt and its version, information, system prompt, temperature).
    For each set, the table shows the mean pairwise distance (1 for random vectors), the effective number of dimensions,
    and the distance (Cohen's d) from the model's sets with the opposite attitude, or with the same attitude and another
    way of writing. A strategy takes turns if it changes its move at least twice while all others cooperate.
    """
    import numpy as np

    from labmates_populations.diversity import takes_turns
    from labmates_populations.engine.behaviour import situations

    known = situations(params.make_game(params.group_size, params.rounds), params.features)  # refuses too many
    with params.workers(runs.watch, params.processes) as workers:
        population = params.load(workers)
        members = [index for indices in population.genes.values() for index in indices]
        behaviours = params.behaviours(runs, workers, members, population.cooperate)
        per_opponent = sum(workers.loaded[index].paper for index in members)
    vectors = np.array([behaviour.rates for behaviour in behaviours])
    rows = {index: row for row, index in enumerate(members)}
    sets = {gene: [rows[index] for index in indices] for gene, indices in population.genes.items()}
    turns = takes_turns(vectors[:, known.all_cooperate])
    measures = [
        {**_measures(gene, sets, behaviours, vectors), "take_turns": int(turns[sets[gene]].sum())} for gene in sets
    ]
    notes = ["Distance: mean of all pairs, 1 for random vectors. Apart: Cohen's d. – is not defined."]
    notes += [f"{name} is left out: {problems[0]}" for name, problems in population.refused.items()]
    notes += [
        f"{population.names[index]} failed in {behaviour.errors} decisions and fell back"
        for index, behaviour in zip(members, behaviours, strict=True)
        if behaviour.errors
    ]
    if per_opponent and params.features == "counts":
        notes.append(
            f"{per_opponent} strategies see each opponent's moves; use --features histories to tell them apart."
        )
    table = _diversity_table(measures, notes)
    return Result(
        [table],
        list(_Maps(runs, params, sets, vectors).drawings()),
        highest(table, "mean_pairwise_distance", ["model", "set"], what="distance between strategies of a set"),
        objects=[
            {"game": params.game, "features": params.features, "situations": vectors.shape[1], **row}
            for row in measures
        ],
    )


def _measures(
    gene: Gene, sets: Mapping[Gene, Sequence[int]], behaviours: Sequence[Behaviour], vectors: NDArray[np.float64]
) -> dict[str, Any]:
    from labmates_populations.diversity import cohens_d, mean_pairwise_distance, participation_ratio
    from labmates_populations.engine.attitudes import falls_back_to_cooperation

    rates = vectors[sets[gene]]
    cooperative = falls_back_to_cooperation(gene.attitude)
    return {
        "model": gene.model,
        "attitude": gene.attitude,
        "variant": gene.variant,
        "set": gene.set_name,
        "strategies": len(rates),
        "cooperation": float(rates.mean()),
        "mean_pairwise_distance": mean_pairwise_distance(rates),
        "participation_ratio": participation_ratio(rates),
        "cohens_d": {
            other.set_name: cohens_d(rates, vectors[sets[other]])
            for other in sets
            if other.model == gene.model
            and (falls_back_to_cooperation(other.attitude) != cooperative or _is_variant(other, gene))
        },
        "deterministic": sum(behaviours[row].deterministic for row in sets[gene]),
        "errors": sum(behaviours[row].errors for row in sets[gene]),
    }


def _is_variant(gene: Gene, other: Gene) -> bool:
    """Whether two sets differ only in the way they were written."""
    return gene != other and (gene.model, gene.attitude) == (other.model, other.attitude)


def _diversity_table(measures: Sequence[Mapping[str, Any]], notes: Sequence[str]) -> Table:
    rows = []
    for row in measures:
        apart = (f"{'–' if value is None else f'{value:.2f}'} from {name}" for name, value in row["cohens_d"].items())
        rows.append({**row, "cohens_d": ", ".join(apart) or None})
    columns = [
        Column("model", once=True),
        *map(Column, ("set", "strategies", "deterministic")),
        Column("take_turns", "take turns"),
        Column("cooperation", form=".2f"),
        Column("mean_pairwise_distance", "distance", ".2f"),
        Column("participation_ratio", "dimensions", ".2f"),
        Column("cohens_d", "apart"),
    ]
    return Table("diversity", "How different strategies are", columns, rows, notes)


@dataclass(frozen=True)
class _Maps:
    """Maps of strategies: `rows` are those of each set in the `vectors` of its strategies."""

    runs: Runs
    params: DiversityParams
    rows: Mapping[Gene, Sequence[int]]
    vectors: NDArray[np.float64]

    def drawings(self) -> Iterator[Drawing]:
        """The map of all sets; and where sets have variants, the variants side by side."""
        game = self.params.game
        if self.params.joint:
            title = "Strategies of several games on one map"
            alt = "For each game, the strategies of each set on the common map, with their centres."
            yield Drawing("games", title, alt, partial(self._games, title))
        title = f"Strategies for {game}"
        alt = "The strategies on the first two principal components of their behaviour, beside reference strategies."
        yield Drawing("map", title, alt, partial(self._whole, title))
        panels: dict[str, dict[str, Sequence[int]]] = {}
        for gene, rows in self.rows.items():
            if any(_is_variant(gene, other) for other in self.rows):
                panels.setdefault(f"{gene.model}, {gene.attitude}", {})[gene.variant] = rows
        if panels:
            title = f"Strategies for {game} by the way of writing"
            alt = "For each model and attitude, the strategies of each variant on the common map, with their centres."
            yield Drawing("variants", title, alt, partial(_panels, self.vectors, panels, title))

    def _games(self, title: str) -> Figure:
        """The strategies of several games, on the principal components of all of them."""
        import numpy as np

        named = {str(gene): rows for gene, rows in self.rows.items()}
        panels: dict[str, dict[str, Sequence[int]]] = {self.params.game: named}
        every = self.vectors.tolist()
        for game in dict.fromkeys(self.params.joint):
            other = self.params.model_copy(update={"game": game, "k": None, "m": None, "capacity": None})
            with other.workers(self.runs.watch, other.processes) as workers:
                population = other.load(workers)
                panels[game] = {}
                for gene, indices in population.genes.items():
                    behaviours = other.behaviours(self.runs, workers, indices, population.cooperate)
                    panels[game][str(gene)] = range(len(every), len(every) + len(indices))
                    every += [behaviour.rates for behaviour in behaviours]
        return _panels(np.array(every), panels, title)

    def _whole(self, title: str) -> Figure:
        """All strategies and the reference strategies, which are played for it."""
        import numpy as np

        from labmates_populations.diversity import principal_components
        from labmates_populations.engine.reference import reference_source
        from labmates_populations.figures import diversity_figure

        with self.params.workers(self.runs.watch, self.params.processes) as workers:
            known = workers.load("reference strategies", reference_source(REFERENCES))
            behaviours = self.params.behaviours(self.runs, workers, [loaded.index for loaded in known])
        references = {name: np.array(behaviour.rates) for name, behaviour in zip(REFERENCES, behaviours, strict=True)}
        named = {str(gene): rows for gene, rows in self.rows.items()}
        return diversity_figure(principal_components(self.vectors), named, references, title)


def _panels(vectors: NDArray[np.float64], panels: Mapping[str, Mapping[str, Sequence[int]]], title: str) -> Figure:
    from labmates_populations.diversity import principal_components
    from labmates_populations.figures import variants_figure

    return variants_figure(principal_components(vectors), panels, title)


DIVERSITY = Analysis(
    "diversity",
    "Diversity of strategies",
    DiversityParams,
    diversity,
    example="labmates analyze diversity strategies --game public-goods --plot map.png",
    choices=(),
    objects="per model and attitude",
    has_figures=True,
)


class PlayedParams(StrategiesParams):
    """Common parameters of analyses that play games."""

    group_size: int = Field(4, ge=2, le=4096, description="Players in a group.")
    rounds: int = Field(20, ge=1, le=1000, description="Rounds of a game.")
    noise: float = Field(0.0, ge=0, le=0.5, description="Probability that a move is flipped.")
    continuation: float = Field(
        1.0, gt=0, le=1, description="Probability of another round; players do not see the end."
    )
    sources: bool = Field(False, description="Let strategies read each other's code, as text.")
    seed: int = Field(0, ge=0, description="Seed of all random numbers.")

    def played_game(self) -> RepeatedGame:
        """The game that groups play."""
        chosen = self.model_dump(include={"noise", "continuation", "sources"})
        return self.make_game(self.group_size, self.rounds, **chosen)


class InvasionParams(PlayedParams):
    """The parameters of the analysis of invasions."""

    samples: int = Field(500, ge=2, le=100_000, description="Groups of each kind.")


def invasion(runs: Runs, params: InvasionParams) -> Result:
    """Show which sets of strategies can invade others: a single invader earns more than residents among themselves."""
    from labmates_populations.engine import evolution
    from labmates_populations.outcomes import FOR_THESE

    game = params.played_game()
    with params.workers(runs.watch, params.processes) as workers:
        population = params.load(workers)
        genes = list(population.genes)
        if len(genes) < 2:
            raise UsageError(f"there is only one set of strategies, {genes[0]}; an invasion needs two")
        play = partial(evolution.invasion, game, population, workers.play, samples=params.samples, seed=params.seed)
        rows = [play(resident, invader) for resident in genes for invader in genes if invader != resident]
    columns = [
        Column("resident", once=True),
        Column("invader"),
        Column("resident_payoff", "residents earn"),
        Column("invader_payoff", "invader earns"),
        Column("standard_error", "SE of the difference"),
        Column("invades"),
        Column("errors", "failed decisions"),
    ]
    notes = [
        "Payoffs per round. A set invades if an invader earns at least two standard errors more than residents do.",
        FOR_THESE,
    ]
    invaded = [f"{row['invader']} can invade {row['resident']}" for row in rows if row["invades"]]
    verdict = f"{in_words(invaded)}." if invaded else "No set can invade another."
    return Result([Table("invasion", "Which sets can invade which", columns, rows, notes)], verdict=[verdict])


INVASION = Analysis(
    "invasion",
    "Invasion",
    InvasionParams,
    invasion,
    example="labmates analyze invasion strategies --game public-goods",
    choices=(),
    objects="per pair",
)


_MOST_TYPES: Final = 60


class FixationParams(PlayedParams):
    """The parameters of the analysis of fixation."""

    by: Literal["gene", "strategy"] = Field(
        "gene", description="Types: all strategies of a model and attitude (gene), or each strategy separately."
    )
    references: tuple[str, ...] = Field((), description="Add a reference strategy as a type, such as cc-2; repeatable.")
    population: int = Field(100, ge=2, le=100_000, description="Members of the population.")
    process: Literal["pairwise", "moran"] = Field(
        "pairwise", description="Update rule: pairwise comparison (Fermi), or Moran birth and death."
    )
    strength: float = Field(
        1.0,
        ge=0,
        le=1000,
        description="Selection strength on payoffs scaled to 0 to 1: that of the Fermi rule, or for moran the weight "
        "of payoff in fitness (at most 1).",
    )
    samples: int = Field(200, ge=2, le=100_000, description="Groups per composition.")

    def types(self, workers: Workers, population: Population) -> dict[str, tuple[int, ...]]:
        """Indices of the strategies of each type, by the type's name.

        Raises
        ------
        UsageError
            If there are fewer than two types or more than 60, or a reference strategy is unknown.
        """
        from labmates_populations.engine.library import load_players
        from labmates_populations.engine.reference import PREFIX

        if self.by == "gene":
            types = {str(gene): members for gene, members in population.genes.items()}
        else:
            types = {name: (index,) for index, name in population.names.items()}
        names = [PREFIX + name for name in dict.fromkeys(self.references)]
        if names:
            players = load_players(workers, names)
            types |= {name: (player.index,) for name, player in zip(names, players, strict=True)}
        if not 2 <= len(types) <= _MOST_TYPES:
            raise UsageError(
                f"there are {len(types)} types of strategies; fixation needs 2 to {_MOST_TYPES} "
                "(choose with --model, --attitude, --by and --reference)"
            )
        return types


def fixation(runs: Runs, params: FixationParams) -> Result:
    """Show which types selection favours in a finite population, with pairwise payoffs and fixation probabilities.

    Types meet in groups of every composition. Mutations are rare: each mutant takes over or dies out before the next
    one appears. A type's share is the share of time in which it forms the whole population.
    """
    from labmates_populations.engine.meetings import meet
    from labmates_populations.figures import response_figure
    from labmates_populations.selection import Selection, pair_tables, types_table

    game = params.played_game()
    with params.workers(runs.watch, params.processes) as workers:
        population = params.load(workers)
        types = params.types(workers, population)
        seed = derive(params.seed, population.digest)
        meetings = meet(game, types, population.cooperate, workers.play, samples=params.samples, seed=seed)
    selection = Selection(meetings, game, params.population, params.strength, params.process, params.seed)
    sizes = [len(members) for members in types.values()]
    title = f"Response graph in {params.game}"
    alt = "Types as discs, sized by their share of time; arrows point to mutants that selection favours."
    favoured = selection.fixation * params.population
    draw = partial(response_figure, meetings.types, selection.shares[0], favoured, title)
    drawing = Drawing("response", title, alt, draw)
    table = types_table(selection, sizes)
    return Result([table, *pair_tables(selection)], [drawing], selection.verdict(table))


FIXATION = Analysis(
    "fixation",
    "Fixation",
    FixationParams,
    fixation,
    example="labmates analyze fixation strategies --game public-goods --reference cc-3 --plot response.png",
    choices=(),
    objects="per type",
    has_figures=True,
)
