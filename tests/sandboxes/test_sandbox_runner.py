"""Parts of the runner that need no kernel; the rest is tested through the back ends."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labmates.sandboxes import runner
from labmates.sandboxes.runner.output import TextBudget, short_traceback


def test_the_runner_imports_nothing_of_ours() -> None:
    for path in Path(runner.__file__).parent.glob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        others = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.level != 1]
        names = {node.module or "" for node in others}
        names |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        assert not [name for name in names if name.startswith("labmates")], path
        assert all(node.level <= 1 for node in nodes if isinstance(node, ast.ImportFrom)), path


@given(st.lists(st.integers(0, 1_500_000), max_size=5))
def test_a_budget_sends_or_counts_every_character_and_keeps_the_end(lengths: list[int]) -> None:
    budget = TextBudget()
    pieces = [chr(97 + number) * length for number, length in enumerate(lengths)]
    whole, sent = "".join(pieces), "".join(budget.take(piece) for piece in pieces)
    tail = budget.tail()
    assert len(sent) + len(tail) + budget.dropped == len(whole)
    assert whole.startswith(sent)
    assert whole.endswith(tail)
    assert len(sent) <= 2_000_000
    assert not budget.dropped or len(tail) == 2_000


def raised_by(code: str, name: str = "<cell 1>") -> list[str]:
    try:
        exec(compile(code, name, "exec"), {})
    except Exception as error:
        return short_traceback(error, error.__traceback__)
    raise AssertionError("nothing was raised")


def test_a_traceback_shows_the_cell_and_the_last_call_of_a_library_with_a_short_path() -> None:
    lines = raised_by("import json\njson.loads('{')")
    assert [line for line in lines if line.lstrip().startswith("File")] == [
        '  File "<cell 1>", line 2, in <module>',
        next(line for line in lines if line.startswith('  File "json/decoder.py"')),
    ] or lines[1].startswith('  File "<cell 1>", line 2')
    assert not [line for line in lines if sys.prefix in line or sys.base_prefix in line]
    assert lines[-1].startswith("json.decoder.JSONDecodeError")


@pytest.mark.parametrize(
    "make",
    [
        lambda: raised_by("def f(): f()\nf()"),
        lambda: raised_by("\n".join(f"def f{n}(): f{n + 1}()" for n in range(300)) + "\ndef f300(): 1 / 0\nf0()"),
        lambda: raised_by("raise ValueError('x' * 10_000_000)"),
    ],
    ids=["recursion", "many calls", "long message"],
)
def test_a_traceback_is_short_whatever_was_raised(make: Callable[[], list[str]]) -> None:
    lines = make()
    assert len(lines) < 40
    assert sum(map(len, lines)) < 6_000
