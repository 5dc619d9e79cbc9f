"""Folders of strategies: our own format and the published one, which differ only in the metadata.

A library has a folder per game, with a Python file of strategies per model, one class per strategy named
``Strategy_<ATTITUDE>_<number>``. Our own format adds a JSON-lines file with the provenance of each strategy. Folders
are named after games, with hyphens or underscores.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from labmates.errors import UsageError, reason, telling
from labmates.util.display_names import labels_apart
from labmates.util.python_text import parsed
from labmates_populations.engine.attitudes import falls_back_to_cooperation
from labmates_populations.engine.checks import Checked, sampled_costs
from labmates_populations.engine.kernel.source import Found, Source
from labmates_populations.engine.reference import PREFIX, class_name, reference_source
from labmates_populations.engine.verdicts import known_verdicts
from labmates_populations.engine.workers import Loaded, Workers
from labmates_populations.repeated import REPEATED

_T = TypeVar("_T")
_R = TypeVar("_R")
_MOST_BYTES = 64 << 20
_DESCRIPTIONS = "_descriptions"  # suffix of a published file of descriptions
CLASS = re.compile(r"^class Strategy_([A-Za-z]+)_(\d+)\b", re.MULTILINE)
"""The attitude and number of each strategy of a file."""
_DESCRIBED = re.compile(r"description_(?P<name>[A-Z]+_\d+)$")


WRITTEN = ("model", "prompt", "prompts_version", "temperature", "information", "system")
"""Keys of a strategy's provenance about its authoring; strategies that differ in one belong to different sets."""


@dataclass(frozen=True)
class Gene:
    """A strategy's author and attitude.

    Attributes
    ----------
    variant
        Difference from other sets of the same model and attitude (``prompt=brief``); empty for a single set.
    """

    model: str
    attitude: str
    variant: str = ""

    @property
    def set_name(self) -> str:
        """The attitude, with the variant in brackets."""
        return f"{self.attitude}[{self.variant}]" if self.variant else self.attitude

    def __str__(self) -> str:
        return f"{self.model}/{self.set_name}"


def only_gene(genes: Iterable[Gene], name: str) -> Gene:
    """The gene with an attitude, or with an attitude and a variant; UsageError if there is none, or more than one."""
    found = [gene for gene in genes if name in (gene.attitude, gene.set_name)]
    if not found:
        raise UsageError(f"there are no strategies with the attitude '{name}'")
    if len(found) > 1:
        sets = " or ".join(f"'{gene.set_name}'" for gene in found)
        raise UsageError(f"strategies with the attitude '{name}' form several sets: choose one, {sets}")
    return found[0]


@dataclass(frozen=True)
class StrategyFile:
    """A file of a library.

    Attributes
    ----------
    game
        The game's name; None if the folder is not named after one.
    model
        The author: the file's name.
    """

    path: Path
    game: str | None
    model: str

    @property
    def provenance(self) -> Path:
        """The file with the origin of each strategy."""
        return self.path.with_suffix(".jsonl")

    @property
    def descriptions(self) -> Path:
        """The file with the descriptions of published strategies."""
        return self.path.with_name(f"{self.path.stem}{_DESCRIPTIONS}.py")


def game_of(name: str) -> str | None:
    """The game that a folder is named after, or None; a suffix to the game's name is ignored."""
    plain = name.replace("_", "-")
    games = sorted(REPEATED, key=len, reverse=True)
    return next((game for game in games if plain == game or plain.startswith(f"{game}-")), None)


def strategy_files(path: Path) -> list[StrategyFile]:
    """The files of strategies at a path: a file, a game's folder, or a folder of games.

    Raises
    ------
    UsageError
        If there are none.
    """
    if not path.exists():
        raise UsageError(f"there is no file or folder {path}")
    paths = [path] if path.is_file() else sorted([*path.glob("*.py"), *path.glob("*/*.py")])
    found = [
        StrategyFile(file, game_of(file.resolve().parent.name), file.stem)
        for file in paths
        if not file.stem.endswith(_DESCRIPTIONS) and not file.name.startswith("_")
    ]
    if not found:
        raise UsageError(f"{path} holds no strategies: a folder per game (public-goods, …) with a .py file per model")
    return found


