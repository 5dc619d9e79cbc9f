"""The commands of strategies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from labmates.errors import UsageError
from labmates.studies.executor import LOCAL
from labmates.workflows.protocol.analysis import Params, Result, Runs
from labmates.workflows.protocol.command import Command
from labmates.workflows.protocol.experiment import SessionSettings, condition_of
from labmates_populations.condition import (
    EvolutionCondition,
    Game,
    PayoffsFile,
    Processes,
    RulesParams,
    SandboxParams,
    StrategiesCondition,
    game_of,
)
from labmates_populations.engine.kernel.ways import WAYS, slower, told

if TYPE_CHECKING:
    from labmates.records.run import RunRecord
    from labmates.workflows.protocol.command import Lab
    from labmates_populations.engine.checks import Checked
    from labmates_populations.engine.library import Begun, StrategyFile
    from labmates_populations.engine.workers import Workers

_GAME = Field(None, description="Game, if it is not the folder's name.")
_SHOWN_ROWS = 8
_PATH = Field(description="A library or a file of strategies.", json_schema_extra={"argument": True})


class PlayParams(RulesParams):
    """Parameters of a game."""

    rounds: int = Field(20, description="Rounds of the game.")
    noise: float = Field(0.0, ge=0, le=0.5, description="Probability that a move is flipped.")
    sources: bool = Field(False, description="Let strategies read each other's code, as text.")
    players: tuple[str, ...] = Field(
        min_length=2,
        description="Players in the order of seats, separated by spaces: FILE.py:CLASS or reference:NAME.",
        json_schema_extra={"words": True},
    )
    seed: int = Field(0, ge=0, description="Seed of all random numbers.")


def play(lab: Lab, params: PlayParams) -> Iterator[Result]:
    """Play one game; seats are in the order of the players."""
    from labmates_populations.engine.library import faulty_players
    from labmates_populations.engine.match import play_match

    game = params.make_game(len(params.players), params.rounds, noise=params.noise, sources=params.sources)
    for name, problem in faulty_players(params.players, params.game + (params.payoffs or "")).items():
        lab.warn(f"{name} has problems by an earlier check: {problem}")
    with params.workers(lab.warn, 1) as workers:
        match = play_match(workers, game, params.players, seed=params.seed)
    yield Result((), verdict=list(match.lines()), objects=[match.as_json()])


class MatchParams(SandboxParams):
    """Parameters of a replay of matches."""

    run: str = Field(description="A run of an evolution or a self-play.", json_schema_extra={"argument": True})
    step: int | None = Field(
        None,
        ge=0,
        description="Generation of an evolution, or number of selfish players in a self-play; by default the last "
        "one recorded in full.",
    )
    group: int | None = Field(None, ge=0, description="Number of the group, from 0. Default: all groups.")


def match(lab: Lab, params: MatchParams) -> Iterator[Result]:
    """Replay matches of an evolution or self-play from the run's seed, and export all moves and payoffs.

    The moves equal those of the run. An evolution records its agents every tenth generation; a match of another
    generation replays the generations since then first.
    """
    from contextlib import closing

    from labmates.stats.tables import Table
    from labmates_populations.engine.crew import Crew
    from labmates_populations.matches import STEPS, replay_matches
    from labmates_populations.outcomes import payoff_events

    store = lab.runs.store
    run = store.run(params.run)
    rows: list[Mapping[str, object]] = []
    with closing(Crew(unsafe=params.sandbox == "unsafe-local")) as crew:
        for replayed in replay_matches(run, payoff_events(store, run.id), crew, params.step, params.group):
            heading = f"{STEPS[run.kind]} {replayed.step}, group {replayed.group}"
            yield Result((), verdict=[heading, *replayed.match.lines()], objects=[replayed.as_json()])
            rows += replayed.rows()
    yield Result([Table("match", "Moves and payoffs", None, rows, shown=_SHOWN_ROWS)], objects=[])


class EstimateParams(SandboxParams):
    """Parameters of an estimate of an evolution's duration, beside those of its condition."""

    seconds: float = Field(10.0, gt=0, le=3600, description="Time for the measurement, in seconds.")
    seed: int = Field(0, ge=0, description="Seed of the run.")
    processes: Processes = None
    executor: str = Field(LOCAL, description="Where workers run: on this machine, or ray, or ray:ADDRESS of a cluster.")


