"""Conformance check of mechanisms: `check_mechanism`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from labmates.games.dilemmas import DILEMMAS, get_dilemma
from labmates.games.normal_form import NormalForm, find_dilemma
from labmates.mechanisms.base import STAGES, Mechanism, Negotiated, Played, Question, Result, Seats, Sheet
from labmates.mechanisms.play import around, calls_of
from labmates.mechanisms.repetition import Repeated
from labmates.mechanisms.theorem import follow
from labmates.mechanisms.wording import OURS, Answer, Wording
from labmates_author.trial import faults

Respond = Callable[[Question], Answer]

_PLAYS = 20
_PLACES = 12
"""Number of questions at which deviations from the theorem's strategy are tried."""
_TOLERANCE = 1e-9
_COPIES = 2
"""Number of models if a mechanism assigns seats."""


def check_mechanism(
    mechanism: Mechanism | Sequence[Mechanism], games: Mapping[str, NormalForm] | None = None, *, seed: int = 0
) -> list[str]:
    """The faults of a mechanism, or of nested mechanisms, the outermost first.

    Checked in each game: that fallbacks fit their forms, and that `calls` is the number of questions; that equal seeds
    give equal plays; that the weights of plays sum to 1; that payoffs of a round add up to the sum of some play of the
    game, or less if a mechanism `burns`; that players who ignore the mechanism get the payoffs of the game without it,
    unless it is not `ignorable`; and, if all claim it (`is_theorem`), that the strategy of theorem 1 gets the
    cooperative payoff, and that single deviations at random places gain nothing.

    Parameters
    ----------
    games
        By name; by default the built-in dilemmas that it fits.
    seed
        Of the random plays.

    Returns
    -------
    list of str
        One line per problem.
    """
    parts = _parts(mechanism)
    if games is None:
        games = {name: get_dilemma(name).game() for name in DILEMMAS.names() if DILEMMAS.is_own(name)}
    return [
        f"{name}: {fault}"
        for name, game in games.items()
        for check, what in _CHECKS.items()
        for fault in faults(what, check, parts, game, seed)
    ]


def untested(mechanism: Mechanism | Sequence[Mechanism], games: Mapping[str, NormalForm]) -> list[str]:
    """A line for each game in which a claimed theorem can't be tested."""
    if not all(part.is_theorem for part in _parts(mechanism)):
        return []
    return [
        f"{name}: the theorem is not tested: no play is better for all than an equilibrium in pure strategies"
        for name, game in games.items()
        if find_dilemma(game) is None
    ]


def _parts(mechanism: Mechanism | Sequence[Mechanism]) -> Sequence[Mechanism]:
    return [mechanism] if isinstance(mechanism, Mechanism) else mechanism


def _copies(parts: Sequence[Mechanism]) -> int:
    """Number of models per seat."""
    return _COPIES if any(part.seats_itself for part in parts) else 1


def play_with(
    mechanism: Mechanism | Sequence[Mechanism],
    game: NormalForm,
    respond: Respond,
    *,
    seed: int = 0,
    words: Wording = OURS,
) -> tuple[Result, list[Played | Negotiated], list[Question]]:
    """The result, the log and all questions of a play under a mechanism, with answers from `respond`.

    A mechanism that assigns seats has two agents for each seat.

    Raises
    ------
    ValueError
        If an answer is invalid for its form.
    """
    parts = _parts(mechanism)
    agents = tuple(range(game.players * _copies(parts)))
    log: list[Played | Negotiated] = []
    seats = Seats(agents, tuple(agent % game.players for agent in agents), seed, log=log, words=words)
    play = around(parts)(game, seats)
    asked: list[Question] = []

    def answered(question: Question) -> Answer:
        answer = respond(question)
        is_given = answer != question.sheet.fallback  # fallbacks may have values that the form does not allow
        if is_given and (fault := fault_of(question.sheet, answer)):
            raise ValueError(f"the answer {dict(answer)} at '{question.step}' is not allowed: {fault}")
        return answer

    try:
        questions = next(play)
        while True:
            asked += questions
            questions = play.send([answered(question) for question in questions])
    except StopIteration as end:
        return end.value, log, asked


