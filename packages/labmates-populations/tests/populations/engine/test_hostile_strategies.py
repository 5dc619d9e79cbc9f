"""What a strategy must not be able to do: each is caught, named, and harms nobody."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from labmates_populations.engine import workers as workers_module
from labmates_populations.engine.kernel.limits import MOST_SPENT
from labmates_populations.engine.workers import Batch, Workers
from labmates_populations.repeated import make_repeated
from tests.populations.engine.conftest import Play
from tests.support.strategies import HEAD, strategy

COOPERATE = strategy("return C", name="Strategy_COLLECTIVE_1")
DEFECT = strategy("return D", name="Strategy_SELFISH_2")

CAUGHT = {
    "writing its history": ("history.my_actions[...] = True\nreturn C", "ValueError"),
    "making its history writable": ("history.my_actions.flags['WRITEABLE'] = True\nreturn C", "ValueError"),
    "changing the game": ("self.game_description.k = 100\nreturn C", "FrozenInstanceError"),
    "a number as an answer": ("return 1", "answered with int"),
    "a truth value as an answer": ("return np.True_", "answered with bool"),
    "nothing as an answer": ("pass", "answered with NoneType"),
    "an exception whose text is a trap": (
        "class Trap(Exception):\n    def __str__(self):\n        while True: pass\nraise Trap(Trap())",
        "Trap",
    ),
    "endless recursion": ("return self(history)", "RecursionError"),
    "leaving": ("raise GeneratorExit", "GeneratorExit"),
    "a huge array": ("np.ones(10 ** 10 // 8)\nreturn C", "too much memory"),
    "a huge list": ("x = [0] * 10 ** 10\nreturn C", "too much memory"),
    "memory bit by bit": ("x = []\nwhile True: x.append(bytearray(10 ** 8))", "too much memory"),
    "an endless loop": ("while True: pass", "took too long"),
    "an endless loop that catches": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "took too long",
    ),
    "an endless loop in C": ("sum(range(10 ** 14))\nreturn C", "took too long"),
}


@pytest.mark.parametrize(
    "source",
    [
        "import os\n" + strategy("os.getpid()\nreturn C"),
        strategy("return C") + "    open('/tmp/x', 'w')\n",
        strategy("return C", arguments="a, b, c"),
        "class Strategy_SELFISH_1(BaseStrategy):\n    pass\n",
    ],
)
def test_a_class_that_is_no_plain_strategy_is_refused(workers: Workers, source: str) -> None:
    assert workers.load("test.py", HEAD + source)[0].problems


@pytest.mark.parametrize(("body", "what"), CAUGHT.values(), ids=CAUGHT)
def test_is_caught_and_named_and_harms_no_other_player(play: Play, body: str, what: str) -> None:
    result, batch = play(strategy(body), COOPERATE, DEFECT, game="collective-risk", rounds=3)
    hostile = int(batch.groups[0, 0])
    assert list(result.errors) == [hostile]
    assert what in result.errors[hostile].what
    assert not result.actions[0, :, 0].any(), "a selfish strategy falls back to defection"
    assert result.actions[0, :, 1].all()
    assert not result.actions[0, :, 2].any()
    assert np.array_equal(batch.game.play(result.actions)[0, 0], [1, 0, 1])


def test_what_strategies_leave_behind_that_took_too_long_ends_nobody_elses_process() -> None:
    wasteful = [
        strategy("x = []\nwhile True: x.append([x, history])", name=f"Strategy_SELFISH_{number}")
        for number in range(40)
    ]
    with Workers(processes=1, seconds=0.04, memory=256 << 20) as workers:
        hostile = [one.index for one in workers.load("wasteful.py", HEAD + "".join(wasteful))]
        honest = [one.index for one in workers.load("honest.py", HEAD + COOPERATE + DEFECT)]
        groups = np.array([[*honest, one] for one in hostile])
        [result] = workers.play([Batch(make_repeated("public-goods", 3, 2), groups, 0)])
    assert result.actions[:, :, 0].all()
    assert not result.actions[:, :, 1].any()
    assert set(result.errors) == set(hostile)


@pytest.mark.parametrize("first", [True, False])
def test_a_strategy_that_takes_all_memory_without_an_error_ends_no_game(first: bool) -> None:
    body = """
        for size in (100000, 1000, 1):
            try:
                while True: self.x = (self.x, [0] * size)
            except MemoryError: pass
        return D
    """
    with Workers(processes=1, memory=256 << 20) as workers:
        text = HEAD + strategy(body, init="self.x = ()") + COOPERATE + DEFECT
        [hostile, *honest] = [one.index for one in workers.load("test.py", text)]
        groups = np.array([[hostile, *honest] if first else [*honest, hostile]] * 3)
        [result] = workers.play([Batch(make_repeated("public-goods", 3, 4), groups, 0)])
    assert result.actions[:, :, int(first)].all()
    assert not result.actions[:, :, 1 + first].any()


def test_an_error_in_one_round_costs_that_round_alone(play: Play) -> None:
    raising = strategy(
        "if history.round_number == 17: raise ValueError('no more')\nreturn C", name="Strategy_SELFISH_3"
    )
    result, _ = play(raising, COOPERATE, COOPERATE)
    [error] = result.errors.values()
    assert (error.count, error.round, error.what) == (1, 17, "ValueError: no more")
    assert np.flatnonzero(~result.actions[0, :, 0]).tolist() == [17]


def test_who_wishes_well_falls_back_to_cooperation(play: Play, workers: Workers) -> None:
    _, batch = play(strategy("return None"), COOPERATE, COOPERATE)
    hostile = int(batch.groups[0, 0])
    [result] = workers.play([Batch(batch.game, batch.groups, 0, cooperate=frozenset({hostile}))])
    assert result.actions.all()


def test_who_takes_too_long_to_be_made_is_better_not_run_again(play: Play) -> None:
    result, batch = play(strategy("return C", init="while True: pass"), COOPERATE, DEFECT, rounds=1)
    error = result.errors[int(batch.groups[0, 0])]
    assert (error.what, error.round, error.spent) == ("took too long", -1, 1)
    assert error.stopped


def test_what_can_not_be_made_is_tried_again(play: Play) -> None:
    result, batch = play(strategy("return C", init="raise ValueError('no')"), COOPERATE, DEFECT, rounds=1)
    error = result.errors[int(batch.groups[0, 0])]
    assert (error.spent, error.stopped) == (0, False)


@pytest.mark.parametrize(
    ("body", "init", "lost"),
    [
        ("return C", "raise ValueError('no')", 5),
        ("if history.round_number == 3: raise MemoryError\nif history.round_number: return 1\nreturn C", "pass", 4),
        ("if history.round_number == 2: return None\nreturn C", "pass", 1),
    ],
)
def test_every_decision_that_is_not_made_counts(play: Play, body: str, init: str, lost: int) -> None:
    result, batch = play(strategy(body, init=init), COOPERATE, DEFECT, rounds=5)
    assert result.errors[int(batch.groups[0, 0])].count == lost


def test_decisions_of_a_strategy_that_is_not_run_any_more_count(play: Play, workers: Workers) -> None:
    _, batch = play(COOPERATE, DEFECT, DEFECT, rounds=5)
    index = int(batch.groups[0, 0])
    [result] = workers.play([replace(batch, broken=frozenset({index}))])
    assert {strategy: one.count for strategy, one in result.errors.items()} == {index: 5}
    assert not result.actions.any()


@pytest.mark.parametrize(("body", "init"), [("raise MemoryError", "pass"), ("return C", "raise MemoryError")])
def test_a_strategy_that_takes_too_much_again_and_again_is_not_run_for_ever(play: Play, body: str, init: str) -> None:
    greedy = strategy(body, init=init, name="Strategy_SELFISH_10")
    result, _ = play(*[greedy] * 11, DEFECT, rounds=2)
    assert not result.actions.any()
    [error] = result.errors.values()
    assert (error.what, error.count, error.spent) == ("asked for too much memory", 22, MOST_SPENT)
    assert "others of it took too long or too much memory" in error.seats["0 10"]["what"]


def test_memory_that_one_strategy_hoards_is_not_blamed_on_another(play: Play) -> None:
    hoarder = strategy(
        "self.kept.append(bytearray(60 * 10 ** 6))\nreturn D", name="Strategy_SELFISH_4", init="self.kept = []"
    )
    eater = strategy("x = bytearray(30 * 10 ** 6)\nreturn C", name="Strategy_COLLECTIVE_5")
    result, batch = play(hoarder, eater, COOPERATE)
    assert list(result.errors) == [int(batch.groups[0, 0])]
    assert result.actions[0, :, 1].all()


def test_reseeding_changes_nobody_elses_random_numbers(play: Play) -> None:
    drawing = strategy("return C if random.random() < 0.5 else D", name="Strategy_SELFISH_6")
    reseeding = strategy("random.seed(1)\nnp.random.seed(1)\nreturn D", name="Strategy_SELFISH_7")
    with_it, _ = play(drawing, drawing, reseeding)
    without, _ = play(drawing, drawing, DEFECT)
    assert np.array_equal(with_it.actions, without.actions)
    assert not np.array_equal(with_it.actions[0, :, 0], with_it.actions[0, :, 1]), "each player draws its own"


@pytest.mark.parametrize(
    "keeping",
    [
        "seen = []\n    def note(self):\n        self.seen.append(1)\n        return len(self.seen)",
        "n = 0\n    def note(self):\n        Strategy_SELFISH_8.n += 1\n        return Strategy_SELFISH_8.n",
        "count = 0\n    def note(self):\n        type(self).count += 1\n        return type(self).count",
        "def note(self, seen=[]):\n        seen.append(1)\n        return len(seen)",
        "n = 0\n    def note(self):\n        kind = type(self)\n        kind.n += 1\n        return kind.n",
        "n = 0\n    def note(self):\n        self.kind = type(self)\n        self.kind.n += 1\n        return self.n",
        "def count(self): pass\n    kept = count\n    def note(self, kept=kept):\n"
        "        kept.n = getattr(kept, 'n', 0) + 1\n        return kept.n",
    ],
)
def test_players_of_one_class_share_nothing(play: Play, keeping: str) -> None:
    sharing = strategy("return C if self.note() == history.round_number + 1 else D", name="Strategy_SELFISH_8")
    result, _ = play(*[sharing + f"    {keeping}\n"] * 3, rounds=4)
    assert result.actions.all()
    assert not result.errors


def test_a_history_that_is_kept_shows_its_own_player_alone(play: Play) -> None:
    looking = strategy(
        """
        self.kept.append(history)
        own = [bool(h.my_actions.sum() == h.round_number) for h in self.kept]
        return C if all(own) and len(history.my_actions) == history.round_number else D
        """,
        name="Strategy_SELFISH_9",
        init="self.kept = []",
    )
    result, _ = play(looking, DEFECT, DEFECT)
    assert result.actions[0, :, 0].all()
    assert not result.errors


def test_a_short_text_of_very_much_code_is_refused(workers: Workers) -> None:
    # Python compiles the end of a `finally` twice, and so each block in it.
    blocks = "".join(f"{'    ' * depth}try: pass\n{'    ' * depth}finally:\n" for depth in range(15))
    [found] = workers.load("test.py", HEAD + strategy(blocks + "    " * 15 + "pass\nreturn C"))
    assert "bytes of code; at most" in found.problems[0]


def test_a_file_that_is_no_python_is_named(workers: Workers) -> None:
    with pytest.raises(ValueError, match=r"bad\.py can't be read as Python \(line 2\)"):
        workers.load("bad.py", "x = 1\ny = (\n")
    with pytest.raises(ValueError, match=r"bad\.py can't be"):
        workers.load("bad.py", "x = " + "-" * 100_000 + "1")
    assert workers.load("good.py", HEAD + COOPERATE)


PROBES = """
    import os, signal, socket
    from labmates_populations.engine.kernel.confine import confine
    import numpy as np
    confine(200 << 20)
    def refused(action):
        try:
            action()
        except (OSError, ImportError, MemoryError):
            return True
        return False
    results = [
        refused(lambda: open("/etc/passwd")),
        refused(lambda: open("/tmp/labmates-made", "w")),
        refused(lambda: os.listdir("/")),
        refused(lambda: os.mkdir("/tmp/labmates-made")),
        refused(lambda: socket.socket()),
        refused(lambda: socket.socketpair()),
        refused(lambda: os.fork()),
        refused(lambda: os.execv("/bin/true", ["true"])),
        refused(lambda: os.posix_spawn("/bin/true", ["true"], {})),
        refused(lambda: os.kill(os.getppid(), 0)),
        refused(lambda: signal.setitimer(signal.ITIMER_REAL, 1)),
        refused(lambda: os.pipe()),
        refused(lambda: os.setuid(0)),
        refused(lambda: os.chdir("/")),
        refused(lambda: __import__("sqlite3")),
        refused(lambda: bytearray(10 ** 10)),
        refused(lambda: np.ones(10 ** 9)),
        np.ones(1000).sum() == 1000,
    ]
    os.write(1, repr([int(bool(one)) for one in results]).encode())
    os._exit(0)
