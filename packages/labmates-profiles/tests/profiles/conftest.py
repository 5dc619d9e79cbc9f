from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def quick_compilation() -> Iterator[None]:
    """Let JAX compile without most optimisations: what is computed once takes longer to optimise than to compute."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