def read_text(path: Path) -> str:
    """The text of a file of strategies.

    Raises
    ------
    UsageError
        If it can't be read.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} is larger than {_MOST_BYTES >> 20} MB")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} can't be read: {reason(error)}") from error


def read_in_order(workers: Workers, read: Callable[[_T], _R], files: Iterable[_T]) -> Iterator[_R]:
    """What is read of files, as many at once as there are processes; an error comes after the files before it."""
    with ThreadPoolExecutor(workers.processes) as threads:
        yield from threads.map(read, files)


def load_players(workers: Workers, players: Sequence[str]) -> list[Loaded]:
    """Load players named ``FILE.py:CLASS`` or ``reference:NAME``, in this order.

    Raises
    ------
    UsageError
        If one can't be found.
    """
    wanted = [_split(player) for player in players]
    loaded: dict[str, dict[str, Loaded]] = {}
    references = [name for file, name in wanted if file == PREFIX]
    if references:
        found = workers.load("reference strategies", reference_source(references))
        loaded[PREFIX] = {strategy.name: strategy for strategy in found}
    chosen = []
    for file, name in wanted:
        if file not in loaded:
            loaded[file] = {strategy.name: strategy for strategy in workers.load(file, read_text(Path(file)))}
        key = class_name(name) if file == PREFIX else name
        if key not in loaded[file]:
            classes = ", ".join(list(loaded[file])[:10]) or "none"
            raise UsageError(f"{file} has no strategy '{name}'; it has {classes}")
        chosen.append(loaded[file][key])
    return chosen


def faulty_players(players: Sequence[str], game: str) -> dict[str, str]:
    """The first problem of each faulty player from an earlier check: in its file's provenance, or a cached verdict.

    Parameters
    ----------
    players
        As for `load_players`.
    game
        See `verdicts.known_verdicts`.
    """
    found: dict[str, str] = {}
    for player in players:
        file, name = _split(player)
        if file != PREFIX:
            verdicts = known_verdicts(read_text(Path(file)), game) or ()
            problems = [problem for one in verdicts if one.strategy.name == name for problem in one.problems]
            provenance = provenance_of(StrategyFile(Path(file), None, Path(file).stem))
            for problem in (*provenance.get(name, {}).get("problems", ()), *problems):
                found.setdefault(player, str(problem))
    return found


def _split(player: str) -> tuple[str, str]:
    if player.startswith(PREFIX):
        return PREFIX, player.removeprefix(PREFIX)
    file, colon, name = player.rpartition(":")
    if not colon or not file or not name:
        raise UsageError(f"a player is FILE.py:CLASS or {PREFIX}NAME, not '{player}'")
    return file, name


@dataclass(frozen=True)
class Population:
    """Strategies for one game, by gene.

    Attributes
    ----------
    genes
        The indices of each gene's strategies, in the order of files and classes. Strategies with different authoring
        (`WRITTEN`) belong to different genes.
    names
        ``model:class`` of each strategy, by its index.
    cooperate
        Indices of strategies that fall back to cooperation.
    refused
        Problems of strategies excluded by the static checks, by name.
    digest
        Of the files. No strategy can know it, so from its random numbers none finds out its group and seat.
    faulty
        Problems of included strategies from an earlier check, by name.
    ways
        How each strategy is played (see `kernel.ways`), by name.
    whys
        The reasons for which strategies are not compiled, by name.
    """

    genes: Mapping[Gene, tuple[int, ...]]
    names: Mapping[int, str]
    cooperate: frozenset[int]
    refused: Mapping[str, tuple[str, ...]]
    digest: str
    faulty: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ways: Mapping[str, str] = field(default_factory=dict)
    whys: Mapping[str, str] = field(default_factory=dict)


def load_population(
    workers: Workers,
    folder: Path,
    game: str,
    *,
    models: Iterable[str] = (),
    attitudes: Iterable[str] = (),
) -> Population:
    """Load all strategies of a library for a game.

    Parameters
    ----------
    models, attitudes
        By default all. An attitude may include a variant: ``collective[prompt=brief]``.

    Raises
    ------
    UsageError
        If there are none, or one of the models or attitudes has none.
    """
    models, attitudes = list(models), [attitude.lower() for attitude in attitudes]
    genes: dict[Gene, list[int]] = {}
    names: dict[int, str] = {}
    refused: dict[str, tuple[str, ...]] = {}
    faulty: dict[str, tuple[str, ...]] = {}
    ways: dict[str, str] = {}
    whys: dict[str, str] = {}
    files = files_for(folder, game, models)

    def read(file: StrategyFile) -> tuple[str, list[Source]]:
        text = read_text(file.path)
        return text, workers.read(file.path.name, text)

    for file, (text, sources) in zip(files, read_in_order(workers, read, files), strict=True):
        loaded = workers.learn(sources, text)
        provenance = provenance_of(file)
        variants = _variants(_written_as(provenance), {strategy.name: strategy.attitude for strategy in loaded})
        for strategy in loaded:
            gene = Gene(file.model, strategy.attitude or "", variants.get(strategy.name, ""))
            if not strategy.attitude or (attitudes and not {strategy.attitude, gene.set_name} & set(attitudes)):
                continue
            name = f"{file.model}:{strategy.name}"
            if strategy.problems:
                refused[name] = strategy.problems
                continue
            genes.setdefault(gene, []).append(strategy.index)
            names[strategy.index] = name
            ways[name] = strategy.way
            whys |= {name: strategy.why} if strategy.why else {}
            if problems := provenance.get(strategy.name, {}).get("problems"):
                faulty[name] = tuple(map(str, problems))
    for attitude in attitudes:
        if attitude not in {name for gene in genes for name in (gene.attitude, gene.set_name)}:
            raise UsageError(f"{folder} has no strategies with the attitude '{attitude}' for {game}")
    if not genes:
        raise UsageError(f"{folder} holds no strategies named Strategy_ATTITUDE_NUMBER that can be played")
    cooperate = {n for gene, members in genes.items() if falls_back_to_cooperation(gene.attitude) for n in members}
    by_gene = {gene: tuple(members) for gene, members in genes.items()}
    digest = library_digest(folder, game, models)
    return Population(by_gene, names, frozenset(cooperate), refused, digest, faulty, ways, whys)


def _variants(settings: Mapping[str, Mapping[str, Any]], attitudes: Mapping[str, str]) -> dict[str, str]:
    """The differences in authoring between classes of the same attitude, by class; `attitudes` are by class, too."""
    variants: dict[str, str] = {}
    for attitude in dict.fromkeys(attitudes.values()):
        names = [name for name, other in attitudes.items() if other == attitude]
        variants |= zip(names, labels_apart([settings.get(name, {}) for name in names]), strict=True)
    return variants


def _written_as(provenance: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The authoring settings (`WRITTEN`) of each strategy of a file, by class."""
    defaults = {"information": "counts", "system": "none"}  # of files from before these settings
    complete = {name: {**defaults, **line} for name, line in provenance.items()}
    return {name: {key: line[key] for key in WRITTEN if key in line} for name, line in complete.items()}


