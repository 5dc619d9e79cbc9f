"""Evolution and self-play of strategies whose outcome is known."""

from __future__ import annotations

import os
import signal
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from labmates.api import analyze, arun
from labmates.records.events import PayoffEvent, WarningEvent
from labmates.records.store import Store
from labmates.studies.settings import RunSettings
from labmates_populations.condition import EvolutionCondition, SelfplayCondition
from labmates_populations.duration import estimate, measure
from labmates_populations.engine.evolution import Evolution, Generation, invasion
from labmates_populations.engine.library import Gene, Population, load_population
from labmates_populations.engine.workers import Workers
from labmates_populations.repeated import make_repeated
from labmates_populations.selfplay import games_of
from tests.support.children import command, run_child
from tests.support.strategies import library, strategy, write

ROOT = Path(__file__).parents[2]
SMALL: dict[str, Any] = {"population": 64, "elite": 8, "rounds": 4, "games": 2}
MIXED = {
    "collective": "return C if random.random() < 0.8 else D",
    "exploitative": "return D if history.round_number == 0 or history.opponent_cooperators[-1] > 1 else C",
}


async def evolve(tmp_path: Path, folder: Path, processes: int = 1, **condition: Any) -> tuple[dict[str, float], Any]:
    store = Store(f"sqlite:///{tmp_path}/{processes}.db")
    settings = RunSettings(processes=processes)
    [run] = await arun("evolution", store=store.url, settings=settings, strategies=str(folder), **condition)
    assert run.status == "completed", run.error
    events = [event for event in store.events(run.id) if isinstance(event, PayoffEvent)]
    store.close()
    return dict(run.metrics), [(event.round, event.payoffs, event.details) for event in events]


async def test_defectors_take_over_in_public_goods(tmp_path: Path) -> None:
    folder = library(tmp_path, "public-goods", one={"collective": "return C", "exploitative": "return D"})
    metrics, events = await evolve(tmp_path, folder, game="public-goods", **SMALL)
    assert metrics["threshold_reached"] == 1
    assert metrics["selfish_share"] >= 0.75
    assert metrics["generations"] < 200
    # In the last generation, what is earned is what the last cooperators pay for.
    assert metrics["welfare"] == pytest.approx(1 + metrics["cooperation"])
    for _, payoffs, _ in events:
        assert payoffs["one/exploitative"] > payoffs["one/collective"]
    # The strategies of the last generation, and of no other, are recorded by name.
    assert [number for number, _, details in events if "strategies" in details] == [events[-1][0]]
    table = analyze("evolution", store=f"sqlite:///{tmp_path}/1.db").table("strategies")
    selfish = sum(row["share"] for row in table.rows if "EXPLOITATIVE" in row["strategy"])
    assert selfish == pytest.approx(metrics["selfish_share"])
    assert sum(row["share"] for row in table.rows) == pytest.approx(1)


async def test_imitation_ends_where_both_do_as_well_in_collective_risk(tmp_path: Path) -> None:
    # With k = 4, n = 4, m = 2, a cooperator gets 4·P(one or more of three others), a defector 1 + 4·P(two or more):
    # as much where 12 x (1 - x)² = 1, of which x = 0.64 is stable.
    folder = library(tmp_path, "collective-risk", one={"collective": "return C", "exploitative": "return D"})
    condition: dict[str, Any] = {
        "protocol": "imitation",
        "generations": 160,
        "window": 100,
        "mutation": 0.001,
        "rules": {"k": 4},
    }
    metrics, _ = await evolve(
        tmp_path, folder, game="collective-risk", **condition, **{**SMALL, "population": 256, "rounds": 1}
    )
    assert metrics["cooperation"] == pytest.approx(0.64, abs=0.08)
    assert metrics["generations"] == 160


async def test_those_who_need_each_other_stay_at_the_threshold(tmp_path: Path) -> None:
    # Where all of a group have to cooperate and the benefit is large, cooperators who meet get far more than defectors.
    folder = library(tmp_path, "collective-risk", one={"collective": "return C", "exploitative": "return D"})
    condition: dict[str, Any] = {"rules": {"k": 60, "m": 4}, "mutation": 0, "generations": 60}
    metrics, _ = await evolve(tmp_path, folder, game="collective-risk", **condition, **{**SMALL, "population": 256})
    assert metrics["threshold_reached"] == 1
    assert metrics["selfish_share"] <= 0.25


async def test_the_number_of_processes_changes_nothing(tmp_path: Path) -> None:
    folder = library(tmp_path, "common-pool", one=MIXED, two=MIXED)
    one, three = [
        await evolve(
            tmp_path,
            folder,
            processes,
            game="common-pool",
            generations=4,
            group_size=64,
            **{**SMALL, "population": 1024},
        )
        for processes in (1, 3)
    ]
    assert one == three


