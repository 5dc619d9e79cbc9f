"""Games of named actions: what strategies see, what they may answer, and that both ways of playing agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from labmates.errors import UsageError
from labmates.registry import Registry
from labmates_populations import count_payoffs
from labmates_populations.condition import EvolutionCondition, game_of
from labmates_populations.engine.behaviour import situations
from labmates_populations.engine.checks import check_strategies, opponents
from labmates_populations.engine.match import play_match
from labmates_populations.engine.workers import Batch, Workers
from labmates_populations.repeated import make_repeated
from tests.populations.engine.conftest import Play
from tests.support.strategies import HEAD, library, strategy, write

ROCK = {"actions": ["rock", "paper", "scissors"], "table": [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]}
NAMED: dict[str, Any] = {"game": "by-action", "rules": ROCK}
BEATS = "return 0 if history.round_number == 0 else (int(np.argmax(history.opponent_counts[-1])) + 1) % 3"
SEES = """
ok = (
    history.my_actions.dtype == np.int64 and history.opponent_counts.shape == (history.round_number, 3)
    and len(history.my_payoffs) == history.round_number and not history.opponent_counts.flags.writeable
    and self.game_description.actions == ("rock", "paper", "scissors")
)
return 1 if ok else 0
"""


def test_strategies_see_the_numbers_of_actions_and_how_many_others_took_each(play: Play) -> None:
    result, batch = play(strategy(BEATS), strategy("return history.round_number % 3"), rounds=6, **NAMED)
    assert not result.errors
    assert result.actions[0].T.tolist() == [[0, 1, 2, 0, 1, 2], [0, 1, 2, 0, 1, 2]]
    alone = strategy(f"import itertools\n{BEATS}")
    repeated, _ = play(alone, strategy("return 2"), rounds=4, **NAMED)
    assert repeated.actions[0].T.tolist() == [[0, 0, 0, 0], [2, 2, 2, 2]]
    assert batch.game.play(repeated.actions)[0, :, 0].tolist() == [1, 1, 1, 1]
    for body in (SEES, f"import itertools\n{SEES}"):
        assert play(strategy(body), strategy("return 0"), rounds=3, **NAMED)[0].actions[0, :, 0].tolist() == [1, 1, 1]


@pytest.mark.parametrize("answer", ["3", "-1", "C", "True", "'rock'", "1.0", "None"])
def test_what_is_no_number_of_an_action_falls_back(play: Play, answer: str) -> None:
    kind, selfish = strategy(f"return {answer}", name="Strategy_COLLECTIVE_1"), strategy(f"return {answer}")
    result, batch = play(kind, selfish, rounds=2, **NAMED, cooperate=frozenset())
    assert result.actions[0].tolist() == [[2, 2], [2, 2]]
    first = int(batch.groups[0, 0])
    result, _ = play(kind, selfish, rounds=2, **NAMED, cooperate=frozenset({first + 2}))
    assert result.actions[0].tolist() == [[0, 2], [0, 2]]
    assert "not a whole number from 0 to 2" in next(iter(result.errors.values())).what


def test_noise_takes_each_other_action_as_often(workers: Workers) -> None:
    game = make_repeated("by-action", 2, 1000, {**ROCK, "noise": 0.3})
    moves = play_match(workers, game, ["reference:action-0", "reference:action-1"], seed=3).actions
    for seat, own in enumerate((0, 1)):
        shares = np.bincount(moves[:, seat], minlength=3) / 1000
        assert shares[own] == pytest.approx(0.7, abs=0.05)
        assert np.delete(shares, own) == pytest.approx([0.15, 0.15], abs=0.04)


def test_two_named_actions_are_played_as_cooperation_and_defection(play: Play) -> None:
    body = "random.random() < 0.5 or (history.round_number > 0 and history.my_payoffs[-1] > 2)"
    plain, _ = play(
        *[strategy(f"return C if {body} else D")] * 2, game="by-count",
        rules={"cooperate": [0, 3], "defect": [1, 5], "noise": 0.1}, anew=True, seed=5,
    )  # fmt: skip
    rules = {"actions": ["c", "d"], "table": [[3, 0], [5, 1]], "noise": 0.1}
    named, _ = play(*[strategy(f"return 0 if {body} else 1")] * 2, game="by-action", rules=rules, anew=True, seed=5)
    assert np.array_equal(named.actions == 0, plain.actions)


@pytest.mark.parametrize("name", ["public-goods", "collective-risk", "common-pool", "by-action"])
def test_fixed_opponents_pay_the_same_in_a_large_batch_as_alone(workers: Workers, name: str) -> None:
    named = name == "by-action"
    game = make_repeated(name, 2 if named else 5, 12, {**(ROCK if named else {}), "noise": 0.1})
    counts = "opponent_counts[-1][0]" if named else "opponent_cooperators[-1]"
    body = f"""
    if history.round_number == 0: return {0 if named else "C"}
    seen = history.my_payoffs.sum() * 7 + history.{counts} * 3 + history.my_actions[-1]
    return {"int(seen) % 3" if named else "C if int(seen) % 2 else D"}
    """
    [one] = workers.load("test.py", HEAD + strategy(body, arguments="history, *stock"))
    others = opponents(game)
    groups = np.full((60, 1), one.index)
    [together] = workers.play([Batch(game, groups, seed=4, opponents=others)])
    alone = workers.play([
        Batch(game, groups[:1], seed=4, numbers=np.array([group]), opponents=others[group % len(others)][None])
        for group in range(60)
    ])  # fmt: skip
    assert not together.errors
    assert len({moves.tobytes() for moves in together.actions}) > 10
    assert np.array_equal(together.actions, np.concatenate([result.actions for result in alone]))


def test_checks_and_matches_have_the_names_of_actions(workers: Workers, tmp_path: Path) -> None:
    game = make_repeated("by-action", 2, 20, ROCK)
    good, bad = strategy(BEATS), strategy("return C", name="Strategy_SELFISH_2")
    file = write(tmp_path, good, bad)
    checked = check_strategies(workers, game, workers.load("test.py", file.read_text()))
    assert [bool(one.problems) for one in checked] == [False, True]
    assert "answered with Action, not a whole number from 0 to 2" in checked[1].problems[0]
    match = play_match(
        workers, make_repeated("by-action", 2, 2, ROCK), [f"{file}:Strategy_SELFISH_1", "reference:action-1"]
    )
    assert match.as_json()["actions"] == [["rock", "paper"], ["scissors", "paper"]]
    assert next(match.lines()).startswith("rock scissors")


def test_payoffs_come_from_a_file_or_by_name_and_have_to_fit_the_game(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library(tmp_path, "by-action", one={"collective": "return 0", "exploitative": "return 1"})
    file = tmp_path / "rock.yaml"
    file.write_text("actions: [rock, paper, scissors]\nmatrix: [[0, -1, 1], [1, 0, -1], [-1, 1, 0]]\n")
    values: dict[str, Any] = {"strategies": str(tmp_path), "payoffs": str(file)}
    condition = EvolutionCondition(game="by-action", group_size=2, **values)
    assert condition.make_game().individual_bounds() == (-1, 1)
    with pytest.raises(ValidationError, match="n_players must fit the payoffs: 4 players need 10 a row, not 3"):
        EvolutionCondition(game="by-action", **values)
    registry = Registry[Any]("payoffs", "labmates.payoffs")
    registry.register("rock", {"actions": ROCK["actions"], "matrix": ROCK["table"]})
    monkeypatch.setattr(count_payoffs, "PAYOFFS", registry)
    named = EvolutionCondition(game="by-action", group_size=2, **{**values, "payoffs": "rock"})
    assert named.key == condition.key
    with pytest.raises(UsageError, match="the file is of another game; give --game by-action"):
        game_of("by-count", 2, 5, {}, condition.payoffs)
    with pytest.raises(UsageError, match="need a game of two actions, C and D, not by-action"):
        situations(condition.make_game(), "counts")
