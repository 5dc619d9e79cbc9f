"""The commands that list and show mechanisms and social dilemmas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from labmates.games.dilemmas import DILEMMAS, get_dilemma
from labmates.games.normal_form import eliminations, find_dilemma
from labmates.games.payoff_table import PayoffTable, load_table
from labmates.mechanisms.registry import MECHANISMS, make_mechanisms
from labmates.stats.tables import Column, Table
from labmates.workflows.protocol.analysis import Result
from labmates.workflows.protocol.catalogue import Facts, Named, catalogue
from labmates.workflows.protocol.command import Command

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab


class MechanismParams(Named):
    """A mechanism with its terms, in games."""

    terms: dict[str, str] = Field({}, description="Parameter of the mechanism, NAME=VALUE; repeatable.")
    games: tuple[str, ...] = Field((), description="Dilemma, by name or from a YAML file; repeatable.")


def show_mechanism(_lab: Lab, params: MechanismParams) -> Iterator[Result]:
    """Show a mechanism: parameters, the players' texts, and number of calls."""
    from labmates.mechanisms.play import calls_of

    parts = make_mechanisms(params.name, params.terms)
    table = table_named(params.games[0] if params.games else "prisoners")
    game = table.game()
    for part in parts:
        part.check(game)
    calls = calls_of(parts, game)
    rules = [part.rules(game) for part in parts]
    lines = []
    for part, text in zip(parts, rules, strict=True):
        lines += [f"{part.title} ({part.name})", part.summary]
        fields = type(part).model_fields.items()
        lines += [f"  term {name} = {getattr(part, name)}: {field.description}" for name, field in fields]
        if (sustained := part.sustains(game)) is not None:
            lines.append(f"Cooperation in {table.name} is {'' if sustained else 'not '}an equilibrium under it alone.")
        lines.append(f"\nTexts for players (in {table.name}):\n{text}\n")
    once = f", and {calls.shared} for each model and seat" if calls.shared else ""
    lines.append(f"Calls in {table.name}: {calls.per_match} in each match{once}.")
    described = [
        {
            "name": part.name,
            "title": part.title,
            "summary": part.summary,
            "parameters": part.model_dump(mode="json"),
            "sustains": part.sustains(game),
        }
        for part in parts
    ]
    asked = {"per_match": calls.per_match, "per_model_and_seat": calls.shared}
    shown = {"name": params.name, "parts": described, "game": table.name, "rules": rules, "calls": asked}
    yield Result((), verdict=lines, objects=[shown])


def show_dilemma(_lab: Lab, params: Named) -> Iterator[Result]:
    """Show a dilemma, by name or from a YAML file: payoffs, equilibria, and the possible gain from mechanisms."""
    table = table_named(params.name)
    game = table.game()

    def actions(profile: tuple[int, ...]) -> list[str]:
        return [names[action] for names, action in zip(table.actions, profile, strict=True)]

    def named(profile: tuple[int, ...]) -> str:
        return " ".join(actions(profile))

    players = [f"player {player + 1}" for player in range(table.players)]
    rows = [
        {
            **dict(zip(players, actions(profile), strict=True)),
            "payoffs": ", ".join(f"{float(payoff):g}" for payoff in game.payoffs[profile]),
        }
        for profile in game.profiles()
    ]
    equilibria = [named(profile) for profile in game.profiles() if game.is_nash(profile)]
    lines = [f"Equilibria in pure strategies: {', '.join(equilibria) or 'none'}"]
    dominated = [
        {
            "round": step.round,
            "player": step.player + 1,
            "action": table.actions[step.player][step.action],
            "by": table.actions[step.player][step.by],
            "strictly": step.strictly,
        }
        for step in eliminations(game)
    ]
    lines.append(_dominance_text(dominated))
    dilemma = find_dilemma(game)
    plays = None
    if dilemma is None:
        better = "No play is better for all than an equilibrium in pure strategies."
        lines.append(f"{better if equilibria else ''} Mixed equilibria are not computed.".strip())
    else:
        plays = {"cooperate": named(dilemma.cooperate), "defect": named(dilemma.defect)}
        lines.append(f"Better for all than {plays['defect']}: {plays['cooperate']}")
    title = f"{table.title or table.name} ({table.name})"
    shown = Table("payoffs", title, list(map(Column, (*players, "payoffs"))), rows)
    data = {
        **table.model_dump(mode="json"),
        "symmetric": game.is_symmetric,
        "equilibria": equilibria,
        "dominated": dominated,
        "dilemma": plays,
    }
    yield Result([shown], verdict=[table.summary] if table.summary else (), objects=[data])
    yield Result((), verdict=lines, objects=())


def _dominance_text(dominated: Sequence[Mapping[str, Any]]) -> str:
    """Iterated elimination in words, by round."""
    rounds: dict[int, list[str]] = {}
    for step in dominated:
        degree = "strictly" if step["strictly"] else "weakly"
        rounds.setdefault(step["round"], []).append(
            f"{step['action']} of player {step['player']} ({degree}, by {step['by']})"
        )
    return f"Dominated actions: {'; then '.join(map(', '.join, rounds.values())) or 'none'}"


def table_named(name: str) -> PayoffTable:
    """A dilemma by its name, or a payoff table from a YAML file."""
    return load_table(Path(name)) if name.endswith((".yaml", ".yml")) else get_dilemma(name)


def _mechanism_facts(name: str) -> Facts:
    [mechanism] = make_mechanisms(name)
    return {"title": mechanism.title, "summary": mechanism.summary}


def _dilemma_facts(name: str) -> Facts:
    table = get_dilemma(name)
    return {"title": table.title, "players": table.players, "summary": table.summary}


MECHANISMS_COMMAND = catalogue(
    "List the cooperation mechanisms, or show one.",
    MECHANISMS,
    _mechanism_facts,
    {
        "show": Command(
            show_mechanism,
            MechanismParams,
            example="labmates mechanisms show contract --game public-goods",
            objects="each",
        ),
    },
    example="labmates mechanisms show reputation",
    objects="each",
)
DILEMMAS_COMMAND = catalogue(
    "List the social dilemmas, or show one.",
    DILEMMAS,
    _dilemma_facts,
    {"show": Command(show_dilemma, Named, example="labmates dilemmas show my-game.yaml", objects="each")},
    example="labmates dilemmas show trust",
    objects="each",
)
