"""Structured populations and Moran processes: who meets whom, and each step's exact probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from labmates.errors import UsageError
from labmates_populations.condition import EvolutionCondition
from labmates_populations.engine.evolution import Evolution, Generation
from labmates_populations.engine.library import Gene, Population
from labmates_populations.engine.structure import Structure, make_structure
from labmates_populations.repeated import make_repeated

RESIDENT, MUTANT = Gene("a", "collective"), Gene("a", "selfish")
POPULATION = Population({RESIDENT: (0,), MUTANT: (1,)}, {0: "a:R", 1: "a:M"}, frozenset(), {}, "")
GAME = make_repeated("public-goods", 2, 1, {"k": 1.5})
LOW, HIGH = GAME.individual_bounds()


def condition(**values: Any) -> EvolutionCondition:
    """A condition of an evolution of `GAME` without mutations."""
    common = {
        "strategies": "here",
        "digest": "0",
        "group_size": 2,
        "rounds": 1,
        "games": 1,
        "elite": 0,
        "mutation": 0.0,
    }
    return EvolutionCondition(**{"game": "public-goods", "rules": {"k": 1.5}, **common, **values})


def structure(shape: Any, agents: int, degree: int = 4, group_size: int = 2) -> Structure:
    made = make_structure(shape, agents, degree, group_size, seed=1)
    assert made is not None
    return made


@pytest.mark.parametrize(("shape", "degree"), [("ring", 4), ("lattice", 4), ("lattice", 8), ("regular", 6)])
def test_regular_graphs_have_as_many_neighbours_everywhere(shape: str, degree: int) -> None:
    made = structure(shape, 20, degree)
    assert (made.degrees == degree).all()
    for agent, neighbours in enumerate(made.neighbours):
        assert agent not in neighbours
        assert len(set(neighbours)) == degree
        assert all(agent in made.neighbours[other] for other in neighbours)


def test_a_ring_and_a_torus_have_the_neighbours_that_one_expects() -> None:
    assert set(structure("ring", 10).neighbours[0]) == {8, 9, 1, 2}
    assert set(structure("lattice", 20).neighbours[0]) == {1, 4, 5, 15}  # 4 rows of 5
    assert set(structure("lattice", 20, 8).neighbours[0]) == {1, 4, 5, 6, 9, 15, 16, 19}


@pytest.mark.parametrize("shape", ["small-world", "scale-free"])
def test_groups_form_around_each_agent_of_its_neighbours(shape: str) -> None:
    made = structure(shape, 50, 8, 4)
    groups = made.groups(4, np.random.default_rng(0))
    assert list(groups[:, 0]) == list(range(50))
    for host, *guests in groups:
        assert len(set(guests)) == 3
        assert set(guests) <= set(made.neighbours[host])


@pytest.mark.parametrize("shape", ["well-mixed", "ring"])
def test_births_have_the_probabilities_of_the_moran_process(shape: str) -> None:
    mutants, size, runs = 3, 8, 6000
    rules = condition(protocol="moran", population=size, strength=0.5, structure=shape, degree=2)
    agents = np.array([1] * mutants + [0] * (size - mutants))
    payoffs = np.where(agents == 1, HIGH, LOW)  # fitness 1 and 0.5
    after = []
    for seed in range(runs):
        evolution = Evolution(rules, POPULATION, lambda _: [], seed=seed)
        after.append(int(evolution.next(Generation(0, agents, payoffs, 0.0)).sum()) - mutants)
    total = mutants + 0.5 * (size - mutants)
    # On the ring, one of two border mutants replaces a resident half of the time, and so does a border resident.
    mutant_replaces = mutants * (size - mutants) / (size - 1) if shape == "well-mixed" else 1
    up, down = mutant_replaces / total, 0.5 * mutant_replaces / total
    errors = 4 * np.sqrt(0.25 / runs)
    assert np.mean(np.array(after) == 1) == pytest.approx(up, abs=errors)
    assert np.mean(np.array(after) == -1) == pytest.approx(down, abs=errors)


def test_with_updates_only_so_many_agents_imitate_and_only_neighbours() -> None:
    how = {"population": 100, "structure": "ring", "degree": 2}
    rules = condition(protocol="imitation", strength=1000.0, updates=10, **how)
    agents = np.array([1] * 50 + [0] * 50)
    evolution = Evolution(rules, POPULATION, lambda _: [], seed=3)
    for number in range(20):
        after = evolution.next(Generation(number, agents, np.where(agents == 1, HIGH, LOW), 0.0))
        changed = set(np.flatnonzero(after != agents))
        assert changed <= {50, 99}, "the neighbours of who does better"


def test_agents_begin_at_random_places_of_a_graph() -> None:
    rules = condition(protocol="moran", population=100, structure="ring")
    first = Evolution(rules, POPULATION, lambda _: [], seed=3).first()
    assert first.sum() == 50
    assert list(first) != [0, 1] * 50


def test_graphs_that_can_not_be_are_refused() -> None:
    with pytest.raises(UsageError, match="degree must be 4 or 8 on a lattice, not 6"):
        make_structure("lattice", 100, 6, 4, 0)
    with pytest.raises(UsageError, match="population 7 can't form a lattice"):
        make_structure("lattice", 7, 4, 4, 0)
    with pytest.raises(UsageError, match="degree must be at least 6 for groups of 4"):
        make_structure("scale-free", 100, 4, 4, 0)


COMMON: dict[str, Any] = {"game": "public-goods", "strategies": "here", "digest": "0"}


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"structure": "ring"}, "a graph needs --protocol imitation or moran"),
        ({"protocol": "moran", "strength": 2}, "at most 1 in a Moran process"),
        ({"updates": 3}, "only for --protocol imitation or moran"),
        (
            {"protocol": "imitation", "structure": "lattice", "population": 14},
            "can't form a lattice of at least 3 rows",
        ),
        ({"protocol": "imitation", "structure": "ring", "degree": 2}, "must be at least 3"),
    ],
)
def test_conditions_that_do_not_fit_are_refused(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        EvolutionCondition(**COMMON, **values)


def test_a_moran_process_updates_one_agent_at_a_time() -> None:
    assert EvolutionCondition(**COMMON, protocol="moran").updates == 1


def test_genes_are_copied_by_the_lead_over_the_least_payoff_where_that_is_negative() -> None:
    size = 3000
    payoffs_of = '{"cooperate": [-1, 0], "defect": [0, 1]}'
    rules = condition(game="by-count", rules={}, payoffs=payoffs_of, population=size)
    evolution = Evolution(rules, POPULATION, lambda _: [], seed=0)
    agents = np.arange(size) % 2
    for low, share in ((-1.0, 1.0), (0.0, 2 / 3)):
        payoffs = np.where(agents == 1, 1.0, low)
        after = evolution.next(Generation(0, agents, payoffs, 0.5))
        assert evolution.shares(after)[str(MUTANT)] == pytest.approx(share, abs=0.03)
