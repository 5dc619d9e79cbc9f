"""The catalogue: splits that share nothing, and environments that can be played."""

from __future__ import annotations

import pytest

from labmates.workflows.protocol.experiment import make_condition
from labmates_gym.catalog import HELD_OUT, SPLITS, Listed, environments
from labmates_gym.parallel import LabmatesEnv
from labmates_gym.playing import POLICY
from tests.gym.scripted_policy import episode
from tests.support.command_line import Labmates


def test_held_out_games_and_framings_occur_in_no_training_environment() -> None:
    train, framing, game = (
        {(each.name, *map(str, each.condition.items())) for each in environments(s)} for s in SPLITS
    )
    assert train
    assert not train & framing
    assert {name for name, *_ in framing} <= {name for name, *_ in train}
    assert not {name for name, *_ in game} & {name for name, *_ in train | framing}
    held_out = {f"{kind}/{name}" for kind, names in HELD_OUT.items() for name in names}
    assert {"/".join(name.split("/")[:2]) for name, *_ in game} == held_out


def test_each_environment_is_a_condition_that_means_what_it_says() -> None:
    for listed in environments():
        if listed.kind == "game":
            assert make_condition("game", {**listed.condition, "model": POLICY}).doubts() == [], listed.name
        assert len(LabmatesEnv(listed.kind, **listed.condition).possible_agents) > 1, listed.name


@pytest.mark.slow("packages/labmates-gym/tests/gym/test_parallel.py")
@pytest.mark.parametrize(
    "listed", [each for each in environments() if each.kind != "science"], ids=lambda each: each.name
)
def test_each_environment_is_played_to_its_end(listed: Listed) -> None:
    infos = episode(LabmatesEnv(listed.kind, **listed.condition), "random")
    assert next(iter(infos.values()))["metrics"]["failed_decision_rate"] == 0


def test_the_list_names_all_of_a_split(labmates: Labmates) -> None:
    done = labmates("gym", "list", "--split", "game", "--json")
    assert [row["environment"] for row in done.records] == [each.name for each in environments("game")]