def fault_of(sheet: Sheet, answer: Answer) -> str | None:
    """The fault of an answer that its form does not allow; None for a valid one."""
    names = [blank.name for blank in sheet.blanks]
    if set(answer) != set(names):
        return f"it must answer {', '.join(names)}, not {', '.join(answer) or 'nothing'}"
    for blank in sheet.blanks:
        value, allowed = answer[blank.name], blank.allowed
        if not (isinstance(value, bool) if allowed is None else value in allowed):
            bounds = f" (from {allowed[0]} to {allowed[-1]})" if isinstance(allowed, range) else ""
            return f"{blank.name} can't be {value!r}{bounds}"
    if sheet.total is not None and sum(answer.values()) != sheet.total:
        return f"its numbers add up to {sum(answer.values())}, not {sheet.total}"
    return None


def random_answer(question: Question, rng: random.Random) -> Answer:
    """A random valid answer."""
    sheet = question.sheet
    if sheet.total is not None:
        cuts = sorted(rng.randint(0, sheet.total) for _ in sheet.blanks[1:])
        parts = [end - start for start, end in zip([0, *cuts], [*cuts, sheet.total], strict=True)]
        return {blank.name: part for blank, part in zip(sheet.blanks, parts, strict=True)}
    return {
        blank.name: rng.random() < 0.5 if blank.allowed is None else rng.choice(blank.allowed) for blank in sheet.blanks
    }


def _asks_well(parts: Sequence[Mechanism], game: NormalForm, seed: int) -> Iterator[str]:
    for part in parts:
        part.check(game)
        if not isinstance(part.rules(game), str):
            yield f"the rules of {part.name} must be text"
    rng = random.Random(seed)
    _, _, asked = play_with(parts, game, lambda question: random_answer(question, rng), seed=seed)
    names = [(question.step, question.agent) for question in asked]
    if len(set(names)) < len(names):
        yield "two questions to the same player have the same step"
    for question in asked:
        if question.stage not in STAGES:
            yield f"unknown stage '{question.stage}'; the stages are {', '.join(STAGES)}"
            return
        known = {blank.name for blank in question.sheet.blanks}
        if question.sheet.fallback and set(question.sheet.fallback) != known:
            yield f"the fallback of '{question.stage}' does not fit its form"
            return
    calls = calls_of(parts, game)
    expected = calls.per_match * _copies(parts) + sum(bool(question.shared) for question in asked)
    if len(asked) != expected:
        yield f"{expected} questions were counted beforehand, but {len(asked)} were asked"


def _keeps_points(parts: Sequence[Mechanism], game: NormalForm, seed: int) -> Iterator[str]:
    sums = game.payoffs.sum(axis=-1)
    low, high = float(sums.min()), float(sums.max())
    for number in range(_PLAYS if not any(isinstance(part, Repeated) for part in parts) else 2):
        plays = []
        for _ in range(2):
            rng = random.Random(seed + number)
            plays.append(play_with(parts, game, lambda asked, rng=rng: random_answer(asked, rng), seed=number))  # type: ignore[misc]
        (result, log, _), (again, _, _) = plays
        if result != again:
            yield "equal seeds and answers give different results"
        rounds = [entry for entry in log if isinstance(entry, Played)]
        weights, totals = np.zeros((2, len(result.payoffs)))
        least = -np.inf if any(part.burns for part in parts) else low
        for round_ in rounds:
            if not least - _TOLERANCE <= sum(round_.payoffs) <= high + _TOLERANCE:
                yield f"points are created or lost: no play of the game has the sum of the payoffs {round_.payoffs}"
                return
            agents = list(round_.agents)
            weights[agents] += round_.weight
            totals[agents] += round_.weight * np.array(round_.payoffs)
        if not np.allclose(weights, 1.0, rtol=0, atol=_TOLERANCE):
            yield f"the weights of a player's rounds sum to {weights[0]:g}, not 1"
            return
        if not np.allclose(totals, result.payoffs, rtol=0, atol=_TOLERANCE):
            yield "the result is not the sum of its rounds"
            return


