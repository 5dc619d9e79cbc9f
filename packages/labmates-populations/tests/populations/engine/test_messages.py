"""A message of a strategy's process is either well formed in every field or its strategy's fault."""

from __future__ import annotations

import json
import math
import random
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from labmates_populations.engine.kernel.hosts import Answers, read_answers
from labmates_populations.engine.kernel.players import FAILED

ASKED, ACTIONS, ROUND = 3, 2, 4
MOVES = bytes([1, FAILED, 0])
FAILURE = {"index": 1, "round": 4, "what": "ValueError", "over": False, "spent": False, "memory": False}
TOLD = {"failures": [FAILURE], "seconds": 0.25}
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 5, -2, 10**6, 10**400, 0.5, -0.5, 1e300, math.inf, -math.inf, math.nan, "", "1",
    "\ud800", "x" * 10**5, [], [1], {}, {"index": 1}, [FAILURE], [FAILURE] * 2, [FAILURE] * 20_000,
)  # fmt: skip


def _message(told: Any, moves: bytes = MOVES) -> bytes:
    text = told if isinstance(told, bytes) else json.dumps(told).encode()
    return struct.pack("<QQ", len(text), len(moves)) + text + moves


def _changed() -> Iterator[bytes]:
    """Messages that differ from a good one in a field, in the moves, or in some bytes."""
    for value in VALUES:
        yield _message(value)
        yield from (_message({**TOLD, name: value}) for name in (*TOLD, "own"))
        yield from (_message({**TOLD, "failures": [{**FAILURE, name: value}]}) for name in (*FAILURE, "more"))
    for name in TOLD:
        yield _message({key: value for key, value in TOLD.items() if key != name})
    for name in FAILURE:
        yield _message({**TOLD, "failures": [{key: value for key, value in FAILURE.items() if key != name}]})
    for moves in (b"", b"\1", MOVES * 2, bytes([1, 0, 0]), bytes([FAILED] * 3), bytes([1, FAILED, 2])):
        yield _message(TOLD, moves)
    yield from (
        _message(b"[" * 10**6),
        _message(b'{"failures":' + b"[" * 10**5),
        _message(b"\xff\xfe"),
        b"",
        b"\0" * 16,
    )
    chance, good = random.Random(0), _message(TOLD)
    for _ in range(400):
        bad = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            bad[chance.randrange(len(bad))] = chance.randrange(256)
        yield bytes(bad)


def _holds(answers: Answers) -> bool:
    failed = [one.index for one in answers.failures]
    return (
        len(answers.moves) == ASKED
        and all(move in (0, 1, FAILED) for move in answers.moves)
        and failed == [index for index, move in enumerate(answers.moves) if move == FAILED]
        and all(type(one.round) is int and -1 <= one.round <= ROUND for one in answers.failures)
        and all({type(one.over), type(one.spent), type(one.memory)} == {bool} for one in answers.failures)
        and all(len(one.what.encode()) <= 800 for one in answers.failures)
        and 0 <= answers.seconds < 1e7
    )


def test_what_is_read_is_well_formed_whatever_is_sent() -> None:
    assert _holds(read_answers(_message(TOLD), ASKED, ACTIONS, ROUND))
    read = 0
    for message in _changed():
        try:
            answers = read_answers(message, ASKED, ACTIONS, ROUND)
        except Exception:
            continue
        assert _holds(answers), message[:200]
        read += 1
    assert read > 20


@pytest.mark.parametrize(
    "told",
    [
        {**TOLD, "failures": [FAILURE, FAILURE]},
        {**TOLD, "failures": []},
        {**TOLD, "failures": [{**FAILURE, "round": 10**6}]},
        {**TOLD, "failures": [{**FAILURE, "round": -2}]},
        {**TOLD, "failures": [{**FAILURE, "index": math.inf}]},
        {**TOLD, "failures": [{**FAILURE, "over": 1}]},
        {**TOLD, "seconds": math.nan},
        {**TOLD, "seconds": 10**400},
        {**TOLD, "seconds": 2e6},
    ],
)
def test_forged_numbers_are_refused(told: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        read_answers(_message(told), ASKED, ACTIONS, ROUND)