def provenance_of(file: StrategyFile) -> dict[str, dict[str, Any]]:
    """The provenance of each strategy of a file, by class, if known; UsageError for an invalid file."""
    if not file.provenance.exists():
        return {}
    found: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(read_text(file.provenance).splitlines(), 1):
        try:
            data = json.loads(line)
            found[str(data["class"])] = {**data, "problems": [*data.get("problems", ())]}
        except (ValueError, TypeError, KeyError) as error:
            raise UsageError(f"{file.provenance}, line {number}: not the provenance of a strategy") from error
    return found


def files_for(folder: Path, game: str, models: Sequence[str] = ()) -> list[StrategyFile]:
    """The files of a library for one game.

    Raises
    ------
    UsageError
        If there are none, one of the models has none, or a model has two files.
    """
    found = strategy_files(folder)
    fitting = [file for file in found if file.game == game or (file.game is None and len(found) == 1)]
    if not fitting:
        raise UsageError(f"{folder} holds no strategies for {game}")
    known = [file.model for file in fitting]
    if twice := [str(file.path) for file in fitting if known.count(file.model) > 1]:
        raise UsageError(
            f"these files have the strategies of one model for {game}; name the folder of one: {', '.join(twice)}"
        )
    for model in models:
        if model not in known:
            raise UsageError(f"{folder} has no strategies of '{model}' for {game}; it has those of {', '.join(known)}")
    return [file for file in fitting if not models or file.model in models]


def written_sets(file: StrategyFile) -> Counter[Gene]:
    """Number of strategies in a file by gene, read without execution; checks may exclude some."""
    found = dict.fromkeys(CLASS.findall(read_text(file.path)))
    attitudes = {f"Strategy_{attitude}_{number}": attitude.lower() for attitude, number in found}
    variants = _variants(_written_as(provenance_of(file)), attitudes)
    return Counter(Gene(file.model, attitude, variants[name]) for name, attitude in attitudes.items())


def library_digest(folder: Path, game: str, models: Sequence[str] = ()) -> str:
    """A digest of a library's files for a game.

    Raises
    ------
    UsageError
        If it has no strategies for the game.
    """
    digest = hashlib.sha256()
    for file in files_for(folder, game, models):
        digest.update(file.model.encode() + b"\0" + hashlib.sha256(read_text(file.path).encode()).digest())
    return digest.hexdigest()[:32]


