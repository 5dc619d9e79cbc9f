"""Groups in which chat models play repeated games beside strategies written as code.

All groups of a run play round by round: the chat models are asked for their moves, and the strategies choose theirs
from the same history. Moves of strategies follow from the run's seed and the moves of all before, so they are not
recorded as decisions; the payoffs of every round have the moves of all.
"""

from __future__ import annotations

import asyncio
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, Literal

import numpy as np

from labmates.agents.decisions import Form
from labmates.models.orders import Order
from labmates.records.events import DecisionEvent, PayoffEvent
from labmates.stats.validity import MOST_FAILED
from labmates.util.seeds import derive
from labmates.workflows.calls.call import Speaker
from labmates.workflows.play.playing import Table, together
from labmates.workflows.protocol.experiment import Outcome
from labmates.workflows.protocol.services import Services
from labmates_populations.condition import MixedplayCondition
from labmates_populations.engine.workers import Batch, Result, merged
from labmates_populations.playing import Arena, open_arena
from labmates_populations.repeated import Actions, Payoffs, RepeatedGame

KIND = "mixedplay"
"""Kind of the prompts."""
OTHERWISE = "Without a valid answer, D is played for you."


class Move(Form):
    """A player's decision."""

    action: Literal["C", "D"]


async def play(condition: MixedplayCondition, services: Services) -> Outcome:
    """Play all groups, round by round."""
    async with open_arena(condition, services) as arena:
        game, table = condition.make_game(), Table(condition, services)
        actions = np.zeros((condition.groups, 0, game.n_players), bool)
        strategies, results, failed = drawn(arena), list[Result](), 0
        for number in range(1, game.n_rounds + 1):
            decided = await together(
                _ask(table, condition, game, actions[group], group, seat)
                for group in range(condition.groups)
                for seat in range(condition.chats)
            )
            batch = next_moves(arena, game, strategies, actions)
            results += await asyncio.to_thread(arena.play, [batch])
            failed += decided.count(None)
            chosen = np.array([move is not None and move.action == "C" for move in decided])
            coded = results[-1].actions[:, number - 1, 0]
            moves = [each.reshape(condition.groups, 1, -1) for each in (chosen, coded)]
            actions = np.concatenate([actions, np.concatenate(moves, axis=2)], axis=1)
            _record(arena, strategies, actions, game.play(actions))
            await services.recorder.flush()
        errors = merged(results)
        arena.warn_of_errors(errors)
    return _outcome(condition, game, actions, failed, sum(error.count for error in errors.values()))


def drawn(arena: Arena[MixedplayCondition]) -> Actions:
    """The strategies of each group, drawn without replacement as long as there are enough; ``(groups, players)``."""
    condition, members = arena.condition, np.array(sorted(arena.population.names))
    chance, size = np.random.default_rng(derive(arena.services.seed, "strategies")), condition.coded
    return np.array([chance.choice(members, size=size, replace=size > len(members)) for _ in range(condition.groups)])


def next_moves(arena: Arena[MixedplayCondition], game: RepeatedGame, strategies: Actions, before: Actions) -> Batch:
    """The next moves of all strategies: each plays a game whose other moves are fixed, a group for each."""
    condition = arena.condition
    own = before[:, :, condition.chats :].transpose(0, 2, 1).reshape(strategies.size, -1, 1)
    others = np.stack(
        [np.delete(before[group], seat, axis=1) for group in range(len(before)) for seat in _seats(condition)]
    )
    unknown = np.zeros((len(others), 1, game.n_players - 1), bool)
    return Batch(
        game,
        strategies.reshape(-1, 1),
        derive(arena.services.seed, "play", arena.population.digest),
        cooperate=arena.population.cooperate,
        opponents=np.concatenate([others, unknown], axis=1),
        given=own,
    )


def _seats(condition: MixedplayCondition) -> range:
    return range(condition.chats, condition.group_size)