def estimate(lab: Lab, params: EstimateParams) -> Iterator[Result]:
    """Estimate the duration of an evolution on this machine or Ray cluster from its first generations.

    The estimate covers all generations; the evolution may end earlier, when a gene reaches the threshold.
    """
    from labmates_populations.duration import estimate as estimated
    from labmates_populations.duration import measure
    from labmates_populations.engine.crew import open_crew
    from labmates_populations.engine.evolution import Evolution

    condition = EvolutionCondition.model_validate(lab.condition(EvolutionCondition.kind, {}).model_dump())
    assert condition.digest is not None
    assert condition.generations is not None
    params.warn(lab.warn)
    settings = SessionSettings(params.processes, params.sandbox, params.executor)
    with open_crew(settings) as crew:
        strategies = crew.open((condition.strategies, condition.game, *condition.chosen), condition.digest)
        evolution = Evolution(condition, strategies.population, strategies.play, seed=params.seed)
        measured, by_way = measure(evolution, condition, params.seconds)
    row = estimated(measured, condition.decisions, condition.generations)
    population = strategies.population
    costs = {way: cost.microseconds for way, cost in by_way.items()}
    lines = [
        f"{condition.decisions:,} decisions in a generation, {row['first_microseconds_per_decision']:.2f} µs each in "
        f"the first and {row['later_microseconds_per_decision']:.2f} µs later "
        f"({len(measured)} generations measured)",
        f"{condition.generations:,} generations: {timedelta(seconds=round(row['seconds']))} (h:min:s) at most",
        f"{len(population.names)} strategies, {told(Counter(population.ways.values()), costs)}",
        *slower(population.whys),
    ]
    facts = {"ways": dict(population.ways), "whys": dict(population.whys), "microseconds": costs}
    yield Result((), verdict=lines, objects=[{**row, **facts}])


class CheckParams(SandboxParams):
    """Parameters of a check of strategies."""

    path: Path = _PATH
    game: Game | None = _GAME
    payoffs: PayoffsFile = Field(
        None, description="YAML file with the payoffs, or their name (by-action); the checks play this game."
    )
    processes: Processes = None


def check(lab: Lab, params: CheckParams) -> Iterator[Result]:
    """Check strategies: a file, or a folder of files. The exit code is 1 if there are problems.

    Each strategy's code is analysed, then played in games of several sizes and lengths. It must not crash, return
    anything but C or D, or exceed the limits of time and memory, and it must be deterministic unless it draws random
    numbers. Verdicts are cached per user: an unchanged file is not played again.
    """
    from labmates_populations.engine.library import begin

    faulty = total = cached = 0
    ways: Counter[str] = Counter()
    costs: dict[str, float] = {}
    with params.workers(lab.warn, params.processes) as workers:
        for begun in begin(workers, _files(params), is_cached=params.sandbox != "unsafe-local"):
            verdicts = _verdicts(workers, begun, params) if begun.verdicts is None else begun.verdicts
            total += len(verdicts)
            faulty += sum(bool(verdict.problems) for verdict in verdicts)
            played = [verdict for verdict in verdicts if verdict.microseconds is not None]
            ways.update(verdict.strategy.way for verdict in played)
            costs |= {verdict.strategy.way: verdict.microseconds or 0.0 for verdict in played}
            cached += len(begun.verdicts or ())
            yield from (_checked(begun.file.path, begun.game, verdict) for verdict in verdicts)
    fault = f"{faulty} of {total} strategies have problems" if faulty else None
    summary = f"{total} strategies, {faulty or 'none'} with problems"
    summary += f"; {cached} verdicts are of earlier checks." if cached else "."
    lines = [summary, *([f"{told(ways, costs).capitalize()}."] if ways else [])]
    yield Result((), verdict=lines, objects=(), fault=fault)