"""


def test_a_confined_process_can_only_compute() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROBES)], capture_output=True, text=True, check=False, timeout=200
    )
    assert done.stdout == repr([1] * 18), done.stderr
    assert not Path("/tmp/labmates-made").exists()


ANOTHER_MACHINE = """
import os
_path = os.path.join(os.path.dirname(os.__file__), "platform.py")
exec(compile(open(_path).read(), _path, "exec"))
def machine():
    return "pdp11"
"""


def test_where_nothing_can_be_confined_nothing_runs_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    usual = workers_module._environment()
    (tmp_path / "platform.py").write_text(ANOTHER_MACHINE)
    path = f"{tmp_path}:{usual['PYTHONPATH']}"
    monkeypatch.setattr(workers_module, "_environment", lambda: {**usual, "PYTHONPATH": path})
    for unsafe in (False, True):
        with Workers(processes=1, unsafe=unsafe) as made:
            [found] = made.load("test.py", HEAD + COOPERATE)
            batch = Batch(make_repeated("collective-risk", 2, 2), np.array([[found.index] * 2]), seed=0)
            if unsafe:
                assert made.play([batch])[0].actions.all()
            else:
                with pytest.raises(ValueError, match=r"can't be confined .*pdp11.* --sandbox unsafe-local"):
                    made.play([batch])
