from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from labmates_populations.engine.workers import Batch, Result, Workers
from labmates_populations.repeated import make_repeated
from tests.support.strategies import HEAD

Play = Callable[..., tuple[Result, Batch]]


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(processes=1, seconds=0.2, memory=128 << 20) as made:
        yield made


@pytest.fixture
def play(workers: Workers) -> Play:
    """Plays one group of the given classes, each of which is a seat; the same class may have several."""

    def playing(*classes: str, game: str = "public-goods", rounds: int = 20, **options: Any) -> tuple[Result, Batch]:
        found = {source: workers.load("test.py", HEAD + source)[0] for source in dict.fromkeys(classes)}
        loaded = [found[source] for source in classes]
        assert [one.problems for one in loaded] == [()] * len(loaded)
        made = make_repeated(game, len(loaded), rounds, options.pop("rules", None))
        batch = Batch(made, np.array([[one.index for one in loaded]]), **{"seed": 0, **options})
        return workers.play([batch])[0], batch

    return playing
