"""Strategies that read each other's code: what they read, and a known program equilibrium."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labmates_populations.engine.behaviour import behaviours
from labmates_populations.engine.checks import check_strategies
from labmates_populations.engine.match import play_match
from labmates_populations.engine.workers import Batch, Workers
from labmates_populations.repeated import make_repeated
from tests.populations.engine.conftest import Play
from tests.support.strategies import HEAD, strategy, write

TWINS = "mine = self.game_description.own_source\nreturn C if {test} else D"
CLIQUE = TWINS.format(test="all(text == mine for text in self.game_description.opponent_sources)")
OF_THEIR_OWN = f"import itertools\n{CLIQUE}"
RULES = {"k": 1.5, "sources": 1}


@pytest.mark.parametrize("body", [CLIQUE, OF_THEIR_OWN])
def test_who_cooperates_with_its_own_text_is_in_equilibrium(workers: Workers, tmp_path: Path, body: str) -> None:
    # Tennenholtz 2004: with whoever has my text I cooperate, which no one-sided deviation improves on.
    clique = f"{write(tmp_path, strategy(body), file='one.py')}:Strategy_SELFISH_1"
    renamed = f"{write(tmp_path, strategy(body, name='Strategy_COLLECTIVE_9'), file='two.py')}:Strategy_COLLECTIVE_9"
    nearly = f"{write(tmp_path, strategy(body + '  # not the same'), file='three.py')}:Strategy_SELFISH_1"
    game = make_repeated("public-goods", 2, 1, RULES)

    def earned(*players: str) -> list[float]:
        match = play_match(workers, game, players)
        assert not match.errors
        return list(match.payoffs[0])

    assert earned(clique, renamed) == [1.5, 1.5]
    for other in (nearly, "reference:cooperate", "reference:defect", "reference:random-0.5"):
        own, deviating = earned(clique, other)
        assert own >= 1
        assert deviating < 1.5


def test_each_player_reads_the_texts_of_its_own_group(workers: Workers) -> None:
    reads = "texts = self.game_description.opponent_sources\nreturn C if {test} else D"
    named = [
        strategy(reads.format(test="'return C' in texts[0] and 'marked' in texts[1]"), name="Strategy_SELFISH_1"),
        strategy("return C", name="Strategy_SELFISH_2"),
        strategy("marked = 1\nreturn D", name="Strategy_SELFISH_3"),
        strategy(reads.format(test="texts == ('', '')"), name="Strategy_SELFISH_4"),
    ]
    reader, plain, marked, unread = (one.index for one in workers.load("test.py", HEAD + "".join(named)))
    game = make_repeated("public-goods", 3, 2, {"sources": 1})
    groups = np.array([[reader, plain, marked], [plain, reader, marked], [marked, plain, reader]])
    for numbers in (None, np.array([7, 8, 11])):
        actions = workers.play([Batch(game, groups, 0, numbers)])[0].actions
        assert actions[:, 0].tolist() == [[True, True, False], [True, True, False], [False, True, False]]
    alone = Batch(game, np.array([[unread]]), 0, opponents=np.ones((1, 2, 2), bool))
    silent = Batch(replace(game, sources=False), np.array([[unread, plain, marked]]), 0)
    assert all(result.actions[0, :, 0].all() for result in workers.play([alone, silent]))
    [behaviour] = behaviours(
        game, workers.play, [unread], features="counts", random={unread: False}, cooperate=frozenset()
    )
    assert behaviour.rates.all()


def test_a_text_is_read_and_never_executed(workers: Workers, play: Play) -> None:
    runs = strategy("exec(self.game_description.opponent_sources[0])\nreturn C")
    [loaded] = workers.load("test.py", HEAD + runs)
    assert loaded.problems
    [checked] = check_strategies(workers, "public-goods", workers.load("test.py", HEAD + strategy(CLIQUE)))
    assert not checked.problems
    assert checked.deterministic
    hostile = strategy('return C  # \'); raise SystemExit  \\u0000 """')
    result, _ = play(strategy(CLIQUE), hostile, rules=RULES, rounds=2)
    assert result.actions[0].tolist() == [[False, True]] * 2
