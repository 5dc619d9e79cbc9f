"""Linear algebra on one thread: matrices are small here, and threads that wait for each other cost more than they do.

Measured on two busy cores: a fit of a second took four to six seconds of processor time with the threads of OpenBLAS.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep BLAS and LAPACK to one thread within."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
