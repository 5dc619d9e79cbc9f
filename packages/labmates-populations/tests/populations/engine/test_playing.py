"""What strategies see when they play, in both forms, and what is told of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from labmates.errors import UsageError
from labmates_populations.engine.behaviour import Features, behaviours, situations
from labmates_populations.engine.checks import check_strategies
from labmates_populations.engine.crew import Crew
from labmates_populations.engine.library import game_of, import_strategies, library_digest, load_population
from labmates_populations.engine.match import play_match
from labmates_populations.engine.reference import REFERENCES, class_name, reference_source
from labmates_populations.engine.workers import Batch, Errors, Result, Workers, WorkersError, chunks
from labmates_populations.repeated import make_repeated
from tests.populations.engine.attacks import UNGUARDED_HELP, unguarded
from tests.populations.engine.conftest import Play
from tests.support.strategies import HEAD, library, strategy, write

COOPERATE, DEFECT = "reference:cooperate", "reference:defect"
TELLS = """
    ok = (
        type(history.my_actions) is np.ndarray and history.my_actions.dtype == np.bool_
        and history.my_payoffs.dtype == np.float64 and history.opponent_cooperators.dtype == np.int64
        and len(history.my_actions) == len(history.my_payoffs) == history.round_number
        and not history.my_actions.flags.writeable and isinstance(history, PlayerHistory)
    )
    {more}
    return C if ok else D
