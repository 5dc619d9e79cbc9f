"""No strategy changes another's moves, payoffs or randomness, and nothing of it outlives its game."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from labmates_populations.engine.workers import Batch, Errors, Result, Workers, chunks
from labmates_populations.repeated import make_repeated
from tests.populations.engine.attacks import ATTACKS, CHANCE, REFUSED, UNGUARDED_HELP, attack, unguarded
from tests.support.strategies import HEAD, strategy

GAME = make_repeated("public-goods", 6, 3)
NEIGHBOURS = (
    strategy("SECRET = 'SECRET'\nreturn C", name="Strategy_COLLECTIVE_1"),
    strategy("return C if hash('a') else type(self)", name="Strategy_COLLECTIVE_2"),
    strategy("return C if random.random() < 0.5 else D", name="Strategy_SELFISH_3"),
    strategy("return C if random.Random(random.random()).random() < 0.5 else D", name="Strategy_SELFISH_4"),
)
"""Compiled and ordinary ones; none minds what others do."""
DEFECT = strategy("return D", name="Strategy_SELFISH_5")


@dataclass(frozen=True)
class Played:
    """What came of all attacks: each in a group of two of it and its neighbours."""

    actions: dict[str, np.ndarray]
    errors: dict[str, Errors]
    honest: np.ndarray


def play_all(processes: int, chosen: dict[str, str], help: str = "") -> Played:
    with Workers(processes=processes, seconds=0.2, memory=128 << 20) as workers:
        neighbours = [one.index for one in workers.load("neighbours.py", HEAD + "".join(NEIGHBOURS))]
        text = HEAD + "".join(attack(number, body, help) for number, body in enumerate(chosen.values()))
        loaded = workers.learn(unguarded(text)) if help else workers.load("attacks.py", text)
        attacks = [one.index for one in loaded]
        [defect] = [one.index for one in workers.load("defect.py", HEAD + DEFECT)]
        assert not [one.problems for one in workers.loaded if one.problems]
        groups = np.array([[*neighbours, one, one] for one in attacks])
        parts: list[Result] = workers.play(list(chunks(Batch(GAME, groups, seed=3), 60)))
        groups[:, 4:] = defect
        [honest] = workers.play([Batch(GAME, groups, seed=3)])
    actions = np.concatenate([part.actions for part in parts])
    errors = {index: error for part in parts for index, error in part.errors.items()}
    names = list(chosen)
    return Played(
        {name: actions[number] for number, name in enumerate(names)},
        {name: errors[index] for name, index in zip(names, attacks, strict=True) if index in errors},
        honest.actions,
    )


UNGUARDED = {name: body for name, body in ATTACKS.items() if not name.startswith(("state", "chance"))
             and name not in ("leaks: other players of its class", "leaks: beyond its history")}  # fmt: skip
"""What the process alone must withstand: in it, players of one strategy can find each other."""
NOT_NAMED = {
    "escape: runs a command", "exhaustion: a deep tuple", "exhaustion: memory for the game", "exhaustion: closes all",
    "exhaustion: much in each round", "exhaustion: much in each round of its own process",
    "exhaustion: much in three rounds", "exhaustion: an end that is slow",
}  # fmt: skip
"""What does nothing, or may be done by a player in its own process."""


@pytest.mark.parametrize(("chosen", "help"), [(ATTACKS, ""), (UNGUARDED, UNGUARDED_HELP)], ids=["guarded", "not"])
def test_no_attack_changes_anybody_else_or_gets_what_it_is_after_and_all_are_named(
    chosen: dict[str, str],
    help: str,
) -> None:
    assert len(ATTACKS) + len(REFUSED) >= 120
    played = play_all(2, chosen, help)
    wrong = []
    for number, name in enumerate(chosen):
        actions, honest = played.actions[name], played.honest[number]
        kind = name.partition(":")[0]
        if not np.array_equal(actions[:, :4], honest[:, :4]):
            wrong.append(f"{name}: others do something else")
        if kind != "chance" and actions[:, 4:].any():
            wrong.append(f"{name}: it has got what it was after")
        if kind in ("escape", "exhaustion") and name not in played.errors and name not in NOT_NAMED:
            wrong.append(f"{name}: nobody is told")
    assert not wrong, wrong
    assert not Path("/tmp/labmates-attack").exists()


def test_chance_is_the_same_in_another_session_with_other_processes() -> None:
    chosen = {f"chance: {name}": body for name, body in CHANCE.items()}
    first, second = play_all(1, chosen), play_all(2, chosen)
    for name in chosen:
        assert np.array_equal(first.actions[name], second.actions[name]), name


@pytest.fixture(scope="module")
def reader() -> Iterator[Workers]:
    with Workers(processes=1) as workers:
        yield workers


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_is_refused_before_anything_of_it_runs(reader: Workers, body: str) -> None:
    [found] = reader.load("test.py", HEAD + strategy(body))
    assert found.problems
    assert found.problems[0].startswith("line ")
