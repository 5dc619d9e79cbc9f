"""The published data of CoopEval, rated again and compared with the published ratings.

``python -m benchmarks.published_ratings FOLDER`` takes a checkout of their repository, or the folder of a run, and
prints their Table 2, the means of Tables 3 to 7, and each cell; with ``--summary``, it prints means over runs as
``labmates analyze ratings --summary`` does for your own. The exit code is 1 if a folder can't be rated.

A published folder is one cell: ``config.json`` (game, mechanism), ``matchup_payoffs.json`` (the payoffs of each match,
under reputation of each agent),
and the results of the authors' program: ``agent_average_payoff.json``, ``replicator_dynamics_fitness.json`` and
``deviation_ratings.json``, each by agent. Folders of cells are in the folder of their run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from labmates.cli.console import err
from labmates.cli.tables import print_tables
from labmates.errors import UsageError
from labmates.games.dilemmas import get_dilemma
from labmates.mechanisms.repetition import discount_weights
from labmates.stats.deviation import ranks
from labmates.stats.domains import Domain
from labmates.stats.intervals import Estimate, mean
from labmates.stats.metagame import Array
from labmates.stats.ratings import Cell, Evolution, Rated, rate, summarise
from labmates.stats.tables import Column, Table
from labmates.util.grouping import grouped
from labmates.workflows.dilemmas.payoff_files import cell_of
from labmates.workflows.dilemmas.ratings import summaries_table
from labmates.workflows.dilemmas.records import scale_of

PAYOFFS: Final = "matchup_payoffs.json"
_FILES: Final = {
    "mean": "agent_average_payoff.json",
    "fitness": "replicator_dynamics_fitness.json",
    "deviation": "deviation_ratings.json",
}
GAMES: Final = {
    "PrisonersDilemma": "prisoners",
    "PublicGoods": "public-goods",
    "TravellersDilemma": "travellers",
    "TrustGame": "trust",
    "StagHunt": "stag-hunt",
    "MatchingPennies": "matching-pennies",
}
MECHANISMS: Final = {
    "NoMechanism": "none",
    "Repetition": "repetition",
    "ReputationFirstOrder": "reputation",
    "Reputation": "reputation(order=3)",
    "Mediation": "mediation",
    "Contracting": "contract",
}
DILEMMAS: Final = ("prisoners", "public-goods", "travellers", "trust")
"""The games of Table 2."""
AGREE: Final = 1e-6
"""Maximum difference of equal ratings, as a share of the payoffs' range."""


@dataclass(frozen=True)
class Published:
    """A cell, rated here and by the authors' program.

    Attributes
    ----------
    rated
        Our ratings.
    values
        The published ratings: ``mean``, ``fitness``, ``deviation`` and the resulting ``rank``, each in the order of the
        models; ratings without a file are missing.
    """

    path: Path
    rated: Rated
    values: Mapping[str, Array]

    def apart(self, rating: str) -> float | None:
        """The largest difference of a model's rating, as a share of the payoffs' range; None if unknown."""
        ours = getattr(self.rated, rating)
        if rating not in self.values or ours is None:
            return None
        return float(np.abs(ours - self.values[rating]).max()) / (float(np.ptp(self.rated.cell.payoffs)) or 1.0)

    @property
    def why(self) -> str:
        """Why ranks differ; empty if they don't."""
        theirs, ours = self.values.get("deviation"), self.rated.deviation
        if theirs is None or ours is None or (self.values["rank"] == self.rated.rank).all():
            return ""
        unit = float(np.ptp(self.rated.cell.payoffs)) or 1.0
        above, below = float((theirs - ours).max()) / unit, float((ours - theirs).max()) / unit
        if max(above, below) <= AGREE:
            return "ratings that are the same but for rounding"
        if _first_difference(theirs, ours, AGREE * unit) > 0:
            return "frozen early"
        return "ours are not the strictest" if below > AGREE else "unknown"


