"""One round of a game, parallel plays, and nested mechanisms."""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from labmates.games.base import balanced
from labmates.games.normal_form import NormalForm
from labmates.mechanisms.base import (
    Blank,
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
from labmates.mechanisms.wording import Answer
from labmates.util.seeds import derive


def one_round(game: NormalForm, seats: Seats) -> Play:
    """Ask all players for distributions over their actions, at the same time, and draw from them."""
    sheets = [mixture(game.labels[seat]) for seat in seats.roles]
    answers = yield seats.ask("choose", [seats.words.text("choose")] * len(sheets), sheets)
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
    """Play the game without a final result; see `settled`."""
    log: list[Played | Negotiated] = []
    result = yield from then(game, replace(seats, log=log))
    return Unsettled(result, log)


@dataclass(frozen=True)
class Unsettled:
    """The result of play before gifts and fines, with its log."""

    result: Result
    log: list[Played | Negotiated]


def settled(seats: Seats, played: Unsettled, changes: Sequence[float]) -> Result:
    """Log a play with the gains and losses after it, and return the result.

    Parameters
    ----------
    changes
        Of the payoff of each of `Seats.agents`. They apply to the payoffs of every round, and so to their weighted sum;
        ratings and figures use payoffs after settling.
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
    """The form of a distribution over actions; the fallback is uniform."""
    blanks = tuple(Blank(label, range(101)) for label in labels)
    return Sheet(blanks, dict(zip(labels, balanced(100, len(labels)), strict=True)), total=100)


def side_by_side(plays: Sequence[Play]) -> Generator[list[Question], list[Answer], list[Result]]:
    """The results of several plays, whose questions are asked together."""
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
    """A game's play under mechanisms, the outermost first."""
    then: Then = one_round
    for mechanism in reversed(mechanisms):
        then = partial(_under, mechanism, then)
    return then


@dataclass(frozen=True)
class Calls:
    """Numbers of questions: per match, and once for each model and seat."""

    per_match: int
    shared: int


def calls_of(mechanisms: Sequence[Mechanism], game: NormalForm) -> Calls:
    """The numbers of questions under mechanisms, counted in a match of players who agree on everything.

    Under a mechanism that seats all agents, a match is what it asks the agents of one model.
    """
    agents = tuple(range(game.players))
    match = around(mechanisms)(game, Seats(agents, agents, seed=0))
    per_match, shared = 0, set[str]()
    try:
        questions = next(match)
        while True:
            per_match += sum(not question.shared for question in questions)
            shared |= {question.shared for question in questions if question.shared}
            questions = match.send(list(map(_agreeing, questions)))
    except StopIteration:
        return Calls(per_match, len(shared))


def _agreeing(question: Question) -> Answer:
    if question.stage not in ("propose", "vote", "sign"):
        return question.sheet.fallback
    return {blank.name: blank.allowed is None or blank.allowed[0] for blank in question.sheet.blanks}


def _under(mechanism: Mechanism, then: Then, game: NormalForm, seats: Seats) -> Play:
    return mechanism.play(game, seats, then)


def _draw(mix: Sequence[int], seats: Seats, place: int) -> int:
    rng = random.Random(derive(seats.seed, "draw", seats.step, place))
    return rng.choices(range(len(mix)), weights=mix)[0]


def average(results: Sequence[Result], weights: Sequence[float]) -> Result:
    """The weighted sum of payoffs over plays by the same players, with the actions of the last play."""
    payoffs = np.array(weights) @ np.array([result.payoffs for result in results])
    expected = np.array(weights) @ np.array([result.expected for result in results])
    return Result(tuple(map(float, payoffs)), tuple(map(float, expected)), results[-1].deeds)
