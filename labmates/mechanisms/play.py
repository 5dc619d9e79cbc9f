"""One round of a game, several plays side by side, and mechanisms around each other."""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from labmates.games.base import balanced
from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import (
    Answer,
    Blank,
    Calls,
    Mechanism,
    Negotiated,
    Play,
    Played,
    Question,
    Result,
    Seats,
    Sheet,
    Then,
)
from labmates.seeds import derive


def one_round(game: NormalForm, seats: Seats) -> Play:
    """Let everybody hand in a distribution over its actions, at the same time, and draw from them."""
    sheets = [mixture(game.labels[seat]) for seat in seats.roles]
    answers = yield seats.ask("choose", [seats.words.choice()] * len(sheets), sheets)
    labels = [game.labels[seat] for seat in seats.roles]
    mixes = [tuple(int(answer[label]) for label in own) for own, answer in zip(labels, answers, strict=True)]
    drawn = [_draw(mix, seats, place) for place, mix in enumerate(mixes)]
    actions = tuple(own[action] for own, action in zip(labels, drawn, strict=True))
    payoffs = tuple(map(float, game.table[tuple(drawn)]))
    expected = tuple(map(float, game.expected([[share / 100 for share in mix] for mix in mixes])))
    step = f"{seats.step}play"
    seats.log.append(Played(step, seats.round, seats.agents, tuple(mixes), actions, payoffs, expected, seats.weight))
    return Result(payoffs, expected, actions)


def before_settling(game: NormalForm, seats: Seats, then: Then) -> Generator[list[Question], list[Answer], Unsettled]:
    """Have the game played, and hold its result back until it is settled (`settled`)."""
    log: list[Played | Negotiated] = []
    result = yield from then(game, replace(seats, log=log))
    return Unsettled(result, log)


@dataclass(frozen=True)
class Unsettled:
    """The outcome of play before gifts and fines, with its events."""

    result: Result
    log: list[Played | Negotiated]


def settled(seats: Seats, played: Unsettled, changes: Sequence[float]) -> Result:
    """Record what was played with what players got or lost after it, and return the result.

    Parameters
    ----------
    changes
        Of the payoff of each of `Seats.agents`. The payoffs of every round change by it, so that their weighted sum
        does; ratings and figures are of payoffs after settling.
    """
    by_agent = dict(zip(seats.agents, changes, strict=True))

    def changed(agents: Sequence[int], payoffs: Sequence[float]) -> tuple[float, ...]:
        return tuple(payoff + by_agent[agent] for agent, payoff in zip(agents, payoffs, strict=True))

    for entry in played.log:
        if isinstance(entry, Played):
            payoffs, expected = changed(entry.agents, entry.payoffs), changed(entry.agents, entry.expected)
            entry = replace(entry, payoffs=payoffs, expected=expected)
        seats.log.append(entry)
    result = played.result
    payoffs, expected = changed(seats.agents, result.payoffs), changed(seats.agents, result.expected)
    return Result(payoffs, expected, result.deeds)


def mixture(labels: Sequence[str]) -> Sheet:
    """The form of a distribution over actions; who hands in none takes all as likely."""
    blanks = tuple(Blank(label, range(101)) for label in labels)
    return Sheet(blanks, dict(zip(labels, balanced(100, len(labels)), strict=True)), total=100)


def side_by_side(plays: Sequence[Play]) -> Generator[list[Question], list[Answer], list[Result]]:
    """Ask the questions of several plays together, and return their results in order."""
    results: dict[int, Result] = {}
    pending: dict[int, list[Question]] = {}

    def advance(number: int, answers: list[Answer] | None) -> None:
        play = plays[number]
        try:
            pending[number] = next(play) if answers is None else play.send(answers)
        except StopIteration as end:
            results[number] = end.value
            pending.pop(number, None)

    for number in range(len(plays)):
        advance(number, None)
    while pending:
        asked = list(pending.items())
        answers = yield [question for _, questions in asked for question in questions]
        place = 0
        for number, questions in asked:
            advance(number, answers[place : place + len(questions)])
            place += len(questions)
    return [results[number] for number in range(len(plays))]


def around(mechanisms: Sequence[Mechanism]) -> Then:
    """A game's play under mechanisms, the first of which is the outermost."""
    then: Then = one_round
    for mechanism in reversed(mechanisms):
        then = partial(_under, mechanism, then)
    return then


def calls_of(mechanisms: Sequence[Mechanism], game: NormalForm) -> Calls:
    """The numbers of questions of a match under mechanisms."""
    calls = Calls(game.players)
    for mechanism in reversed(mechanisms):
        calls = mechanism.calls(game, calls)
    return calls


def _under(mechanism: Mechanism, then: Then, game: NormalForm, seats: Seats) -> Play:
    return mechanism.play(game, seats, then)


def _draw(mix: Sequence[int], seats: Seats, place: int) -> int:
    rng = random.Random(derive(seats.seed, "draw", seats.step, place))
    return rng.choices(range(len(mix)), weights=mix)[0]
