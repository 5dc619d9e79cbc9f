"""``labmates strategies``: strategies as code, imported, checked and played."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from labmates.cli.common import F, json_option
from labmates.cli.console import clean, out, print_json

if TYPE_CHECKING:
    from labmates.workflows.populations.engine.checks import Checked
    from labmates.workflows.populations.engine.workers import Workers

GAMES = ("public-goods", "collective-risk", "common-pool")

sandbox_option = click.option(
    "--sandbox",
    type=click.Choice(["auto", "unsafe-local"]),
    default="auto",
    show_default=True,
    help="Where strategies' code runs: in confined processes, or (unsafe) in plain ones that can do what you can do.",
)
processes_option = click.option(
    "--processes", type=click.IntRange(1, 256), help="Worker processes; by default one for each processor."
)


def rules_options(function: F) -> F:
    """Add the options for the parameters of the games."""
    k = click.option("--k", type=float, help="Multiplier (public-goods) or benefit (collective-risk). [default: 2]")
    m = click.option("--m", type=int, help="Cooperators needed (collective-risk). [default: half of the players]")
    capacity = click.option("--capacity", type=int, help="Greatest stock (common-pool). [default: 4 for each player]")
    return k(m(capacity(function)))


class ManyPlayers(click.Command):
    """A command whose option ``--players`` takes all words up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat ``--players`` before each player."""
        words: list[str] = []
        inside = False
        for word in args:
            if word == "--players":
                inside = True
                continue
            inside = inside and not word.startswith("-")
            words += ["--players", word] if inside else [word]
        return super().parse_args(ctx, words)


class Verbs(click.Group):
    """The verbs of strategies; what writes them is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all verbs."""
        return ["write", *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb."""
        if cmd_name == "write":
            from labmates.cli.write_strategies import write

            return write
        return super().get_command(ctx, cmd_name)


@click.group(
    cls=Verbs,
    epilog="Example: labmates strategies play --game public-goods --players reference:cooperate reference:cc-2 "
    "reference:defect",
)
def strategies() -> None:
    """Write, import, check and play strategies as code."""