def _first_difference(theirs: Array, ours: Array, least: float) -> float:
    """The first difference, theirs minus ours, between sorted gains, largest first; 0 if they are equal."""
    differences = np.sort(theirs)[::-1] - np.sort(ours)[::-1]
    differences = differences[np.abs(differences) > least]
    return float(differences[0]) if len(differences) else 0.0


@dataclass(frozen=True)
class Unread:
    """A folder that could not be rated, with the reason."""

    path: Path
    reason: str


def read_published(folder: Path) -> tuple[list[Published], list[Unread]]:
    """The rated cells of a checkout of the published data (of its main study, if present), and the unreadable ones.

    Raises
    ------
    UsageError
        If the folder has no such cells.
    """
    main = folder / "data" / "main_study"
    root = main if main.is_dir() else folder
    if not root.is_dir():
        raise UsageError(f"{folder} is not a folder")
    rated: list[Published] = []
    unread: list[Unread] = []
    for path in sorted(config.parent for config in root.rglob("config.json")):
        try:
            cell = _cell(path)
        except UsageError as error:
            unread.append(Unread(path.relative_to(root), str(error)))
        else:
            rated.append(cell)
    if not rated:
        why = f"; the first of {len(unread)} unreadable ones: {unread[0].path}: {unread[0].reason}" if unread else ""
        raise UsageError(f"{root} has no folder with config.json and {PAYOFFS} that can be rated{why}")
    return sorted(rated, key=_place), unread


def _place(published: Published) -> tuple[int, int, str]:
    cell = published.rated.cell
    mechanisms, games = list(MECHANISMS.values()), list(GAMES.values())
    return mechanisms.index(cell.mechanism), games.index(cell.game), cell.run


def _cell(path: Path) -> Published:
    config = _json(path / "config.json")
    try:
        mechanism, game = str(config["mechanism"]["type"]), str(config["game"]["type"])
    except (KeyError, TypeError) as error:
        raise UsageError("config.json has no mechanism or no game") from error
    for name, what, known in ((mechanism, "mechanism", MECHANISMS), (game, "game", GAMES)):
        if name not in known:
            raise UsageError(f"unknown {what} '{name}' (known: {', '.join(known)})")
    played = _json(path / PAYOFFS)
    table = get_dilemma(GAMES[game]).game()
    low, high = float(table.table.min()), float(table.table.max())
    names = {"run": path.parent.name, "mechanism": MECHANISMS[mechanism], "game": GAMES[game]}
    try:
        of_payoffs = _of_agents if mechanism.startswith("Reputation") else _of_matches
        cell = of_payoffs(played, names)
    except UsageError:
        raise
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UsageError(f"{PAYOFFS} does not have the published form ({type(error).__name__}: {error})") from error
    # Payments under a contract may leave the range of the game's table.
    domain = Domain(unit=high - low) if mechanism == "Contracting" else Domain(low, high)
    cell = replace(cell, scale=scale_of(table) if GAMES[game] in DILEMMAS else None, domain=domain)
    models = cell.models
    rated = rate(cell)
    values = {
        name: values_of_file
        for name, file in _FILES.items()
        if (values_of_file := _values(path / file, models)) is not None
    }
    if "deviation" in values:
        values["rank"] = ranks(values["deviation"], unit=float(np.ptp(cell.payoffs)))
    return Published(path, rated, values)


def _of_matches(played: Mapping[str, Any], names: Mapping[str, str]) -> Cell:
    matches = [_match(match) for match in played["profile"]]
    models = sorted({agent for agents, _ in matches for agent in agents})
    matchups = [
        {"seats": [models.index(agent) for agent in agents], "rounds": rounds}
        for agents, every in matches
        for rounds in every
    ]
    data = {"models": models, "discount": float(played["discount"]), "matchups": matchups, **names}
    return cell_of(data, Path(PAYOFFS))


