"""REINFORCE: its gradient, and what it learns in real environments."""

from __future__ import annotations

import numpy as np
import pytest

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


@pytest.mark.parametrize("name", ["prisoners, none", "prisoners, contract", "public goods, reward difference"])
@pytest.mark.slow("packages/labmates-gym/tests/gym/test_learning.py")
def test_a_policy_reaches_the_equilibrium(name: str) -> None:
    lesson: Lesson = LESSONS[name]
    curve = lesson.learn(200, seed=1)
    assert curve.shape == (200,)
    assert 0.1 < curve[:10].mean() < 0.95
    assert curve[-40:].mean() == pytest.approx(lesson.equilibrium, abs=NEAR)
