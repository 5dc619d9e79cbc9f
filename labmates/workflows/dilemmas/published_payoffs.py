"""The published data of CoopEval, rated again beside their own ratings.

A folder of theirs is one cell: ``config.json`` (game, mechanism), ``matchup_payoffs.json`` (the payoffs of each match),
and what their program made of these: ``agent_average_payoff.json``, ``replicator_dynamics_fitness.json`` and
``deviation_ratings.json``, each by agent. Folders of cells stand in a folder of their run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from labmates.errors import UsageError
from labmates.grouping import grouped
from labmates.stats.deviation import ranks
from labmates.stats.metagame import Array
from labmates.stats.ratings import Rated, rate
from labmates.stats.tables import Column, Table
from labmates.workflows.dilemmas.payoff_files import cell_of

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
    "Mediation": "mediation",
    "Contracting": "contract",
}
AGREE: Final = 1e-6
"""Ratings that differ by no more than this share of the payoffs' range are the same."""


@dataclass(frozen=True)
class Published:
    """A cell, rated here and by the authors' program.

    Attributes
    ----------
    rated
        What we find.
    values
        What they published: ``mean``, ``fitness``, ``deviation`` and the ``rank`` that follows, each in the order of
        the models; without those of files that are not there.
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
    """Theirs less ours at the first difference of the largest gains, in order; 0 if they are equal."""
    both = np.sort(theirs)[::-1] - np.sort(ours)[::-1]
    apart = both[np.abs(both) > least]
    return float(apart[0]) if len(apart) else 0.0


@dataclass(frozen=True)
class Unread:
    """A folder that could not be rated, and why."""

    path: Path
    reason: str


def read_published(folder: Path) -> tuple[list[Published], list[Unread]]:
    """Rate the cells of a checkout of the published data, of its main study where the folder has one.

    Returns
    -------
    rated, unread
        Cells of repetition, mediation, contracts and no mechanism; reputation has no metagame and is passed over.

    Raises
    ------
    UsageError
        If the folder has no such cells.
    """
    main = folder / "data" / "main_study"
    root = main if main.is_dir() else folder
    if not root.is_dir():
        raise UsageError(f"--published: {folder} is not a folder")
    rated: list[Published] = []
    unread: list[Unread] = []
    for path in sorted(one.parent for one in root.rglob("config.json")):
        try:
            cell = _cell(path)
        except UsageError as error:
            unread.append(Unread(path.relative_to(root), str(error)))
        else:
            rated += [] if cell is None else [cell]
    if not rated:
        why = f"; the first of {len(unread)} that can't be read: {unread[0].path}: {unread[0].reason}" if unread else ""
        raise UsageError(f"--published: {root} has no folder with config.json and {PAYOFFS} that can be rated{why}")
    return sorted(rated, key=_place), unread


def _place(published: Published) -> tuple[int, int, str]:
    cell = published.rated.cell
    mechanisms, games = list(MECHANISMS.values()), list(GAMES.values())
    return mechanisms.index(cell.mechanism), games.index(cell.game), cell.run


def _cell(path: Path) -> Published | None:
    config = _json(path / "config.json")
    try:
        mechanism, game = str(config["mechanism"]["type"]), str(config["game"]["type"])
    except (KeyError, TypeError) as error:
        raise UsageError("config.json names no mechanism or no game") from error
    if mechanism.startswith("Reputation"):
        return None
    for name, what, known in ((mechanism, "mechanism", MECHANISMS), (game, "game", GAMES)):
        if name not in known:
            raise UsageError(f"unknown {what} '{name}' (known: {', '.join(known)})")
    played = _json(path / PAYOFFS)
    try:
        matches = [_match(match) for match in played["profile"]]
        discount = float(played["discount"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise UsageError(f"{PAYOFFS} does not have the published form ({type(error).__name__}: {error})") from error
    models = sorted({agent for agents, _ in matches for agent in agents})
    matchups = [
        {"seats": [models.index(agent) for agent in agents], "rounds": rounds}
        for agents, every in matches
        for rounds in every
    ]
    data = {"models": models, "discount": discount, "matchups": matchups}
    data |= {"run": path.parent.name, "mechanism": MECHANISMS[mechanism], "game": GAMES[game]}
    cell = cell_of(data, path / PAYOFFS)
    rated = rate(cell)
    values = {
        name: values_of_file
        for name, file in _FILES.items()
        if (values_of_file := _values(path / file, models)) is not None
    }
    if "deviation" in values:
        values["rank"] = ranks(values["deviation"], unit=float(np.ptp(cell.payoffs)))
    return Published(path, rated, values)


def _match(match: Mapping[str, Any]) -> tuple[list[str], list[list[list[float]]]]:
    """The players on the seats of a match, and the payoffs of each round of each repetition."""
    return [_agent(one) for one in match["players"]], [[list(map(float, r)) for r in one] for one in match["payoffs"]]


def _agent(player: Mapping[str, Any]) -> str:
    """An agent's name, as the published files have it: ``openai/gpt-5.2(CoT)``."""
    return f"{player['llm']['model']}({str(player['type']).removesuffix('Agent')})"


