"""The scripts in the folders ``examples`` run offline, and print what they are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import Block
from tests.docs.walk import Walk
from tests.support.plugins import ROOT

PRINTED = {
    "analyse_store": ["What all others give, round by round", "scripted:defect", "10.0   7.0   5.0"],
    "compare_baselines": ["verified accuracy", "scripted:diligent less scripted:hasty"],
    "custom_judge": ["scripted:diligent", "say how sure they are", "unscored"],
    "new_analysis": ["The most unequal group has scripted:random: 34% of its mean payoff.", "The report shows it."],
    "new_experiment": ["Problems: none", "scripted:thinker      4    2.0"],
    "new_game": ["Problems: none", "Secure equilibrium: 10   best for all: 0", "scripted:conditional"],
    "new_mechanism": ["Problems: none", "   1                             yes               1.50             1.50"],
    "new_step": ["completed: ", "% coordination"],
    "new_provider": ["dice:6?seed=1: completed, 20 calls", "failed decisions: 0%"],
    "own_organisations": ["completed after 1 call"],
    "shared_budget": ["338 different rows.", "(critic $0.0013, finder $0.0013, supervisor $0.0026)", "-1300"],
    "supervised_budget": ["338 different rows.", "critic $0.0013, reader $0.0013"],
    "strategies_population": ["100% exploitative   1.01", "evolutions"],
}
"""By script, what has to stand in its output."""
ARGUMENTS = {"compare_baselines": "1"}  # one seed


SCRIPTS = {
    path.stem: path.relative_to(ROOT) for path in (*ROOT.glob("examples/*.py"), *ROOT.glob("packages/*/examples/*.py"))
}


def test_every_example_is_executed() -> None:
    assert PRINTED.keys() == SCRIPTS.keys()


@pytest.mark.slow("tests/cli")
@pytest.mark.parametrize("name", PRINTED)
def test_an_example_runs_offline(name: str, forge: Path, tmp_path: Path) -> None:
    walk = Walk(tmp_path, forge, "http://127.0.0.1:9/v1")
    walk.prepare()
    command = f"python {SCRIPTS[name]} {ARGUMENTS.get(name, '')}"
    done = walk.shell(command, Block("examples", 1, "sh", command, command))
    assert done.code == 0, str(done)
    for text in PRINTED[name]:
        assert text in done.printed