@strategies.command(
    "play",
    cls=ManyPlayers,
    epilog="Example: labmates strategies play --game public-goods --k 1.5 --players mine.py:Strategy_SELFISH_1 "
    "reference:cooperate reference:random-0.5",
)
@click.option("--game", type=click.Choice(GAMES), required=True, help="The game.")
@click.option("--rounds", type=int, default=20, show_default=True, help="Rounds of the game.")
@rules_options
@click.option(
    "--players", multiple=True, required=True, metavar="PLAYER ...", help="FILE.py:CLASS or reference:NAME, by seat."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of all random numbers.")
@sandbox_option
@json_option()
def play(
    game: str, rounds: int, players: tuple[str, ...], seed: int, sandbox: str, as_json: bool, **rules: float | None
) -> int:
    """Play one game; seats are in the order of the players."""
    from labmates.games.repeated import make_repeated
    from labmates.workflows.populations.engine.match import play_match

    made = make_repeated(game, len(players), rounds, rules)
    with make_workers(1, sandbox) as workers:
        match = play_match(workers, made, players, seed=seed)
    if as_json:
        print_json(match.as_json())
        return 0
    totals = match.payoffs.sum(axis=0)
    for seat, player in enumerate(players):
        moves = "".join("C" if one else "D" for one in match.actions[:, seat])
        out().print(clean(f"{moves}  {totals[seat]:8.2f}  {player}"), markup=False)
    for player, error in match.errors.items():
        where = "before the first round" if error["round"] < 0 else f"in round {error['round']}"
        out().print(clean(f"{player}: {error['count']} errors, first {where}: {error['what']}"), markup=False)
    return 0


@strategies.command("check", epilog="Example: labmates strategies check strategies/public-goods/gpt.py")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--game", type=click.Choice(GAMES), help="The game, where the folder's name does not tell it.")
@processes_option
@sandbox_option
@json_option("per strategy")
def check(path: Path, game: str | None, processes: int | None, sandbox: str, as_json: bool) -> int:
    """Check strategies: a file, or a folder of them. With problems it ends with exit code 1.

    Their code is read, then played in games of several sizes and lengths: it must not crash, answer anything but C or
    D, take too long or too much memory, and must do the same again unless it draws random numbers.
    """
    from labmates.errors import UsageError
    from labmates.workflows.populations.engine.checks import check_strategies
    from labmates.workflows.populations.engine.library import read_text, strategy_files

    wrong = total = 0
    with make_workers(processes, sandbox) as workers:
        for file in strategy_files(path):
            known = game or file.game
            if known is None:
                raise UsageError(f"which game is {file.path} for? Give it with --game ({', '.join(GAMES)})")
            for one in check_strategies(workers, known, workers.load(file.path.name, read_text(file.path))):
                total += 1
                wrong += bool(one.problems)
                _tell(str(file.path), known, one, as_json=as_json)
    if not as_json:
        out().print(f"{total} strategies, {wrong or 'none'} with problems.", markup=False)
    return 1 if wrong else 0


@strategies.command("import", epilog="Example: labmates strategies import downloads/strategies --to strategies")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "library",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("strategies"),
    show_default=True,
    help="The library that they are copied to.",
)
@click.option("--game", type=click.Choice(GAMES), help="The game, where the folder's name does not tell it.")
@json_option("per file")
def import_(path: Path, library: Path, game: str | None, as_json: bool) -> int:
    """Copy strategies into a library, unchanged: a folder of our own or of the published format, or one file.

    Files are read but nothing of them is run. Beside each stands then where its strategies are from.
    """
    from labmates.workflows.populations.engine.library import import_strategies

    with make_workers(1, "auto") as workers:
        for one in import_strategies(workers, path, library, game):
            told = {
                "file": str(one.file.path),
                "game": one.file.game,
                "model": one.file.model,
                "strategies": one.strategies,
                "refused": one.refused,
            }
            if as_json:
                print_json(told)
                continue
            refused = f", {one.refused} refused by the static checks" if one.refused else ""
            out().print(clean(f"{one.file.path}: {one.strategies} strategies{refused}"), markup=False)
    return 0


@strategies.command("references", epilog="Example: labmates strategies references --json")
@json_option("per strategy")
def references(as_json: bool) -> int:
    """List the reference strategies; a player is named, for instance, reference:cc-2."""
    from labmates.workflows.populations.engine.reference import REFERENCES

    for name, one in REFERENCES.items():
        spelled = f"{name}-{one.parameter}" if one.parameter else name
        if as_json:
            print_json({"name": spelled, "title": one.title})
        else:
            out().print(f"{spelled:<14}{one.title}", markup=False)
    return 0


def make_workers(processes: int | None, sandbox: str) -> Workers:
    """Return the workers that play strategies; warn if they are not to be confined."""
    from labmates.cli.console import complain
    from labmates.workflows.populations.engine.workers import Workers

    if sandbox == "unsafe-local":
        complain("WARNING: strategies' code runs on this machine without any isolation.")
    return Workers(processes=processes, unsafe=sandbox == "unsafe-local")


def _tell(path: str, game: str, one: Checked, *, as_json: bool) -> None:
    found = one.strategy
    told: dict[str, Any] = {
        "file": path,
        "class": found.name,
        "game": game,
        "form": "paper" if found.paper else "current",
        "random": found.random,
        "deterministic": one.deterministic,
        "microseconds": round(one.microseconds, 2),
        "problems": list(one.problems),
    }
    if as_json:
        print_json(told)
    elif one.problems:
        for problem in one.problems:
            out().print(clean(f"{path}:{found.line} {found.name}: {problem}"), markup=False)