def _of_agents(played: Mapping[str, Any], names: Mapping[str, str]) -> Cell:
    """The mean of each model's agents, one for each seat of the game."""
    agents = grouped((_agent(agent["player"]), list(map(float, agent["points"]))) for agent in played["profile"])
    models = tuple(sorted(agents))
    discount = float(played["discount"])
    means = [np.mean([discount_weights(discount, len(points)) @ points for points in agents[name]]) for name in models]
    return Cell(names["run"], names["mechanism"], names["game"], models, np.array(means))


def _match(match: Mapping[str, Any]) -> tuple[list[str], list[list[list[float]]]]:
    """The agents on the seats of a match, and the payoffs of each round of each repetition."""
    payoffs = [[list(map(float, round_)) for round_ in repetition] for repetition in match["payoffs"]]
    return list(map(_agent, match["players"])), payoffs


def _agent(player: Mapping[str, Any]) -> str:
    """An agent's name, as in the published files: ``openai/gpt-5.2(CoT)``."""
    return f"{player['llm']['model']}({str(player['type']).removesuffix('Agent')})"


def _values(path: Path, models: Sequence[str]) -> Array | None:
    """A published rating of each model; None if there is no such file."""
    if not path.exists():
        return None
    ratings = _json(path)
    try:
        values = [ratings[model]["fitness"] if isinstance(ratings[model], dict) else ratings[model] for model in models]
        return np.array(values, dtype=float)
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path.name} has no number for each of {', '.join(models)}") from error


def _json(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UsageError(f"{path.name} is missing") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path.name} can't be read: {error}") from error
    if text.startswith("version https://git-lfs"):
        raise UsageError(f"{path.name} is a pointer of Git LFS: fetch the file itself (git lfs pull)")
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{path.name} is invalid JSON: {error}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{path.name} is not a JSON object")
    return data


def published_tables(rated: Sequence[Published], unread: Sequence[Unread]) -> list[Table]:
    """Table 2, mean ratings, published and ours, by mechanism and game; and the cells individually."""
    return [_overall_table(rated), _ranks_table(rated), _cells_table(rated, unread)]


def _overall_table(rated: Sequence[Published]) -> Table:
    """The published ratings over all dilemmas, normalised, with the standard error over games as in Table 2."""
    rows = []
    for mechanism in dict.fromkeys(each.rated.cell.mechanism for each in rated):
        games = [cells for other, game, cells in _groups(rated) if other == mechanism and game in DILEMMAS]
        for rating in ("mean", "fitness", "rank"):
            runs = [[_overall(each, rating) for each in cells if rating in each.values] for cells in games]
            if not games or not all(runs):
                continue
            models = games[0][0].rated.cell.models
            means = [mean(column) for column in zip(*(np.mean(values, axis=0) for values in runs), strict=True)]
            row = {"mechanism": mechanism, "rating": rating, "games": len(games)}
            rows.append(row | dict(zip(("average", *models), map(_with_error, means), strict=True)))
    names = dict.fromkeys(name for row in rows for name in row if name not in ("mechanism", "rating", "games"))
    columns = [Column("mechanism", once=True), Column("rating"), Column("games"), *map(Column, names)]
    notes = [
        "Table 2 of the paper: 0 at full defection, 1 at full cooperation; means over games ± the standard error over "
        "games. Rank: of the deviation rating, 1 is best. Only average fitness is ours."
    ]
    return Table("overall", "Published ratings over all dilemmas", columns, rows, notes)


def _overall(published: Published, rating: str) -> Array:
    """A published rating, normalised but for ranks: the average, and each model."""
    cell, values = published.rated.cell, published.values[rating]
    average = published.rated.average_fitness if rating == "fitness" else values.mean()
    row = np.array([average, *values], dtype=float)
    return row if rating == "rank" or cell.scale is None else cell.scale.normalise(row)


def _with_error(value: Estimate) -> str:
    return f"{value.value:.3f}" + ("" if value.error is None else f" ± {value.error:.3f}")


def _groups(rated: Sequence[Published]) -> Iterator[tuple[str, str, list[Published]]]:
    groups = grouped(((cell.rated.cell.mechanism, cell.rated.cell.game), cell) for cell in rated)
    yield from ((*key, cells) for key, cells in groups.items())