def _files(params: CheckParams) -> Iterator[tuple[StrategyFile, str, str]]:
    """The files of a check, with their games and the keys of their verdicts."""
    from labmates_populations.engine.library import played_game, strategy_files

    for file in strategy_files(params.path):
        game = played_game(file, params.game)
        if (game == "by-action") != (params.payoffs is not None):
            raise UsageError("--payoffs: required for strategies of by-action, and not used for other games")
        yield file, game, game + (params.payoffs or "")


def _verdicts(workers: Workers, begun: Begun, params: CheckParams) -> list[Checked]:
    """The verdicts on a file; only those of confined checks are cached."""
    from labmates_populations.count_payoffs import players_of
    from labmates_populations.engine.checks import check_strategies
    from labmates_populations.engine.verdicts import keep_verdicts

    game, payoffs = begun.game, params.payoffs
    played = game_of(game, players_of(payoffs), 20, {}, payoffs) if payoffs else game
    verdicts = check_strategies(workers, played, workers.learn(begun.sources, begun.text))
    if params.sandbox != "unsafe-local":
        keep_verdicts(begun.text, game + (payoffs or ""), verdicts)
    return verdicts


def _checked(path: Path, game: str, checked: Checked) -> Result:
    strategy = checked.strategy
    row = {
        "file": str(path),
        "class": strategy.name,
        "game": game,
        "form": "paper" if strategy.paper else "current",
        "random": strategy.random,
        "deterministic": checked.deterministic,
        "way": strategy.way,
        "why": strategy.why,
        "microseconds": checked.microseconds,
        "problems": list(checked.problems),
    }
    lines = [f"{path}:{strategy.line} {strategy.name}: {problem}" for problem in checked.problems]
    if strategy.why and not checked.problems:
        lines += slower({f"{path}:{strategy.line} {strategy.name}": strategy.why})
    return Result((), verdict=lines, objects=[row])


class ImportParams(Params):
    """Parameters of an import of strategies."""

    path: Path = _PATH
    to: Path = Field(Path("strategies"), description="Target library.", json_schema_extra={"folder": True})
    game: Game | None = _GAME


def import_(_lab: Lab, params: ImportParams) -> Iterator[Result]:
    """Copy strategies into a library, unchanged: a folder in our or the published format, or one file.

    A note beside each file names its origin and the problems found by the static checks or an earlier `labmates
    strategies check`. Without one, a few strategies play for the cost of a decision; `check` plays all.
    """
    from labmates_populations.engine.library import import_strategies
    from labmates_populations.engine.workers import Workers

    with Workers() as workers:
        for row in import_strategies(workers, params.path, params.to, params.game):
            line = f"{row['file']}: {row['strategies']} strategies"
            if row["refused"]:
                line += f", {row['refused']} refused by the static checks"
            line += f", {told(row['ways'], row.get('microseconds'))}" if row["ways"] else ""
            if "problems" in row:
                line += f", {row['problems'] or 'none'} with problems by an earlier check"
            yield Result((), verdict=[line, *slower(row["whys"])], objects=[row])


def references(_lab: Lab, _params: Params) -> Iterator[Result]:
    """List the reference strategies; as players their names are reference:NAME, such as reference:cc-2."""
    from labmates_populations.engine.reference import REFERENCES

    for name, reference in REFERENCES.items():
        spelled = f"{name}-{reference.parameter}" if reference.parameter else name
        row = {"name": spelled, "title": reference.title}
        yield Result((), verdict=[f"{spelled:<14}{reference.title}"], objects=[row])


class WriteParams(Params):
    """Parameters of writing strategies, beside those of the condition."""

    to: Path = Field(Path("strategies"), description="Target library.", json_schema_extra={"folder": True})
    seed: int = Field(0, ge=0, description="Seed of the run.")
    resume: str | None = Field(None, description="Resume this writing run, or add its strategies if it has ended.")