async def _ask(
    table: Table, condition: MixedplayCondition, game: RepeatedGame, before: Actions, group: int, seat: int
) -> Move | None:
    """Ask a chat model for its move, and record it."""
    number = len(before) + 1
    who = Speaker(f"group {group + 1}", f"{group + 1}.{seat + 1}", condition.model)
    step = f"{group + 1}/{number}/{seat + 1}"
    order = order_of_round(condition, game, before, seat)
    move = await table.decide(step, who, [order.human()], Move, name="move", otherwise=OTHERWISE)
    action = "D" if move is None else move.action
    table.recorder.once(
        DecisionEvent(
            step=f"{step}/move",
            team=who.team,
            agent=who.agent,
            stage="decide",
            round=number,
            match=who.team,
            decision={"action": action},
            failed=move is None,
        )
    )
    return move


def order_of_round(condition: MixedplayCondition, game: RepeatedGame, before: Actions, seat: int) -> Order:
    """The request for the next move of a player; `before` are its group's moves, ``(rounds, players)``."""
    payoffs, known = game.course(before[None])
    rounds = [
        {"own": "DC"[int(row[seat])], "others": int(row.sum() - row[seat]), "payoff": f"{paid[seat]:.4g}"}
        for row, paid in zip(before, payoffs[0], strict=True)
    ]
    stocks = [f"{stock[0]:.4g}" for stock in known if stock is not None]
    lines = [
        f"- round {number}: you {each['own']}, {each['others']} of the others C, your payoff {each['payoff']}"
        + (f", stock before it {stocks[number - 1]}" if stocks else "")
        for number, each in enumerate(rounds, 1)
    ]
    if stocks:
        lines.append(f"The stock is now {stocks[-1]}.")
    parameters = {("K" if name == "capacity" else name): value for name, value in game.parameters.items()}
    facts = {"players": game.n_players, "length": game.n_rounds, "rounds": rounds, **parameters}
    text = _prompt("mixedplay").substitute(
        n=game.n_players,
        rounds=game.n_rounds,
        parameters="".join(f", {name} = {value:g}" for name, value in parameters.items()),
        coded=condition.coded,
        game=_prompt(f"game_{game.name}").template.strip(),
        history="\n".join(lines) or "There were none.",
        number=len(rounds) + 1,
    )
    return Order(KIND, facts, text)


@cache
def _prompt(name: str) -> Template:
    return Template(files("labmates_populations").joinpath("prompts", f"{name}.md").read_text("utf-8"))


def _record(arena: Arena[MixedplayCondition], strategies: Actions, played: Actions, payoffs: Payoffs) -> None:
    """Record the payoffs and moves of the last round."""
    condition, number = arena.condition, played.shape[1]
    for group, (actions, paid) in enumerate(zip(played[:, -1], payoffs[:, -1], strict=True)):
        coded = [arena.population.names[int(index)] for index in strategies[group]]
        players = [*[""] * condition.chats, *coded]
        names = [f"{group + 1}.{seat + 1} {player}".rstrip() for seat, player in enumerate(players)]
        arena.services.recorder.once(
            PayoffEvent(
                step=f"{group + 1}/{number}/payoffs",
                match=f"group {group + 1}",
                round=number,
                payoffs=dict(zip(names, map(float, paid), strict=True)),
                details={
                    "players": [*[condition.model] * condition.chats, *coded],
                    "actions": "".join("DC"[int(action)] for action in actions),
                },
            )
        )


def _outcome(condition: MixedplayCondition, game: RepeatedGame, played: Actions, failed: int, errors: int) -> Outcome:
    chats, rounds, payoffs = condition.chats, played.shape[0] * played.shape[1], game.play(played)
    metrics: dict[str, Any] = {
        "chat_cooperation": played[:, :, :chats].mean(),
        "code_cooperation": played[:, :, chats:].mean(),
        "chat_payoff": payoffs[:, :, :chats].mean(),
        "code_payoff": payoffs[:, :, chats:].mean(),
        "efficiency": game.efficiency(float(payoffs.mean())),
        "failed_decision_rate": failed / (rounds * chats),
        "error_rate": errors / (rounds * condition.coded),
    }
    rates = {"chat models": metrics["failed_decision_rate"], "strategies": metrics["error_rate"]}
    faults = [f"{rate:.0%} of the decisions of {who} failed" for who, rate in rates.items() if rate > MOST_FAILED]
    why = f"{' and '.join(faults)} (at most {MOST_FAILED:.0%} may)" if faults else None
    return Outcome("completed", {name: float(value) for name, value in metrics.items()}, why)