def test_a_killed_evolution_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    folder = library(tmp_path, "public-goods", one=MIXED, two=MIXED)
    words = ["run", "evolution", "--game", "public-goods", "--strategies", str(folder), "--population", "128"]
    words += ["--elite", "32", "--generations", "40", "--threshold", "1", "--mutation", "0.3", "--rounds", "5"]
    environment = {**os.environ, "LANGSMITH_TRACING": "false"}

    killed = """
        import os, signal
        from labmates_populations import evolution
        from labmates_populations.engine.evolution import Evolution

        def played(self, number, *others, play=Evolution.played):
            if number == 20:
                os.kill(os.getpid(), signal.SIGKILL)
            return play(self, number, *others)

        Evolution.played, evolution._FLUSH_SECONDS = played, 0.0
        """
    store = Store(f"sqlite:///{tmp_path}/killed.db")
    assert run_child(command(*words, "--store", f"sqlite:///{tmp_path}/whole.db"), environment) == 0
    code = textwrap.dedent(killed) + command(*words, "--store", store.url)
    assert run_child(code, environment) == -signal.SIGKILL
    [run] = store.runs()
    assert len(_events(store, run.id)) == 20
    assert run_child(command(*words[:2], "--resume", run.id, "--store", store.url), environment) == 0
    whole = Store(f"sqlite:///{tmp_path}/whole.db")
    [other] = whole.runs()
    assert _events(store, run.id) == _events(whole, other.id)
    assert store.run(run.id).metrics == other.metrics
    store.close()
    whole.close()


def _events(store: Store, run_id: str) -> list[tuple[Any, ...]]:
    found = [event for event in store.events(run_id) if isinstance(event, PayoffEvent)]
    return [(event.step, event.round, event.payoffs, event.details) for event in found]


async def test_a_strategy_that_hangs_is_named_and_not_run_again(tmp_path: Path) -> None:
    folder = library(tmp_path, "public-goods", one={"collective": "return C"})
    hanging = strategy("while True: pass", name="Strategy_SELFISH_1")
    write(folder / "public-goods", hanging, strategy("return None", name="Strategy_SELFISH_2"), file="bad.py")
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    [run] = await arun(
        "evolution", store=store.url, strategies=str(folder), game="public-goods", generations=2, threshold=1,
        **{**SMALL, "population": 8, "games": 1, "elite": 8},
    )  # fmt: skip
    assert run.status == "completed"
    told = [event.text for event in store.events(run.id) if isinstance(event, WarningEvent)]
    assert any("bad:Strategy_SELFISH_1 failed in round 0: took too long" in text for text in told)
    assert any("bad:Strategy_SELFISH_2 failed in round 0: answered with NoneType" in text for text in told)
    assert run.metrics["error_rate"] > 0
    store.close()


async def test_self_play_of_known_strategies_is_what_the_formula_says(tmp_path: Path) -> None:
    folder = library(tmp_path, "public-goods", one={"collective": "return C", "exploitative": "return D"})
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    [run] = await arun("selfplay", store=store.url, strategies=str(folder), game="public-goods", samples=5, rounds=3)
    events = [event for event in store.events(run.id) if isinstance(event, PayoffEvent)]
    assert [event.payoffs["welfare"] for event in events] == pytest.approx([2, 1.75, 1.5, 1.25, 1])
    assert run.metrics["efficiency"] == pytest.approx(0.5)
    assert run.metrics["efficiency_collective"] == 1
    ends = [(event.details["low"], event.details["high"], event.details["reason"]) for event in events]
    assert ends[1:4] == [(None, None, "equal values")] * 3
    assert (ends[0][1], ends[4][0]) == (2, 1), "welfare at an end of its range"
    store.close()


async def test_self_play_runs_a_strategy_that_was_stopped_in_no_later_mixture(tmp_path: Path) -> None:
    good = [strategy("return C", name=f"Strategy_COLLECTIVE_{number}") for number in range(1, 5)]
    bodies = ("return D", "raise MemoryError") * 2
    bad = [strategy(body, name=f"Strategy_EXPLOITATIVE_{number}") for number, body in enumerate(bodies, 1)]
    write(tmp_path / "public-goods", *good, *bad, file="one.py")
    store = Store(f"sqlite:///{tmp_path}/runs.db")
    [run] = await arun("selfplay", store=store.url, strategies=str(tmp_path), game="public-goods", samples=5, rounds=3)
    events = [event for event in store.events(run.id) if isinstance(event, PayoffEvent)]
    stopped = [event.details.get("stopped", []) for event in events]
    # Three of the four meet in the last mixture but one, so that both are stopped by then.
    assert sorted(number for numbers in stopped for number in numbers) == [5, 7]
    assert (stopped[0], stopped[-1]) == ([], [])
    assert events[-1].details["errors"] == 5 * 3 * 2
    store.close()


