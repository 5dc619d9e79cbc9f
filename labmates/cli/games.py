"""``labmates games``: the behavioural games, our own and those of plug-ins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import json_option
from labmates.cli.console import clean, out, print_json
from labmates.cli.plugins import print_all
from labmates.cli.tables import print_grid

if TYPE_CHECKING:
    from labmates.games.base import Game

_rules = click.option(
    "--rule", "rules", multiple=True, metavar="NAME=VALUE", help="Another value of a rule; repeatable."
)


@click.group(invoke_without_command=True, epilog="Example: labmates games show weakest-link")
@json_option("per game")
@click.pass_context
def games(ctx: click.Context, as_json: bool) -> int:
    """List the behavioural games, or show or check one."""
    from labmates.games.registry import GAMES, make_game

    if ctx.invoked_subcommand is not None:
        return 0

    def look(name: str) -> dict[str, Any]:
        game = make_game(name)
        return {"title": game.title, "primary": game.primary}

    print_all(GAMES, look, as_json=as_json)
    return 0


@games.command("show", epilog="Example: labmates games show o-ring --group-size 3 --group-size 5 --rule threshold=40")
@click.argument("name")
@click.option("--group-size", "sizes", multiple=True, metavar="N", help="Players in a group; repeatable.")
@_rules
@json_option("per group size")
def show(name: str, sizes: tuple[str, ...], rules: tuple[str, ...], as_json: bool) -> int:
    """Show a game: its rules, payoffs when all do the same, and its reference plays."""
    from labmates.games.registry import make_game

    given = _given(rules)
    made = [make_game(name, {**given, "group_size": size}) for size in sizes] or [make_game(name, given)]
    if as_json:
        for game in made:
            print_json(_as_json(game))
        return 0
    _print_rules(made[0])
    _print_payoffs(made)
    _print_references(made)
    for people in made[0].people:
        out().print(clean(f"\nPeople {people.about} ({people.source})."), markup=False)
    return 0


@games.command("check", epilog="Example: labmates games check my-game")
@click.argument("name")
@_rules
def check(name: str, rules: tuple[str, ...]) -> int:
    """Check a game, for instance one of your own; with problems it ends with exit code 1."""
    from labmates.games.conformance import check_game
    from labmates.games.registry import make_game

    problems = check_game(make_game(name, _given(rules)))
    for problem in problems:
        out().print(clean(problem), markup=False)
    out().print(f"{name}: {len(problems) or 'no'} problems.", markup=False)
    return 1 if problems else 0


def _given(rules: tuple[str, ...]) -> dict[str, str]:
    from labmates.errors import UsageError

    pairs = [rule.partition("=") for rule in rules]
    wrong = next((name for name, sign, _ in pairs if not sign), None)
    if wrong is not None:
        raise UsageError(f"--rule takes NAME=VALUE, not '{wrong}'")
    return {name: value for name, _, value in pairs}


def _as_json(game: Game) -> dict[str, Any]:
    from dataclasses import asdict

    from labmates.games.references import references

    found = references(game)
    plays = {
        name: {"level": float(play.level), "payoff": float(play.payoff)}
        for name, play in (("nash", found.nash), ("optimum", found.optimum))
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
        "equilibria": [float(level) for level in found.equilibria],
    }


def _print_rules(game: Game) -> None:
    out().print(clean(f"{game.title} ({game.name})"), style="bold", markup=False)
    out().print(clean(f"{game.summary}\n"), markup=False)
    for quantity in game.quantities:
        bounds = f"a whole number from {quantity.low} to {quantity.high}"
        out().print(clean(f"  decides: {quantity.name}: {bounds}, {quantity.about}"), markup=False)
    if game.total is not None:
        out().print(f"  which add up to {game.total}", markup=False)
    out().print(clean(f"\nWhat players are told:\n{game.rules('standard')}\n"), markup=False)
    for name, field in type(game).model_fields.items():
        if name == "group_size":  # has a table of its own
            continue
        out().print(clean(f"  rule {name} = {getattr(game, name)}: {field.description}"), markup=False)


def _print_payoffs(made: list[Game]) -> None:
    names = [quantity.name for quantity in made[0].quantities]
    headings = [*(f"{name} {made[0].span}".strip() for name in names), *(f"n = {game.group_size}" for game in made)]
    rows = []
    strategies = list(made[0].strategies())
    for strategy in strategies[:: max(1, len(strategies) // 10)]:
        payoffs = (float(game.expected(game.uniform(strategy))[0, 0]) for game in made)
        rows.append([*map(str, strategy), *(f"{payoff:.2f}" for payoff in payoffs)])
    out().print()
    print_grid(headings, rows, [True] * len(headings), title="Payoff of each player when all do the same")


def _print_references(made: list[Game]) -> None:
    from labmates.games.references import references

    headings = ["group size", "players", f"Nash {made[0].primary} per round", "payoff", "optimum", "payoff"]
    rows = []
    for game in made:
        found = references(game)
        cells = (found.nash.level, found.nash.payoff, found.optimum.level, found.optimum.payoff)
        rows.append([str(game.group_size), str(game.players), *(f"{float(cell):.3f}" for cell in cells)])
    out().print()
    print_grid(headings, rows, [True] * len(headings), title="Reference plays")
    if any(references(game).optimum == references(game).nash for game in made):
        out().print("Where both are the same, no play is better for all.", markup=False)
