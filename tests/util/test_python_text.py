"""Python in texts is read in any thread."""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labmates.util.python_text import parsed, statements

SOURCE = Path(__file__).read_text(encoding="utf-8") * 20


class _Cycle:
    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        sum(range(200))


@pytest.fixture
def quick_switches() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("quick_switches")
def test_threads_that_read_code_while_garbage_is_collected_do_not_disturb_each_other() -> None:
    def read(i: int) -> int:
        [_Cycle() for _ in range(50)]
        if i % 2:  # as other libraries do
            with contextlib.suppress(SystemError):
                ast.parse(SOURCE)
        return len(parsed(SOURCE).body)

    with ThreadPoolExecutor(8) as threads:
        assert len({*threads.map(read, range(200))}) == 1


def test_a_text_that_is_no_code_has_no_statements() -> None:
    assert statements("two words") is None
    assert statements("x = 1\ny = 2") is not None
