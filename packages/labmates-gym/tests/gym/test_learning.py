"""REINFORCE: its gradient, and what it learns in real environments."""

from __future__ import annotations

import json

import numpy as np
import pytest

from labmates.cli.main import run_command
from labmates_gym.commands import NEAR
from labmates_gym.learning import Lesson, Softmax, lessons
from labmates_gym.parallel import LabmatesEnv

LESSONS = {lesson.name: lesson for lesson in lessons()}


def test_the_gradient_is_that_of_the_log_probability() -> None:
    policy = Softmax(("cooperate", "defect"), np.random.default_rng(0))
    env = LabmatesEnv("dilemma", game="prisoners")
    _, infos = env.reset()
    for reward in (0.0, 1.0):
        policy.act(infos["1"]["question"])
        [stage] = policy.logits
        [drawn] = policy._drawn.values()
        before, shares = policy.logits[stage].copy(), policy.shares(stage)
        policy.learn(reward)
    env.close()
    step = policy.logits[stage] - before
    assert step[drawn] > 0
    assert step / step[drawn] == pytest.approx((np.eye(2)[drawn] - shares) / (1 - shares[drawn]))


def test_each_mechanism_has_its_equilibrium() -> None:
    cooperates = {
        lesson.condition["mechanism"] for lesson in lessons() if lesson.kind == "dilemma" and lesson.equilibrium
    }
    assert cooperates == {"contract", "mediation", "repetition", "reputation"}


@pytest.mark.parametrize(
    ("name", "episodes"),
    [("prisoners, none", 150), ("prisoners, contract", 300), ("public goods, reward difference", 120)],
)
@pytest.mark.slow("packages/labmates-gym/tests/gym/test_learning.py")
def test_a_policy_reaches_the_equilibrium(name: str, episodes: int) -> None:
    lesson: Lesson = LESSONS[name]
    curve = lesson.learn(episodes, seed=1)
    assert abs(curve[:10].mean() - lesson.equilibrium) > NEAR
    assert curve[-40:].mean() == pytest.approx(lesson.equilibrium, abs=NEAR)


def test_json_holds_each_curve_as_numbers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("labmates_gym.learning.lessons", lambda: lessons()[:1])
    assert run_command(["gym", "learn", "--episodes", "40", "--json"]) == 0
    [learned] = map(json.loads, capsys.readouterr().out.splitlines())
    assert [type(value) for value in learned["curve"]] == [float] * 40