def _can_be_ignored(parts: Sequence[Mechanism], game: NormalForm, seed: int) -> Iterator[str]:
    """Compare the game itself with play in which all take the last action, approve of nothing and sign nothing."""
    if not all(part.ignorable for part in parts):
        return
    last = tuple(len(labels) - 1 for labels in game.labels)
    rng = random.Random(seed)

    def ignore(question: Question) -> Answer:
        if question.stage == "propose":
            return random_answer(question, rng)
        if question.stage == "choose":
            last_label = game.labels[question.seat][-1]
            return {blank.name: 100 if blank.name == last_label else 0 for blank in question.sheet.blanks}
        return question.sheet.fallback

    result, _, _ = play_with(parts, game, ignore, seed=seed)
    wanted = np.resize(game.table[last], len(result.payoffs))
    if not np.allclose(result.payoffs, wanted, rtol=0, atol=_TOLERANCE):
        got, without = (tuple(map(float, payoffs)) for payoffs in (result.payoffs, wanted))
        yield (
            f"players who ignore the mechanism get {got}, but {without} without it; set ignorable = False if it "
            "changes what actions pay"
        )


def _is_equilibrium(parts: Sequence[Mechanism], game: NormalForm, seed: int) -> Iterator[str]:
    dilemma = find_dilemma(game)
    if dilemma is None or not all(part.is_theorem for part in parts):
        return

    def loyal(question: Question) -> Answer:
        for part in parts:
            if (answer := part.follow(game, question)) is not None:
                return answer
        view = game.seen_by(question.seat)
        return follow(view, question.stage, question.facts, question.seat, question.sheet)

    result, _, asked = play_with(parts, game, loyal, seed=seed)
    wanted = np.resize(game.table[dilemma.cooperate], len(result.payoffs))
    if not np.allclose(result.payoffs, wanted, rtol=0, atol=_TOLERANCE):
        yield f"the theorem's strategy gets {result.payoffs}, not {tuple(map(float, wanted))}"
        return
    rng = random.Random(seed)
    last_round = max(question.round for question in asked)
    # The last round represents all later ones, in which no player can answer a deviation.
    places = [question for question in asked if not question.round or question.round < last_round]
    for question in rng.sample(places, min(_PLACES, len(places))):
        for other in _deviations(question, rng):

            def deviate(asked: Question, place: Question = question, other: Answer = other) -> Answer:
                return other if (asked.step, asked.agent) == (place.step, place.agent) else loyal(asked)

            gained, _, _ = play_with(parts, game, deviate, seed=seed)
            before, after = result.payoffs[question.agent], gained.payoffs[question.agent]
            if after > before + _TOLERANCE:
                yield f"a player gains by answering {dict(other)} at '{question.step}': {after:g} instead of {before:g}"
                return


def _deviations(question: Question, rng: random.Random) -> Iterator[Answer]:
    """A player's alternative answers: every pure action, every yes, no or choice, and a few other designs."""
    names = [blank.name for blank in question.sheet.blanks]
    if question.stage == "choose":
        yield from ({name: 100 if name == chosen else 0 for name in names} for chosen in names)
    elif question.stage in ("vote", "sign"):
        choices = question.sheet.blanks[0].allowed or (True, False)
        yield from (dict.fromkeys(names, choice) for choice in choices)
    else:
        yield from (random_answer(question, rng) for _ in range(3))


_CHECKS: dict[Any, str] = {
    _asks_well: "asking",
    _keeps_points: "counting points",
    _can_be_ignored: "ignoring the mechanism",
    _is_equilibrium: "the theorem's strategy",
}
