"""A small lab as an environment: seats work with tools, code runs in a sandbox, and all share the accuracy."""

from __future__ import annotations

from typing import Any

import pytest
from pettingzoo.test import parallel_api_test

from labmates_gym.catalog import environments
from labmates_gym.parallel import LabmatesEnv
from tests.gym.scripted_policy import episode

pytestmark = [pytest.mark.slow("packages/labmates-gym/tests/gym/test_parallel.py"), pytest.mark.needs("bubblewrap")]


@pytest.fixture(scope="module")
def lab() -> dict[str, Any]:
    [listed] = [listed for listed in environments("train") if listed.kind == "science"]
    return dict(listed.condition)


def test_seats_share_the_accuracy_and_each_counts(lab: dict[str, Any]) -> None:
    env = LabmatesEnv("science", reward="difference", **lab)
    infos = episode(env, "diligent")
    metrics = infos[env.possible_agents[0]]["metrics"]
    assert metrics["accuracy"] > 0.3
    assert len(infos) > 1
    for info in infos.values():
        assert info["rewards"]["own"] == pytest.approx(metrics["accuracy"] / len(infos))
        assert info["rewards"]["welfare"] == pytest.approx(metrics["accuracy"])
        assert 0 <= info["rewards"]["difference"] <= metrics["accuracy"] + 1e-9
    assert max(info["rewards"]["difference"] for info in infos.values()) > 0


def test_pettingzoo_accepts_it(lab: dict[str, Any]) -> None:
    env = LabmatesEnv("science", **{**lab, "repair_turns": 0, "max_turns": 1})
    parallel_api_test(env, num_cycles=100)
    env.close()