def condition(**values: Any) -> EvolutionCondition:
    """A condition of an evolution without mutations, of strategies that are loaded already."""
    common = {"game": "collective-risk", "strategies": "here", "digest": "0", "rounds": 2, "population": 40, "games": 1}
    return EvolutionCondition(**{**common, "elite": 0, "mutation": 0.0, **values})


@pytest.fixture
def population(tmp_path: Path) -> Any:
    folder = library(tmp_path, "collective-risk", one={"collective": "return C", "exploitative": "return D"})
    with Workers(processes=1) as workers:
        yield load_population(workers, folder, "collective-risk"), workers.play


def test_who_can_invade_whom(population: tuple[Population, Any]) -> None:
    strategies, play = population
    game = make_repeated("collective-risk", 4, 2, {"k": 4})
    good, bad = Gene("one", "collective"), Gene("one", "exploitative")
    found = invasion(game, strategies, play, good, bad, samples=10, seed=0)
    assert (found["resident_payoff"], found["invader_payoff"], found["invades"]) == (4, 5, True)
    found = invasion(game, strategies, play, bad, good, samples=10, seed=0)
    assert (found["resident_payoff"], found["invader_payoff"], found["invades"]) == (1, 0, False)


def test_the_best_keep_their_strategies_and_zero_payoffs_give_equal_chances(
    population: tuple[Population, Any],
) -> None:
    strategies, play = population
    evolution = Evolution(condition(elite=5), strategies, play, seed=1)
    agents = evolution.first()
    assert evolution.shares(agents) == {"one/collective": 0.5, "one/exploitative": 0.5}
    payoffs = np.arange(40.0)
    after = evolution.next(Generation(0, agents, payoffs, 0.0))
    assert np.array_equal(after[-5:], agents[-5:])
    assert np.array_equal(after, evolution.next(Generation(0, agents, payoffs, 0.0))), "the same seed, the same"
    assert len(evolution.next(Generation(0, agents, np.zeros(40), 0.0))) == 40


@pytest.mark.parametrize("gene", [0, 1])
def test_with_one_model_alone_all_mutations_are_of_the_attitude(population: tuple[Population, Any], gene: int) -> None:
    strategies, play = population
    evolution = Evolution(condition(mutation=1.0), strategies, play, seed=1)
    agents = np.full(40, strategies.genes[evolution.genes[gene]][0])
    after = evolution.next(Generation(0, agents, np.ones(40), 0.0))
    assert set(evolution.genes_of(after)) == {1 - gene}


def test_no_strategy_finds_out_its_seat_from_its_random_numbers(tmp_path: Path) -> None:
    # A strategy can know seeds, groups and seats, and what follows from them, but not its own file's digest.
    bodies = dict.fromkeys(("collective", "exploitative"), "return C if random.random() < 0.5 else D")
    played: list[list[Any]] = []
    game = make_repeated("public-goods", 4, 8)
    with Workers(processes=1) as workers:
        for folder, more in (("a", ""), ("b", ""), ("c", "# another file\n")):
            file = library(tmp_path / folder, "public-goods", one=bodies) / "public-goods" / "one.py"
            file.write_text(file.read_text() + more)
            population = load_population(workers, tmp_path / folder, "public-goods")
            evolution = Evolution(condition(game="public-goods", rounds=8, elite=5), population, workers.play, seed=0)
            mixed_play = SelfplayCondition(game="public-goods", strategies=str(tmp_path / folder), digest="0")
            [mixed] = workers.play([games_of(mixed_play, population, 0, 1, [])])
            played.append([
                evolution.played(0, evolution.first(), frozenset()).payoffs.tolist(), mixed.actions.tolist(),
                invasion(game, population, workers.play, *population.genes, samples=8, seed=0)["invader_payoff"],
            ])  # fmt: skip
    assert played[0] == played[1]
    assert [one == other for one, other in zip(played[0], played[2], strict=True)] == [False] * 3


def test_under_the_strongest_selection_only_who_does_better_is_imitated(population: tuple[Population, Any]) -> None:
    strategies, play = population
    evolution = Evolution(condition(protocol="imitation", strength=1000.0), strategies, play, seed=1)
    agents = evolution.first()
    best = evolution.genes_of(agents) == 1
    after = evolution.next(Generation(0, agents, 5.0 * best, 0.0))
    assert (evolution.genes_of(after)[best] == 1).all()
    assert (evolution.genes_of(after) == 1).sum() > best.sum()