"""


_COUNTS = {
    "an attribute": ("self.n = 0", "self.n += 1\nn = self.n"),
    "a list": ("self.seen = []", "self.seen.append(1)\nn = len(self.seen)"),
    "a list in a tuple": ("self.seen = ([],)", "self.seen[0].append(1)\nn = len(self.seen[0])"),
    "a dict": ("self.seen = {}", "self.seen[len(self.seen)] = 1\nn = len(self.seen)"),
    "an array": ("self.seen = np.zeros(1)", "self.seen[0] = self.seen[0] + 1\nn = self.seen[0]"),
    "a loop": ("self.n = 0", "for self.n in [self.n + 1]:\n    pass\nn = self.n"),
    "the base": (
        "self.n = 0\nsuper().__init__(0)",
        "super().__init__(self.game_description + 1)\nn = self.game_description",
    ),
}


@pytest.mark.parametrize("way", _COUNTS)
def test_each_seat_has_a_state_of_its_own(play: Play, way: str) -> None:
    init, count = _COUNTS[way]
    counting = strategy(f"{count}\nreturn C if n == history.round_number + 1 else D", init=init)
    result, _ = play(counting, counting, counting, anew=True)
    assert not result.errors
    assert result.actions.all()


@pytest.mark.parametrize(
    "more",
    [
        "ok = ok and all(history.my_actions) and all(history.opponent_cooperators == 1)",
        "ok = ok and np.allclose(history.my_payoffs, 4 / 3)",
        "ok = ok and (C == 1, Action.D == 0, np.True_ == C, np.False_ == D) == (False,) * 4",
        "ok = ok and (bool(C), bool(D), C.value, D.value, Action(1), sum([C, D, C])) == (True, False, 1, 0, C, 2)",
        "ok = ok and np.sum(np.array([C, D, C])) == 2 and Action['C'] is C and str(C) == 'C'",
        "ok = ok and (self.game_description.n_players, self.game_description.k) == (3, 2)",
        "ok = ok and isinstance(self.game_description, PublicGoodsDescription) and getattr(history, 'no', 5) == 5",
        "made = PlayerHistory(np.ones(2), np.ones(2), np.ones(2))\nok = ok and made.round_number == 2",
    ],
)
def test_a_strategy_of_the_current_form_sees_real_arrays_of_what_was_played(play: Play, more: str) -> None:
    told = strategy(TELLS.format(more=more.replace("\n", "\n    ")))
    result, _ = play(told, strategy("return C", name="Strategy_X_2"), strategy("return D", name="Strategy_X_3"))
    assert not result.errors
    assert result.actions[0, :, 0].all()


def test_the_stock_is_a_python_int_first_and_a_numpy_float_later(play: Play) -> None:
    told = strategy(
        """
        if history.round_number == 0:
            return C if type(stock) is int and stock == 12 else D
        left = 12 - 2 - 2 - 4
        grown = left + 2 * left * (1 - left / 12)
        return C if type(stock) is np.float64 and (history.round_number > 1 or abs(stock - grown) < 1e-12) else D
        """,
        arguments="history, stock",
    )
    result, _ = play(told, strategy("return C", arguments="h, s"), strategy("return D"), game="common-pool", rounds=3)
    assert not result.errors
    assert result.actions[0, :, 0].all()


def test_a_strategy_of_the_papers_form_sees_a_column_for_each_opponent(play: Play) -> None:
    told = strategy(
        """
        if state.round_number == 0:
            return C if history is None and isinstance(state, CommonPoolState) and state.current_stock == 12 else D
        shape = (state.round_number, 2)
        ok = history.opponent_actions.shape == history.opponent_payoffs.shape == shape
        ok = ok and history.opponent_actions[:, 0].all() and not history.opponent_actions[:, 1].any()
        ok = ok and (2 * history.opponent_payoffs[:, 0] == history.opponent_payoffs[:, 1]).all()
        ok = ok and (history.my_payoffs == history.opponent_payoffs[:, 0]).all()
        return C if ok and not history.opponent_actions.flags.writeable else D
        """,
        arguments="state: CommonPoolState, history: None | PlayerHistory",
    )
    result, _ = play(told, strategy("return C", arguments="h, s"), strategy("return D"), game="common-pool", rounds=6)
    assert not result.errors
    assert result.actions[0, :, 0].all()


@pytest.mark.parametrize(
    ("body", "way"),
    [
        ("x = history or PlayerHistory(np.ones(1), np.ones(1), np.ones((1, 2)), np.ones((1, 2)))", "compiled"),
        ("x = PlayerHistory(my_actions=1 > np.ones(1), my_payoffs=np.ones(1),\n"
         "    opponent_actions=np.ones((1, 2)), opponent_payoffs=np.ones((1, 2)))", "compiled"),
        ("x = history or PlayerHistory(np.ones(1), np.ones(1), np.ones((1, 2)), np.ones((1, 2)))\n"
         "x.my_actions = np.append(x.my_actions, True)\nx.my_actions[0] = True", "process"),
    ],
)  # fmt: skip
def test_a_history_of_the_papers_form_can_be_made_and_changed_but_its_arrays_cannot(
    workers: Workers, body: str, way: str
) -> None:
    test = "try: x.my_payoffs[0] = 1\nexcept ValueError: return C if isinstance(x, PlayerHistory) else D\nreturn D"
    told = strategy(f"{body}\n{test}", arguments="state: GameState, history: None | PlayerHistory")
    [found] = workers.load("test.py", HEAD + told)
    [result] = workers.play([Batch(make_repeated("public-goods", 3, 4), np.full((1, 3), found.index), 0)])
    assert (found.way, result.errors) == (way, {})
    assert result.actions.all()


def test_moves_of_the_papers_form_are_known_from_what_each_opponent_did() -> None:
    copies = "return C if state.round_number == 0 or history.opponent_actions[-1, 1] else D"
    group = [strategy(copies, arguments="state: GameState, history"), strategy("return C", name="Strategy_X_2"),
             strategy("return D", name="Strategy_X_3")]  # fmt: skip
    with Workers(processes=1) as workers:
        numbers = [workers.load("test.py", HEAD + one)[0].index for one in group]
        played = []
        for order in ([0, 1, 2], [0, 2, 1], [0, 1, 2]):
            batch = Batch(make_repeated("public-goods", 3, 4), np.array([[numbers[one] for one in order]]), 0)
            [result] = workers.play([batch])
            played.append((result.actions[0, :, 0].tolist(), bool(result.costs)))
    alone, together = [True, False, False, False], [True] * 4
    assert played == [(alone, True), (together, True), (alone, False)]


def test_the_state_of_other_games_has_no_stock(play: Play) -> None:
    told = strategy(
        "return C if type(state) is GameState and state.round_number < 9 else D", arguments="state: GameState, history"
    )
    result, _ = play(told, told, told, rounds=9)
    assert not result.errors
    assert result.actions.all()


def test_a_player_keeps_what_it_has_noted_between_rounds_and_not_between_games(workers: Workers) -> None:
    counting = strategy("self.n += 1\nreturn C if self.n == history.round_number + 1 else D", init="self.n = 0")
    [found] = workers.load("test.py", HEAD + counting)
    batch = Batch(make_repeated("collective-risk", 4, 5), np.full((3, 4), found.index), seed=0)
    for _ in range(2):
        assert workers.play([batch])[0].actions.all()


@pytest.mark.parametrize("processes", [1, 3])
def test_results_depend_on_neither_processes_nor_chunks(workers: Workers, processes: int) -> None:
    text = HEAD + strategy("return C if random.random() < 0.5 else D")
    [found] = workers.load("test.py", text)
    batch = Batch(make_repeated("public-goods", 4, 5), np.full((40, 4), found.index), seed=3)
    whole = workers.play([batch])[0].actions
    with Workers(processes=processes) as others:
        [same] = others.load("test.py", text)
        moved = Batch(batch.game, np.full((40, 4), same.index), seed=3)
        parts = others.play(list(chunks(moved, seats=28)))
    assert len(parts) == 6
    assert np.array_equal(np.concatenate([part.actions for part in parts]), whole)
    assert 0.3 < whole.mean() < 0.7


@pytest.mark.parametrize(
    ("name", "moves"),
    [
        ("cooperate", "CCCCC"),
        ("defect", "DDDDD"),
        ("random-1", "CCCCC"),
        ("random-0", "DDDDD"),
        ("cc-2", "CCDCD"),  # it meets 2, 1, 2, 0, 1 others who cooperate
        ("cd-2", "DDCDC"),
        ("cc-1", "CCCCD"),
        ("grim", "CCDDD"),
        ("majority", "CCCCD"),
        ("last-defect", "CCCCD"),
        ("alternate", "CDCDC"),
    ],
)
def test_reference_strategies_do_what_they_say(workers: Workers, name: str, moves: str) -> None:
    [found] = workers.load("references", reference_source([name]))
    others = np.array([[[True, True], [True, False], [True, True], [False, False], [True, False]]])
    batch = Batch(make_repeated("public-goods", 3, 5), np.array([[found.index]]), seed=0, opponents=others)
    result = workers.play([batch])[0]
    assert not result.errors
    assert "".join("DC"[int(one)] for one in result.actions[0, :, 0]) == moves


def test_every_reference_strategy_passes_the_checks(workers: Workers) -> None:
    names = [
        f"{name}-{0.5 if one.parameter == 'P' else 1}" if one.parameter else name
        for name, one in REFERENCES.items()
        if one.parameter != "A"  # for games of named actions
    ]
    loaded = workers.load("references", reference_source(names))
    assert [one.name for one in loaded] == [class_name(name) for name in names]
    for game in ("public-goods", "common-pool"):
        checked = check_strategies(workers, game, loaded)
        assert [one.problems for one in checked] == [()] * len(names)
        assert [one.deterministic for one in checked] == [not name.startswith("random") for name in names]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("cooperat", "Did you mean 'cooperate'"),
        ("random", "random-P"),
        ("cooperate-2", "is written cooperate"),
        ("random-2", "from 0 to 1"),
        ("cc-1.5", "whole number"),
    ],
)
def test_an_unknown_reference_strategy_is_said(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        reference_source([name])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "return C if history.round_number < 19 else 1 / 0",
            "ZeroDivisionError: division by zero (round 19; 3",
        ),
        (
            "return C if self.game_description.n_players < 10 else None",
            "answered with NoneType, not C or D (round 0;",
        ),
        ("return C if len({object(): 1, self: 2}) and nowhere else D", "NameError"),
        ("while self.game_description.n_rounds == 5: pass\nreturn C", "took too long (round 0; 4 players, 5 rounds)"),
    ],
)
def test_checks_find_what_goes_wrong_in_some_sizes_alone(workers: Workers, body: str, said: str) -> None:
    checked = check_strategies(workers, "public-goods", workers.load("test.py", HEAD + strategy(body)))
    assert len(checked) == 1
    assert any(said in problem for problem in checked[0].problems)
    assert not checked[0].deterministic


def test_checks_find_what_does_something_else_with_the_same_seed(workers: Workers) -> None:
    body = f"{UNGUARDED_HELP}\nreturn C if modules('time').perf_counter_ns() // 100 % 2 else D"
    [checked] = check_strategies(workers, "public-goods", workers.learn(unguarded(HEAD + strategy(body))))
    assert any("not do the same" in problem for problem in checked.problems)
    assert not checked.deterministic


class _Recording(Workers):
    """Workers that keep who played together."""

    together: list[list[set[int]]]

    def play(self, batches: Sequence[Batch], *, stop: Callable[[], bool] | None = None) -> list[Result]:
        self.together.append([set(batch.groups.reshape(-1).tolist()) for batch in batches])
        return super().play(batches, stop=stop)


@pytest.mark.parametrize(("count", "sizes"), [(1, [1, 1]), (2, [2, 1, 1]), (5, [5, 3, 2])])
def test_strategies_are_checked_a_second_time_beside_fewer_others(count: int, sizes: list[int]) -> None:
    code = HEAD + "".join(strategy("return C", name=f"Strategy_SELFISH_{number}") for number in range(count))
    workers = _Recording(processes=1)
    workers.together = []
    with workers:
        checked = check_strategies(workers, "public-goods", workers.load("test.py", code))
    assert all(one.deterministic for one in checked)
    assert [[len(players) for players in batches] for batches in workers.together] == [sizes] * 6


def test_situations_are_as_many_as_the_paper_says() -> None:
    sizes: list[tuple[Features, int, int]] = [("histories", 5, 961), ("counts", 5, 341), ("counts", 7, 5461)]
    for features, rounds, size in sizes:
        assert situations(make_repeated("public-goods", 4, rounds), features).size == size
    with pytest.raises(UsageError, match="use fewer rounds or players"):
        situations(make_repeated("public-goods", 8, 12), "histories")


def test_behaviour_is_the_cooperation_rate_in_each_situation(workers: Workers) -> None:
    names = ["cooperate", "defect", "cc-2", "random-0.5"]
    loaded = workers.load("references", reference_source(names))
    game = make_repeated("public-goods", 4, 3)
    found = behaviours(
        game, workers.play, [one.index for one in loaded], features="counts",
        random={one.index: one.random for one in loaded}, cooperate=frozenset(), rollouts=200,
    )  # fmt: skip
    assert [one.deterministic for one in found] == [True, True, True, False]
    assert found[0].rates.tolist() == [1] * 21
    assert found[1].rates.tolist() == [0] * 21
    assert found[2].rates.tolist() == [1, 0, 0, 1, 1, *(int(last >= 2) for _, last in product(range(4), repeat=2))]
    assert found[3].rates == pytest.approx([0.5] * 21, abs=0.15)
    by_history = behaviours(
        game, workers.play, [loaded[2].index], features="histories",
        random={one.index: one.random for one in loaded}, cooperate=frozenset(),
    )  # fmt: skip
    assert len(by_history[0].rates) == 1 + 4 + 20
    assert by_history[0].rates[:5].tolist() == [1, 0, 0, 1, 1]


def test_what_took_too_long_is_not_played_again_as_often_as_others(workers: Workers) -> None:
    loaded = workers.load("references", reference_source(["random-0.5"]))
    game = make_repeated("public-goods", 4, 3)
    played: list[Batch] = []

    def play(batches: Sequence[Batch]) -> list[Result]:
        played.extend(batches)
        late = {loaded[0].index: Errors(1, "took too long", 1, spent=1)}
        return [replace(result, errors=late) for result in workers.play(batches)]

    [one] = behaviours(
        game, play, [loaded[0].index], features="counts", random={loaded[0].index: False}, cooperate=frozenset()
    )
    assert not one.deterministic
    assert len(played) == 1


def test_random_numbers_can_be_drawn_under_another_name(workers: Workers) -> None:
    calls = {
        "from random import choice as pick": "pick([C, D])",
        "import random as r": "r.choice([C, D])",
        "from numpy import random as chance": "(C if chance.rand() < 0.5 else D)",
        "from numpy.random import rand": "(C if rand() < 0.5 else D)",
    }
    drawing = [strategy(f"return {call}", name=f"Strategy_SELFISH_{n}") for n, call in enumerate(calls.values())]
    other = strategy("return C", name="Strategy_SELFISH_9")
    loaded = workers.load("test.py", "\n".join([HEAD, *calls, *drawing, other]))
    assert [one.random for one in loaded] == [True] * 4 + [False]
    groups = np.array([[one.index] * 4 for one in loaded[:4]])
    [result] = workers.play([Batch(make_repeated("public-goods", 4), groups, seed=0)])
    assert not result.errors
    assert (result.actions.mean(axis=(1, 2)) % 1).all()


def test_what_claims_to_be_deterministic_and_is_not_is_played_as_often_as_others(workers: Workers) -> None:
    [found] = workers.load("references", reference_source(["random-0.5"]))
    [one] = behaviours(
        make_repeated("public-goods", 4, 4), workers.play, [found.index], features="counts",
        random={found.index: False}, cooperate=frozenset(),
    )  # fmt: skip
    assert not one.deterministic
    assert 0 < one.rates.mean() < 1


def test_an_engine_that_fails_says_why() -> None:
    with Workers(processes=1) as workers, pytest.raises(WorkersError, match="IndexError"):
        workers.play([Batch(make_repeated("public-goods", 4), np.zeros((1, 4), np.int64), 0)])


def test_a_match_is_told_by_seats_and_names(workers: Workers, tmp_path: Path) -> None:
    path = write(tmp_path, strategy("return C if history.round_number < 2 else None", name="Strategy_COLLECTIVE_1"))
    bad = f"{path}:Strategy_COLLECTIVE_1"
    match = play_match(workers, make_repeated("public-goods", 3, 4), [bad, DEFECT, COOPERATE])
    told = match.as_json()
    assert told["actions"] == [["C", "D", "C"]] * 4
    assert told["total_payoffs"] == pytest.approx([16 / 3, 16 / 3 + 4, 16 / 3])
    assert told["errors"] == {
        bad: {
            "round": 2,
            "what": "answered with NoneType, not C or D",
            "count": 2,
            "seats": {"0": {"round": 2, "what": "answered with NoneType, not C or D", "count": 2}},
        }
    }
    with pytest.raises(UsageError, match="has no strategy 'Nobody'; it has Strategy_COLLECTIVE_1"):
        play_match(workers, make_repeated("public-goods", 3), [f"{path}:Nobody", DEFECT, DEFECT])


def test_libraries_are_imported_unchanged_and_know_their_genes(workers: Workers, tmp_path: Path) -> None:
    published = library(
        tmp_path / "in", "public_goods", gpt={"prosocial": "return C", "selfish": "import os; return C"}
    )
    told = "description_PROSOCIAL_1 = 'Give.\\nAlways.'\ndescription_PROSOCIAL_2 = print('run')\nother = ''\n"
    (published / "public_goods" / "gpt_descriptions.py").write_text(told)
    target = tmp_path / "library"
    [one] = import_strategies(workers, published, target)
    assert (one["strategies"], one["refused"]) == (16, 8)
    file = Path(one["file"])
    provenance = file.with_suffix(".jsonl")
    lines = [json.loads(line) for line in provenance.read_text().splitlines()]
    assert {line["class"]: line["description"] for line in lines if "description" in line} == {
        "Strategy_PROSOCIAL_1": "Give.\nAlways."
    }
    assert file.read_bytes() == (published / "public_goods" / "gpt.py").read_bytes()
    population = load_population(workers, target, "public-goods")
    assert {str(gene): len(members) for gene, members in population.genes.items()} == {"gpt/prosocial": 8}
    assert set(population.refused) == {f"gpt:Strategy_SELFISH_{n}" for n in range(1, 9)}
    assert len(population.cooperate) == 8
    assert not population.faulty
    found = [line | {"problems": ["fails"]} if line["number"] == 2 else line for line in lines]
    provenance.write_text("".join(f"{json.dumps(line)}\n" for line in found))
    assert load_population(workers, target, "public-goods").faulty == {"gpt:Strategy_PROSOCIAL_2": ("fails",)}
    assert [again["file"] for again in import_strategies(workers, target, target)] == [one["file"]]
    (published / "public_goods" / "gpt_descriptions.py").write_text("description_PROSOCIAL_1 = 'Give.")
    with pytest.raises(UsageError, match=r"gpt_descriptions\.py can't be read as Python"):
        list(import_strategies(workers, published, tmp_path / "other"))
    file.write_text("# another\n")
    with pytest.raises(UsageError, match="already exists and differs"):
        list(import_strategies(workers, published, target))
    for wrong, said in (({"models": ["gtp"]}, "has no strategies of 'gtp'"), ({"attitudes": ["kind"]}, "'kind'")):
        with pytest.raises(UsageError, match=said):
            load_population(workers, published, "public-goods", **wrong)


def test_of_a_class_that_is_defined_twice_the_last_one_plays(workers: Workers, tmp_path: Path) -> None:
    """As in Python; the first is refused with the lines of both, whether or not the file can be read class by class."""
    for name, between in (("split", ""), ("whole", "\nLATE = 1\n")):
        folder = tmp_path / name
        twice = [strategy(f"return {action}") for action in "DC"]
        write(folder, twice[0], between, twice[1], strategy("return D", name="Strategy_SELFISH_2"))
        population = load_population(workers, folder, "public-goods")
        [played] = [index for index, other in population.names.items() if other == "model:Strategy_SELFISH_1"]
        [problem] = population.refused["model:Strategy_SELFISH_1"]
        assert "the class is defined again on line " in problem
        batch = Batch(make_repeated("public-goods", 2, 3, {"k": 1.5}), np.array([[played, played]]), seed=0)
        assert workers.play([batch])[0].actions[0].all()


def test_two_files_of_one_model_for_a_game_are_refused(workers: Workers, tmp_path: Path) -> None:
    for folder in ("public-goods", "public_goods"):
        write(tmp_path / folder, strategy("return C"))
    with pytest.raises(
        UsageError, match=r"one model for public-goods; name the folder of one: .*goods/model\.py, .*goods/model"
    ):
        load_population(workers, tmp_path, "public-goods")


def test_more_libraries_may_be_in_use_than_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labmates_populations.engine.crew._MOST_LIBRARIES", 1)
    names = ("public-goods", "collective-risk")
    for name in names:
        library(tmp_path, name, one={"collective": "return C"})
    crew = Crew(processes=1)
    wanted = [((str(tmp_path), name, (), ()), library_digest(tmp_path, name)) for name in names]
    first, second = (crew.open(*one) for one in wanted)
    for name, strategies in zip(names, (first, second), strict=True):
        groups = np.full((1, 4), next(iter(strategies.population.names)))
        [result] = strategies.play([Batch(make_repeated(name, 4, 2), groups, seed=0)])
        assert result.actions.all()
    assert crew.open(*wanted[1]).population is second.population
    crew.close()


def test_folders_are_named_like_games() -> None:
    assert [game_of(name) for name in ("public_goods", "common-pool", "public_goods_prompt", "other")] == [
        "public-goods",
        "common-pool",
        "public-goods",
        None,
    ]


def test_noise_executes_the_opposite_as_the_exact_chain_of_tit_for_tat_says() -> None:
    noise, groups = 0.1, 3000
    game = make_repeated("public-goods", 2, 8, {"k": 1.5, "noise": noise})
    with Workers(processes=1) as workers:
        [tit_for_tat] = workers.load("references", reference_source(["cc-1"]))
        batch = Batch(game, np.full((groups, 2), tit_for_tat.index), seed=5)
        [whole] = workers.play([batch])
        parts = workers.play(list(chunks(batch, 512)))
    assert np.array_equal(whole.actions, np.concatenate([part.actions for part in parts]))
    both = np.array([0.0, 0.0, 0.0, 1.0])  # intended: DD, DC, CD, CC
    slip = np.array([[1 - noise, noise], [noise, 1 - noise]])
    for t in range(8):
        executed = both @ np.kron(slip, slip)
        cooperation = executed @ [0, 0.5, 0.5, 1]
        assert whole.actions[:, t].mean() == pytest.approx(cooperation, abs=4 * 0.5 / np.sqrt(2 * groups))
        both = executed[[0, 2, 1, 3]]  # each copies the other
