"""The commands that list and show behavioural games."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING, Any

from pydantic import Field

from labmates.games.base import Game
from labmates.games.registry import GAMES, make_game
from labmates.stats.tables import Column, Table
from labmates.workflows.protocol.analysis import Result
from labmates.workflows.protocol.catalogue import Facts, Named, catalogue
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab


class GameParams(Named):
    """A game with its rules."""

    rules: dict[str, str] = Field({}, description="Constant of the game, NAME=VALUE; repeatable.")


class ShowParams(GameParams):
    """A game with its rules, for groups of several sizes."""

    group_size: tuple[str, ...] = Field((), description="Players in a group; repeatable.")


def show(_lab: Lab, params: ShowParams) -> Iterator[Result]:
    """Show a game: rules, payoffs for equal decisions, and reference plays."""
    sizes = [{"group_size": size} for size in params.group_size] or [{}]
    sized = [make_game(params.name, {**params.rules, **size}) for size in sizes]
    tables = [_payoffs(sized), _references(sized)]
    people = [f"People {people.about} ({people.source})." for people in sized[0].people]
    yield Result(tables, verdict=_rules(sized[0]), objects=list(map(_json, sized)), remarks={"People": people})


def _json(game: Game) -> dict[str, Any]:
    from labmates.games.references import references

    reference_plays = references(game)
    plays = {
        name: {"level": float(play.level), "payoff": float(play.payoff)}
        for name, play in (("nash", reference_plays.nash), ("optimum", reference_plays.optimum))
    }
    return {
        "name": game.name,
        "title": game.title,
        "rules": game.model_dump(mode="json"),
        "quantities": [asdict(quantity) for quantity in game.quantities],
        "total": game.total,
        "primary": game.primary,
        **plays,
        "people": [asdict(people) for people in game.people],
        "equilibria": [float(level) for level in reference_plays.equilibria],
    }


def _rules(game: Game) -> list[str]:
    lines = [f"{game.title} ({game.name})", f"{game.summary}\n"]
    for quantity in game.quantities:
        bounds = f"a whole number from {quantity.low} to {quantity.high}"
        lines.append(f"  decides: {quantity.name}: {bounds}, {quantity.about}")
    lines += [] if game.total is None else [f"  which add up to {game.total}"]
    lines.append(f"\nText for players:\n{game.rules('standard')}\n")
    rules = {name: field for name, field in type(game).model_fields.items() if name != "group_size"}
    return [*lines, *(f"  rule {name} = {getattr(game, name)}: {field.description}" for name, field in rules.items())]


def _payoffs(sized: Sequence[Game]) -> Table:
    """The payoff of each player for equal decisions, the reference plays among them: a column for each group size."""
    from labmates.games.references import references

    game = sized[0]
    strategies = list(game.strategies())
    groups = [group for each in map(references, sized) for play in (each.nash, each.optimum) for group in play.profile]
    some = {*strategies[:: max(1, len(strategies) // 10)], *chain(*groups)}
    rows = []
    for strategy in filter(some.__contains__, strategies):
        decided = {quantity.name: value for quantity, value in zip(game.quantities, strategy, strict=True)}
        payoffs = {f"n = {each.group_size}": float(each.expected(each.uniform(strategy))[0, 0]) for each in sized}
        rows.append({**decided, **payoffs})
    columns = [Column(quantity.name, f"{quantity.name} {game.span}".strip()) for quantity in game.quantities]
    columns += [Column(f"n = {each.group_size}", form=".2f") for each in sized]
    return Table("payoffs", "Payoff of each player when all do the same", columns, rows)


def _references(sized: Sequence[Game]) -> Table:
    from labmates.games.references import references

    all_plays = list(map(references, sized))
    rows = [
        {
            "group_size": game.group_size,
            "players": game.players,
            "nash": float(plays.nash.level),
            "nash_payoff": float(plays.nash.payoff),
            "optimum": float(plays.optimum.level),
            "optimum_payoff": float(plays.optimum.payoff),
        }
        for game, plays in zip(sized, all_plays, strict=True)
    ]
    headings = {"nash": f"Nash {sized[0].primary} per round", "nash_payoff": "payoff", "optimum_payoff": "payoff"}
    numbers = {"group_size": None, "players": None}
    columns = [Column(name, headings.get(name, ""), numbers.get(name, ".3f")) for name in rows[0]]
    is_same = any(plays.optimum == plays.nash for plays in all_plays)
    notes = ["Where both are the same, no play is better for all."] if is_same else []
    return Table("references", "Reference plays", columns, rows, notes)


def _facts(name: str) -> Facts:
    game = make_game(name)
    return {"title": game.title, "primary": game.primary}


COMMAND = catalogue(
    "List the behavioural games, or show one.",
    GAMES,
    _facts,
    {
        "show": Command(
            show,
            ShowParams,
            example="labmates games show o-ring --group-size 3 --group-size 5 --rule threshold=40",
            objects="per group size",
        ),
    },
    example="labmates games show weakest-link",
    objects="per game",
)