def _ranks_table(rated: Sequence[Published]) -> Table:
    models = list(dict.fromkeys(model for each in rated for model in each.rated.cell.models))
    rows = []
    for mechanism, game, cells in _groups(rated):
        for model in models:
            places = [(each, each.rated.cell.models.index(model)) for each in cells if model in each.rated.cell.models]
            if not places:
                continue
            row: dict[str, Any] = {"mechanism": mechanism, "game": game, "model": model, "runs": len(places)}
            for rating in ("mean", "fitness", "rank"):
                ours = [
                    getattr(each.rated, rating)[at] for each, at in places if getattr(each.rated, rating) is not None
                ]
                theirs = [each.values[rating][at] for each, at in places if rating in each.values]
                for name, numbers in ((rating, ours), (f"published_{rating}", theirs)):
                    row[name] = float(np.mean(numbers)) if numbers else None
            rows.append(row)
    columns = [Column("mechanism", once=True), Column("game", once=True), Column("model")]
    for rating, form in (("mean", ".3f"), ("fitness", ".3f"), ("rank", ".1f")):
        columns += [Column(f"published_{rating}", "published", form, group=rating)]
        columns += [Column(rating, "ours", form, group=rating)]
    notes = ["Means over runs, as in tables 3 to 7 of the paper. Rank: of the deviation rating, 1 is best."]
    return Table("averages", "Published ratings and ours", [*columns, Column("runs")], rows, notes)


def _cells_table(rated: Sequence[Published], unread: Sequence[Unread]) -> Table:
    rows: list[dict[str, Any]] = []
    for published in rated:
        cell = published.rated.cell
        row: dict[str, Any] = {"mechanism": cell.mechanism, "game": cell.game, "run": cell.run}
        row |= {f"{name}_apart": published.apart(name) for name in _FILES}
        row |= {"published_ranks": _listed(published.values.get("rank")), "ranks": _listed(published.rated.rank)}
        rows.append({**row, "ranks_differ": bool(published.why), "why": published.why})
    columns = [Column("mechanism", once=True), Column("game", once=True), Column("run")]
    columns += [Column(f"{name}_apart", name, ".1e", group="largest difference") for name in _FILES]
    columns += [Column("published_ranks", "published", group="ranks"), Column("ranks", "ours", group="ranks")]
    known = [each for each in rated if "rank" in each.values]
    differ = sum(bool(each.why) for each in known)
    names = ", ".join(rated[0].rated.cell.models)
    notes = [
        f"Ranks differ in {differ} of {len(known)} cells. Differences are shares of the payoffs' range.",
        f"Ranks are those of {names}, in this order.",
        "Frozen early: the published program freezes every constraint that is tight at one optimum of its solver; in "
        "these cells another equilibrium has smaller gains, the largest first.",
        *(f"Left out: {each.path}: {each.reason}." for each in unread),
    ]
    return Table("cells", "Cells of the published study", [*columns, Column("why", "why ranks differ")], rows, notes)


def _listed(values: Array | None) -> str | None:
    return None if values is None else " ".join(f"{value:g}" for value in values)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Rate the published data of CoopEval and compare the ratings.")
    parser.add_argument("folder", type=Path, help="a checkout of their repository, or the folder of a run")
    parser.add_argument("--summary", action="store_true", help="print means over runs with 95 %% intervals instead")
    given = parser.parse_args(arguments)
    try:
        rated, unread = read_published(given.folder)
    except UsageError as error:
        parser.error(str(error))
    steps = Evolution().steps
    summary = [summaries_table(summarise(each.rated for each in rated), steps=steps)] if given.summary else []
    print_tables(summary or published_tables(rated, unread))
    for each in unread:
        err().print(f"{each.path} is left out: {each.reason}", soft_wrap=True)
    return 1 if unread else 0


if __name__ == "__main__":
    raise SystemExit(main())
