"""``labmates mechanisms`` and ``labmates dilemmas``: what can be put around a game, and the games."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import json_option
from labmates.cli.console import clean, out, print_json
from labmates.cli.plugins import print_all
from labmates.cli.tables import print_grid

if TYPE_CHECKING:
    from labmates.games.payoff_table import PayoffTable
    from labmates.mechanisms.base import Mechanism

_terms = click.option(
    "--term", "terms", multiple=True, metavar="NAME=VALUE", help="Another value of a parameter; can be repeated."
)
_game = click.option(
    "--game",
    "games",
    multiple=True,
    metavar="GAME",
    help="In this dilemma, by name or from a YAML file; can be repeated.",
)


@click.group(invoke_without_command=True, epilog="Example: labmates mechanisms show reputation")
@json_option("each")
@click.pass_context
def mechanisms(ctx: click.Context, as_json: bool) -> int:
    """List the mechanisms that make cooperation pay, or show or check one."""
    from labmates.mechanisms.registry import MECHANISMS, make_mechanisms

    if ctx.invoked_subcommand is not None:
        return 0

    def look(name: str) -> dict[str, Any]:
        [made] = make_mechanisms(name)
        return {"title": made.title, "summary": made.summary}

    print_all(MECHANISMS, look, as_json=as_json)
    return 0


@mechanisms.command("show", epilog="Example: labmates mechanisms show contract --game public-goods")
@click.argument("name")
@_terms
@_game
@json_option("each")
def show(name: str, terms: tuple[str, ...], games: tuple[str, ...], as_json: bool) -> int:
    """Show a mechanism: its parameters, what players are told, and how many calls it takes."""
    from labmates.mechanisms.play import calls_of

    made = _made(name, terms)
    table = _table(games[0] if games else "prisoners")
    for one in made:
        one.check(table.game())
    calls = calls_of(made, table.game())
    if as_json:
        parts = [
            {"name": one.name, "title": one.title, "summary": one.summary, "parameters": one.model_dump(mode="json")}
            for one in made
        ]
        rules = [one.rules(table.game()) for one in made]
        asked = {"per_match": calls.per_match, "per_model_and_seat": calls.shared}
        print_json({"name": name, "parts": parts, "game": table.name, "rules": rules, "calls": asked})
        return 0
    for one in made:
        out().print(clean(f"{one.title} ({one.name})"), style="bold", markup=False)
        out().print(clean(one.summary), markup=False)
        for field, info in type(one).model_fields.items():
            out().print(clean(f"  term {field} = {getattr(one, field)}: {info.description}"), markup=False)
        out().print(clean(f"\nWhat players are told (in {table.name}):\n{one.rules(table.game())}\n"), markup=False)
    once = f", and {calls.shared} for each model and seat" if calls.shared else ""
    out().print(f"Calls in {table.name}: {calls.per_match} in each match{once}.", markup=False)
    return 0


@mechanisms.command("check", epilog="Example: labmates mechanisms check my-mechanism --game prisoners")
@click.argument("name")
@_terms
@_game
def check(name: str, terms: tuple[str, ...], games: tuple[str, ...]) -> int:
    """Check a mechanism, or several around each other (contract+repetition); with problems the exit code is 1."""
    from labmates.mechanisms.conformance import check_mechanism, untested

    made = _made(name, terms)
    chosen = {table.name: table.game() for table in map(_table, games)} or None
    for line in untested(made, chosen or {}):
        out().print(clean(line), markup=False)
    problems = check_mechanism(made, chosen)
    for problem in problems:
        out().print(clean(problem), markup=False)
    out().print(f"{name}: {len(problems) or 'no'} problems.", markup=False)
    return 1 if problems else 0


@click.group(invoke_without_command=True, epilog="Example: labmates dilemmas show trust")
@json_option("each")
@click.pass_context
def dilemmas(ctx: click.Context, as_json: bool) -> int:
    """List the social dilemmas, or show one."""
    from labmates.games.dilemmas import DILEMMAS, get_dilemma

    if ctx.invoked_subcommand is not None:
        return 0

    def look(name: str) -> dict[str, Any]:
        table = get_dilemma(name)
        return {"title": table.title, "players": table.players, "summary": table.summary}

    print_all(DILEMMAS, look, as_json=as_json)
    return 0


@dilemmas.command("show", epilog="Example: labmates dilemmas show my-game.yaml")
@click.argument("name")
@json_option("each")
def show_dilemma(name: str, as_json: bool) -> int:
    """Show a dilemma, by name or from a YAML file: its payoffs, its equilibria, and what mechanisms can bring."""
    from labmates.games.normal_form import find_dilemma

    table = _table(name)
    game = table.game()

    def named(profile: tuple[int, ...] | None) -> str | None:
        if profile is None:
            return None
        return " ".join(own[action] for own, action in zip(table.actions, profile, strict=True))

    equilibria = [named(profile) for profile in game.profiles() if game.is_nash(profile)]
    found = find_dilemma(game)
    if as_json:
        print_json(
            {
                **table.model_dump(mode="json"),
                "symmetric": game.is_symmetric,
                "equilibria": equilibria,
                "dilemma": None
                if found is None
                else {"cooperate": named(found.cooperate), "defect": named(found.defect)},
            }
        )
        return 0
    out().print(clean(f"{table.title or table.name} ({table.name})"), style="bold", markup=False)
    if table.summary:
        out().print(clean(table.summary), markup=False)
    headings = [*(f"player {player + 1}" for player in range(table.players)), "payoffs"]
    rows = []
    for profile in game.profiles():
        labels = [own[action] for own, action in zip(table.actions, profile, strict=True)]
        rows.append([*labels, ", ".join(f"{float(payoff):g}" for payoff in game.payoffs[profile])])
    print_grid(headings, rows, [False] * len(headings))
    said = ", ".join(str(one) for one in equilibria) or "none"
    out().print(clean(f"\nEquilibria in pure strategies: {said}"), markup=False)
    if found is None:
        out().print("No play is better for all than an equilibrium: mechanisms have nothing to bring.", markup=False)
    else:
        out().print(clean(f"Better for all than {named(found.defect)}: {named(found.cooperate)}"), markup=False)
    return 0


def _made(name: str, terms: tuple[str, ...]) -> tuple[Mechanism, ...]:
    from labmates.errors import UsageError
    from labmates.mechanisms.registry import make_mechanisms

    pairs = [term.partition("=") for term in terms]
    wrong = next((term for term, sign, _ in pairs if not sign), None)
    if wrong is not None:
        raise UsageError(f"--term takes NAME=VALUE, not '{wrong}'")
    return make_mechanisms(name, {term: value for term, _, value in pairs})


def _table(name: str) -> PayoffTable:
    from pathlib import Path

    from labmates.games.dilemmas import get_dilemma
    from labmates.games.payoff_table import load_table

    return load_table(Path(name)) if name.endswith((".yaml", ".yml")) else get_dilemma(name)
