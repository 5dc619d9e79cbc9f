"""Descriptions of a dilemma for a player: as facts and, in each wording, as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from labmates.games.base import counted
from labmates.games.normal_form import NormalForm
from labmates.games.payoff_table import Claims, PayoffTable, Pool
from labmates.workflows.play.wordings import Wording

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class Description:
    """The values of a wording's text on the game, with the facts behind them."""

    values: Mapping[str, object]
    facts: Facts


def ours(table: PayoffTable, seat: int, *, is_reversed: bool = False) -> Description:
    """The game as a table of all combinations, from a player's view, optionally with actions in reverse."""
    game = table.game()
    names = _others(game, seat)
    heads = ["you", *names, "your points", *(f"points of {name}" for name in names)]
    rows = payoff_rows(game, seat)
    step = -1 if is_reversed else 1
    text = "\n".join(map(_row, [heads, ["---"] * len(heads), *rows[::step]]))
    return Description({"actions": ", ".join(game.labels[seat][::step]), "payoffs": text}, {"table": rows})


def paper(table: PayoffTable, seat: int, *, is_reversed: bool = False) -> Description:
    """The game in sentences: one for each combination, or its formula; optionally with actions in reverse."""
    game, step = table.game(), -1 if is_reversed else 1
    lines, facts = _payoffs_in_words(table, seat)
    actions: Sequence[str] = game.labels[seat]
    if table.formula is not None and table.formula.kind == "claims":
        numbers = zip(actions, table.actions[seat], strict=True)
        actions = [f"{label}: stands for the number {number}" for label, number in numbers]
    listed = "\n".join(f"- {action}" for action in actions[::step])
    payoffs = "\n".join(lines[::step] if "table" in facts else lines)
    return Description({"actions": listed, "payoffs": payoffs}, facts)


DESCRIPTIONS: Mapping[Wording, Callable[..., Description]] = {"ours": ours, "paper": paper}
"""The description of a table from a seat, by wording."""


def payoff_rows(game: NormalForm, seat: int) -> list[list[str]]:
    """The game from a player's view: a row per profile, with all actions and then all points."""
    view = game.seen_by(seat)
    return [
        [
            *(labels[action] for labels, action in zip(view.labels, profile, strict=True)),
            *map(_number, view.payoffs[profile]),
        ]
        for profile in view.profiles()
    ]


def _payoffs_in_words(table: PayoffTable, seat: int) -> tuple[list[str], Facts]:
    """The lines on payoffs, and the facts behind them."""
    game = table.game()
    match table.formula:
        case Pool() as pool:
            gives, keeps = game.labels[0]
            factor, kept = _number(pool.factor), _number(pool.kept)
            facts = {"gives": gives, "keeps": keeps, "factor": factor, "kept": kept, "players": game.players}
            lines = [
                f"Let k be the number of players, of all {game.players}, who play {gives}.",
                f"- A player who plays {gives} gets {factor} × k / {game.players} points.",
                f"- A player who plays {keeps} gets {kept} + ({factor} × k / {game.players}) points.",
            ]
            return lines, {"pool": facts}
        case Claims() as claims:
            bonus = _number(claims.bonus)
            numbers = dict(zip(game.labels[0], table.actions[0], strict=True))
            lines = [
                "Let X be the number that you choose, and Y the number of the other player.",
                "- If X = Y: you get X points, and the other player as many.",
                f"- If X < Y: you get X + {bonus} points, and the other player X - {bonus}.",
                f"- If X > Y: you get Y - {bonus} points, and the other player Y + {bonus}.",
            ]
            return lines, {"claims": {"numbers": numbers, "bonus": bonus}}
    rows = payoff_rows(game, seat)
    names = _others(game, seat)
    return [_sentence(row, names) for row in rows], {"table": rows}


def _others(game: NormalForm, seat: int) -> list[str]:
    """Names of the other players; that of a single one does not depend on the seat."""
    if game.players == 2:
        return ["the other player"]
    return [f"player {other + 1}" for other in range(game.players) if other != seat]


def _sentence(row: Sequence[str], others: Sequence[str]) -> str:
    (action, *actions), (points, *theirs) = row[: len(others) + 1], row[len(others) + 1 :]
    chosen = " and ".join(f"{name} chooses {label}" for name, label in zip(others, actions, strict=True))
    got = ", ".join(f"{name} gets {counted(number, 'point')}" for name, number in zip(others, theirs, strict=True))
    return f"- If you choose {action} and {chosen}: you get {counted(points, 'point')}, {got}."


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: Fraction) -> str:
    text = f"{float(value):g}"
    return text if Fraction(text) == value else str(value)


def read_rows(facts: Facts) -> list[list[str]]:
    """The rows of `payoff_rows`, from facts in any of their forms."""
    if pool := facts.get("pool"):
        formula: Pool | Claims = Pool(factor=pool["factor"], kept=pool["kept"])
        return _formula_rows([pool["gives"], pool["keeps"]], [pool["gives"], pool["keeps"]], pool["players"], formula)
    if claims := facts.get("claims"):
        labels, numbers = list(claims["numbers"]), list(claims["numbers"].values())
        return _formula_rows(labels, numbers, 2, Claims(bonus=claims["bonus"]))
    rows: list[list[str]] = facts["table"]
    return rows


def _formula_rows(
    labels: Sequence[str], actions: Sequence[str], players: int, formula: Pool | Claims
) -> list[list[str]]:
    return [
        [
            *(labels[action] for action in profile),
            *map(_number, formula.payoffs(actions, [actions[action] for action in profile])),
        ]
        for profile in product(range(len(labels)), repeat=players)
    ]