def import_strategies(
    workers: Workers, source: Path, library: Path, game: str | None = None
) -> Iterator[dict[str, Any]]:
    """Copy files of strategies into a library, unchanged, and record the origin of each strategy.

    Published descriptions and the verdicts of an earlier check become part of the provenance. `game` is required
    unless the folder's name specifies it. Yields a row for each file, with the number of its `strategies`, of those
    `refused` by static checks, and of those played in each of the `ways` with the reasons (`whys`) and the
    `microseconds` of a decision. Unless the file was checked before, a few strategies play for these; else the number
    with `problems` is known, too.

    Raises
    ------
    UsageError
        If there is nothing to import, or the library has a different file of the same name, or is not writable.
    """
    targets = []
    files = [(file, played_game(file, game)) for file in strategy_files(source)]
    for file, known in files:
        target = StrategyFile(library / known / file.path.name, known, file.model)
        if target.path.exists() and target.path.read_bytes() != file.path.read_bytes():
            raise UsageError(f"{target.path} already exists and differs from {file.path}")
        targets.append(target)
    for begun, target in zip(begin(workers, ((*one, one[1]) for one in files)), targets, strict=True):
        file, verdicts, loaded = begun.file, begun.verdicts, workers.learn(begun.sources, begun.text)
        found: Sequence[Found] = loaded or [verdict.strategy for verdict in verdicts or ()]
        problems = [strategy.problems for strategy in verdicts or found]
        with telling(f"can't write to '{library}'"):
            target.path.parent.mkdir(parents=True, exist_ok=True)
            if file.path.resolve() != target.path.resolve():
                shutil.copyfile(file.path, target.path)
                if file.provenance.exists():
                    shutil.copyfile(file.provenance, target.provenance)
            if not target.provenance.exists():
                write_provenance(target, _imported(file, found, problems))
        refused = sum(bool(strategy.problems) for strategy in found)
        row: dict[str, Any] = {"file": str(target.path), "game": target.game, "model": target.model}
        ways = Counter(strategy.way for strategy in found if not strategy.problems)
        whys = {strategy.name: strategy.why for strategy in found if strategy.why and not strategy.problems}
        row |= {"strategies": len(found), "refused": refused, "ways": dict(ways), "whys": whys}
        if verdicts is not None:
            costs = {one.strategy.way: one.microseconds for one in verdicts if one.microseconds is not None}
            row |= {"microseconds": costs, "problems": sum(map(bool, problems))}
        elif begun.game != "by-action":  # which needs payoffs to be played
            row |= {"microseconds": sampled_costs(workers, begun.game, loaded)}
        yield row


def played_game(file: StrategyFile, game: str | None) -> str:
    """The game of a file: `game`, or that of its folder; UsageError if it is unknown."""
    known = game or file.game
    if known is None:
        raise UsageError(f"the game of {file.path} is unknown; give it with --game ({', '.join(REPEATED)})")
    return known


@dataclass(frozen=True)
class Begun:
    """A file, its text and game, and the verdicts of an earlier check; without any, what was read of it."""

    file: StrategyFile
    text: str
    game: str
    verdicts: list[Checked] | None
    sources: list[Source]


def begin(
    workers: Workers, files: Iterable[tuple[StrategyFile, str, str]], *, is_cached: bool = True
) -> Iterator[Begun]:
    """Read files, which have their games, and the keys of their verdicts (`known_verdicts`)."""

    def read(given: tuple[StrategyFile, str, str]) -> Begun:
        file, game, key = given
        text = read_text(file.path)
        verdicts = known_verdicts(text, key) if is_cached else None
        return Begun(file, text, game, verdicts, workers.read(file.path.name, text) if verdicts is None else [])

    return read_in_order(workers, read, files)


def write_provenance(file: StrategyFile, lines: Iterable[Mapping[str, Any]]) -> None:
    """Write the provenance of a file's strategies atomically."""
    new = file.provenance.with_suffix(".new")
    new.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    new.replace(file.provenance)


def _descriptions_of(file: StrategyFile) -> dict[str, str]:
    """The descriptions of published strategies by class, read without execution; UsageError for an invalid file."""
    if not file.descriptions.exists():
        return {}
    try:
        tree = parsed(read_text(file.descriptions))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{file.descriptions} can't be read as Python: {error}") from error
    descriptions = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                if match := _DESCRIBED.match(name):
                    descriptions[f"Strategy_{match['name']}"] = text
    return descriptions


def _imported(
    file: StrategyFile, strategies: Sequence[Found], problems: Sequence[Sequence[str]]
) -> Iterator[dict[str, Any]]:
    """The provenance of a file's strategies, including their problems."""
    descriptions = _descriptions_of(file)
    digest = hashlib.sha256(file.path.read_bytes()).hexdigest()
    for strategy, own_problems in zip(strategies, problems, strict=True):
        description = descriptions.get(strategy.name)
        yield {
            "class": strategy.name,
            "model": file.model,
            "attitude": strategy.attitude,
            "number": strategy.number,
            **({} if description is None else {"description": description}),
            "form": "paper" if strategy.paper else "current",
            "random": strategy.random,
            "way": strategy.way,
            **({"why": strategy.why} if strategy.why else {}),
            "imported_from": file.path.name,
            "sha256": digest,
            "problems": list(own_problems),
        }
