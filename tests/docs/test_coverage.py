"""The page on coverage of the papers is made of its data, and each command on it runs."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import Any, get_args

import pytest

from labmates.api import arun
from labmates_populations.condition import Game
from sitegen.coverage import coverage_page, papers
from tests.profiles.published_coopeval import published
from tests.profiles.simulated_studies import write_prediction, write_proximity
from tests.support.command_line import Labmates
from tests.support.strategies import library

pytestmark = pytest.mark.xdist_group("coverage")
ELEMENTS = [one for paper in papers() for one in paper.elements if one.command]
COMMANDS = list(dict.fromkeys(one.executed for one in ELEMENTS))
POOL = "{name: my-pool, players: 4, formula: {kind: pool, factor: 2}, actions: [give, keep]}"


@pytest.fixture(scope="module")
def labmates(tmp_path_factory: pytest.TempPathFactory) -> Labmates:
    """The command line in a folder whose store has small runs of each kind."""
    folder = tmp_path_factory.mktemp("coverage")
    bodies = {"collective": "return C", "selfish": "return D"}
    strategies, *_ = [library(folder / "strategies", game, gpt=bodies) for game in get_args(Game)[:3]]
    (folder / "my-pool.yaml").write_text(POOL)
    published(folder / "CoopEval", "run1")
    write_prediction(folder)
    write_proximity(folder / "simulations.csv")
    asyncio.run(_fill(f"sqlite:///{folder}/labmates.db", {"game": "public-goods", "strategies": str(strategies)}))
    return Labmates(Path(folder))


async def _fill(url: str, population: dict[str, Any]) -> None:
    dilemma: dict[str, Any] = {"game": "prisoners", "entrants": "scripted:random,scripted:equilibrium", "store": url}
    for mechanism in ("none", "repetition(rounds=2)", "mediation", "contract"):
        await arun("dilemma", mechanism=mechanism, replicates=2, **dilemma)
    await arun("dilemma", mechanism="contract", wording="paper", replicates=2, **dilemma)
    for structure in ("ri", "gc", "sa"):
        await arun("tournament", structure=structure, model="scripted:random", rounds=2, team_size="2", store=url)
    for player in ("random", "cooperate"):
        game: dict[str, Any] = {"model": f"scripted:{player}", "group_size": "2", "rounds": "2"}
        await arun("game", game="public-goods", replicates=2, store=url, **game)
    lab: dict[str, Any] = {
        "task": "ecology",
        "difficulty": "easy",
        "model": "scripted:hasty",
        "budget": "0.50",
        "store": url,
    }
    await arun("science", settings={"judges": ("scripted:referee", "scripted:gullible")}, **lab)
    await arun("selfplay", selfish="selfish", samples=2, rounds=2, store=url, **population)
    await arun("evolution", population=8, elite=2, generations=2, rounds=2, store=url, **population)


def test_the_page_has_each_element_and_no_option_that_only_makes_a_test_small() -> None:
    page = coverage_page()
    assert all(one.element in page for paper in papers() for one in paper.elements)
    assert "[--" not in page
    assert not [one.element for one in ELEMENTS if "--help" in one.command]


@pytest.mark.slow("tests/cli")
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_on_the_page_runs(labmates: Labmates, command: str) -> None:
    rows = [one for one in ELEMENTS if one.executed == command]
    printed = ""
    for part in command.split(" && "):
        name, *arguments = shlex.split(part)
        assert name == "labmates"
        done = labmates(*arguments)
        assert done.code == rows[0].code, done.err
        printed += done.out + done.err
    for text in (one.shows for one in rows):
        assert " ".join(text.split()) in " ".join(printed.split())
