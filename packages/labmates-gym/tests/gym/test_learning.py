"""A policy that learns in the environments reaches the equilibrium of their rewards."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labmates_gym.parallel import LabmatesEnv, RewardName
from tests.gym.learner import Softmax, learn

PRISONERS: dict[str, Any] = {"game": "prisoners"}
PUBLIC_GOODS = {"game": "public-goods", "groups": 2, "group_size": 3, "rounds": 1}
ONCE = ("cooperate", "defect", "equilibrium")
NEAR = 0.1
"""Distance from the equilibrium that counts as reached."""


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


@pytest.mark.parametrize(
    ("kind", "condition", "players", "metric", "reward", "equilibrium", "episodes"),
    [
        ("dilemma", PRISONERS, ONCE, "cooperation_rate", "own", 0, 150),
        ("dilemma", {**PRISONERS, "mechanism": "contract"}, ONCE, "cooperation_rate", "own", 1, 300),
        ("game", PUBLIC_GOODS, ("cooperate", "defect", "fair-share"), "cooperation", "difference", 1, 120),
    ],
)
@pytest.mark.slow("packages/labmates-gym/tests/gym/test_learning.py")
def test_a_policy_reaches_the_equilibrium(
    kind: str,
    condition: dict[str, Any],
    players: tuple[str, ...],
    metric: str,
    reward: RewardName,
    equilibrium: float,
    episodes: int,
) -> None:
    curve = learn(kind, condition, players, metric, reward=reward, episodes=episodes, seed=1)
    assert abs(curve[:10].mean() - equilibrium) > NEAR
    assert curve[-40:].mean() == pytest.approx(equilibrium, abs=NEAR)