def _values(path: Path, models: Sequence[str]) -> Array | None:
    """A published rating of each model; None if there is no such file."""
    if not path.exists():
        return None
    ratings = _json(path)
    try:
        plain = [ratings[model]["fitness"] if isinstance(ratings[model], dict) else ratings[model] for model in models]
        return np.array(plain, dtype=float)
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
    """Mean ranks, published and ours, by mechanism and game, and the cells one by one."""
    return [_ranks_table(rated), _cells_table(rated, unread)]


def _groups(rated: Sequence[Published]) -> Iterator[tuple[str, str, list[Published]]]:
    groups = grouped(((cell.rated.cell.mechanism, cell.rated.cell.game), cell) for cell in rated)
    yield from ((*what, some) for what, some in groups.items())


def _ranks_table(rated: Sequence[Published]) -> Table:
    models = list(dict.fromkeys(model for one in rated for model in one.rated.cell.models))
    rows = []
    for mechanism, game, some in _groups(rated):
        with_both = [one for one in some if "rank" in one.values]
        for model in models:
            mine = [(one, one.rated.cell.models.index(model)) for one in with_both if model in one.rated.cell.models]
            if not mine:
                continue
            row: dict[str, Any] = {"mechanism": mechanism, "game": game, "model": model, "runs": len(mine)}
            for rating in ("mean", "fitness", "rank"):
                own = [float(getattr(one.rated, rating)[at]) for one, at in mine]
                theirs = [float(one.values[rating][at]) for one, at in mine if rating in one.values]
                row |= {rating: float(np.mean(own)), f"published_{rating}": float(np.mean(theirs)) if theirs else None}
            rows.append(row)
    columns = [Column("mechanism", once=True), Column("game", once=True), Column("model")]
    for rating, form in (("mean", ".3f"), ("fitness", ".3f"), ("rank", ".1f")):
        columns += [Column(f"published_{rating}", "published", form, group=rating)]
        columns += [Column(rating, "ours", form, group=rating)]
    notes = ["Means over runs, as tables 3 to 7 of the paper have them. Rank: of the deviation rating, 1 is best."]
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
    known = [one for one in rated if "rank" in one.values]
    differ = sum(bool(one.why) for one in known)
    names = ", ".join(rated[0].rated.cell.models)
    notes = [
        f"Ranks differ in {differ} of {len(known)} cells. Differences are shares of the payoffs' range.",
        f"Ranks are those of {names}, in this order.",
        "Frozen early: the published program freezes every constraint that is tight at one optimum of its solver; in "
        "these cells another equilibrium has smaller gains, the largest first.",
        *(f"Left out: {one.path}: {one.reason}." for one in unread),
    ]
    return Table("cells", "Cells of the published study", [*columns, Column("why", "why ranks differ")], rows, notes)


def _listed(values: Array | None) -> str | None:
    return None if values is None else " ".join(f"{value:g}" for value in values)