def write(lab: Lab, params: WriteParams) -> Iterator[Result]:
    """Have a model write strategies, and add those that pass the checks to a library.

    The model first describes each strategy in words, then implements the description. An implementation that fails the
    checks is discarded and written again. All calls are stored, so interrupted writing can be resumed.
    """
    kind = StrategiesCondition.kind
    if params.resume is None:
        run = lab.run(lab.condition(kind, {}), seed=params.seed)
    else:
        run = lab.runs.store.run(params.resume)
        if run.kind != kind or run.status != "completed":
            run = lab.resume(run.id, kind)
    yield _added(lab, run, params.to)


class CollectParams(Params):
    """Parameters of collecting a study's strategies."""

    study: str = Field(description="The study.", json_schema_extra={"argument": True})
    to: Path = Field(Path("strategies"), description="Target library.", json_schema_extra={"folder": True})


def collect(lab: Lab, params: CollectParams) -> Iterator[Result]:
    """Add the strategies of a study's completed runs to a library; existing strategies stay unchanged."""
    runs = Runs(lab.store.url, study=params.study).completed(StrategiesCondition.kind)
    yield from (_added(lab, run, params.to) for run in runs)


def _added(lab: Lab, run: RunRecord, to: Path) -> Result:
    """Add the strategies of a run to a library."""
    from labmates.records.bodies import Bodies
    from labmates_populations.engine.authoring import add_to_library
    from labmates_populations.strategies import recorded_strategies

    condition = StrategiesCondition.model_validate(condition_of(run).model_dump())
    strategies = recorded_strategies(condition, run.id, lab.store.events(run.id), Bodies(lab.store.bodies(run.id)))
    file, added = add_to_library(to, condition.game, condition.model, strategies)
    facts = {name: one for name, one in strategies if one.get("way") in WAYS}  # other programs' ways mean nothing here
    costs = {one["way"]: 1e6 * one["seconds"] for one in facts.values() if "seconds" in one}
    line = f"{added} strategies were added to {file.path}"
    line += f", {told(Counter(one['way'] for one in facts.values()), costs)}" if facts else ""
    whys = {name: one["why"] for name, one in facts.items() if "why" in one}
    return Result((), verdict=[line, *slower(whys)], objects=())


STRATEGIES = Command(
    example="labmates strategies play --game public-goods --players reference:cooperate reference:cc-2 "
    "reference:defect",
    commands={
        "write": Command(
            write,
            WriteParams,
            example="labmates strategies write --model openai:gpt-5.4-mini --game public-goods --attitude exploitative "
            "-n 512",
            kind=StrategiesCondition.kind,
            has_store=True,
            objects="of the run",
        ),
        "collect": Command(
            collect,
            CollectParams,
            example="labmates strategies collect collective-write",
            has_store=True,
            objects="of the run",
        ),
        "play": Command(
            play,
            PlayParams,
            example="labmates strategies play --game public-goods --k 1.5 --players mine.py:Strategy_SELFISH_1 "
            "reference:cooperate reference:random-0.5",
            objects="",
        ),
        "match": Command(
            match,
            MatchParams,
            example="labmates strategies match last --step 10 --group 3 --out match.csv",
            has_store=True,
            has_tables=True,
            objects="per match",
        ),
        "check": Command(
            check,
            CheckParams,
            example="labmates strategies check strategies/public-goods/gpt.py",
            objects="per strategy",
        ),
        "import": Command(
            import_,
            ImportParams,
            example="labmates strategies import downloads/strategies --to strategies",
            objects="per file",
        ),
        "estimate": Command(
            estimate,
            EstimateParams,
            example="labmates strategies estimate --game public-goods --strategies strategies --population 10000",
            kind=EvolutionCondition.kind,
            objects="",
        ),
        "references": Command(references, example="labmates strategies references --json", objects="per strategy"),
    },
)