@pytest.mark.parametrize(("players", "likely"), [(4, 0.622), (64, 0.584)])
def test_imitation_selects_by_payoffs_on_the_scale_of_the_game(
    population: tuple[Population, Any], players: int, likely: float
) -> None:
    # A lead of 1 a round is a half of what public goods can bring one of 4 players, and a third for one of 64.
    strategies, play = population
    rules = condition(game="public-goods", group_size=players, protocol="imitation", population=64_000)
    evolution = Evolution(rules, strategies, play, seed=3)
    agents = evolution.first()
    leads = evolution.genes_of(agents) == 1
    after = evolution.genes_of(evolution.next(Generation(0, agents, 1.0 + leads, 0.0)))
    # Half of those whom an agent compares itself with have the other gene.
    assert (after[~leads] == 1).mean() == pytest.approx(likely / 2, abs=0.008)
    assert (after[leads] == 0).mean() == pytest.approx((1 - likely) / 2, abs=0.008)


EIGHT = (
    "prosocial",
    "altruistic",
    "communal",
    "cooperative",
    "selfish",
    "opportunistic",
    "aggressive",
    "selfinterested",
)


def of_genes(rules: EvolutionCondition, genes: Sequence[Gene]) -> Evolution:
    """An evolution in which nobody plays."""
    members = Population({gene: (place,) for place, gene in enumerate(genes)}, {}, frozenset(), {}, "")
    return Evolution(rules, members, lambda batches: [], seed=1)


def test_a_mutation_to_the_other_base_leaves_the_own_one() -> None:
    genes = [Gene("gpt", attitude) for attitude in EIGHT]
    for to, reached in (("any", 7), ("other-base", 4)):
        evolution = of_genes(condition(protocol="imitation", mutates_to=to), genes)
        old = evolution.genes.index(Gene("gpt", "prosocial"))
        chance = np.random.default_rng(0)
        mutated = {evolution.genes[evolution._mutated(old, False, chance)].attitude for _ in range(200)}
        assert len(mutated) == reached
        assert "prosocial" not in mutated
        assert to == "any" or mutated == set(EIGHT[4:])


@pytest.mark.parametrize(("cost", "likely"), [(0.0, 0.622), (0.5, 0.5), (1.0, 0.378)])
def test_another_model_has_to_pay_more_by_the_switching_cost(cost: float, likely: float) -> None:
    # A lead of 1 a round is a half of what public goods can bring one of 4 players.
    rules = condition(game="public-goods", protocol="imitation", population=64_000, switching_cost=cost)
    for other, expected in ((Gene("qwen", "collective"), likely), (Gene("gpt", "selfish"), 0.622)):
        evolution = of_genes(rules, [Gene("gpt", "collective"), other])
        agents = evolution.first()
        leads = evolution.genes_of(agents) == evolution.genes.index(other)
        after = evolution.next(Generation(0, agents, 1.0 + leads, 0.0))
        switched = evolution.genes_of(after)[~leads] == evolution.genes.index(other)
        assert switched.mean() == pytest.approx(expected / 2, abs=0.008)


def test_a_duration_follows_from_the_generations_that_were_measured(population: tuple[Population, Any]) -> None:
    assert estimate([3.0, 1.0, 0.5], 100, generations=10)["seconds"] == 4.5 + 7 * 0.5
    assert estimate([3.0, 1.0], 100, generations=2)["seconds"] == 4
    strategies, play = population
    values: dict[str, Any] = {"game": "collective-risk", "strategies": "here", "digest": "0", **SMALL}
    short = EvolutionCondition(**values, generations=4)
    evolution = Evolution(short, strategies, play, seed=1)
    assert len(measure(evolution, short, seconds=0.0)[0]) == 3
    assert len(measure(evolution, short, seconds=600.0)[0]) == 4
    assert short.decisions == 64 * 2 * 4
    graph = short.model_copy(update={"structure": "ring", "protocol": "imitation"})
    assert graph.decisions == 64 * 2 * 4 * 4


async def test_a_gene_that_is_alone_reaches_any_threshold(tmp_path: Path) -> None:
    folder = library(tmp_path, "public-goods", one={"collective": "return C"})
    metrics, _ = await evolve(
        tmp_path, folder, game="public-goods", protocol="imitation", generations=10, window=10, threshold=1,
        population=4, rounds=1,
    )  # fmt: skip
    assert (metrics["winner_share"], metrics["threshold_reached"]) == (1, 1)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_rule_without_a_finite_value_is_told(value: float) -> None:
    with pytest.raises(ValidationError, match="finite number"):
        EvolutionCondition(game="public-goods", strategies="here", digest="0", rules={"k": value})


def test_attitudes_are_the_same_in_capitals_and_two_in_self_play() -> None:
    common: dict[str, Any] = {"game": "public-goods", "strategies": "here", "digest": "0"}
    one, other = (EvolutionCondition(**common, attitudes=(name,)) for name in ("Selfish", "selfish"))
    assert one.key == other.key
    assert SelfplayCondition(**common, collective="Prosocial").collective == "prosocial"
    with pytest.raises(ValidationError, match="must differ from the attitude"):
        SelfplayCondition(**common, selfish="Collective")
