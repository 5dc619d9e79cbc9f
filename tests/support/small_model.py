"""A real language model of 135 million parameters, for tests marked ``needs("gguf")``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from labmates.models.catalog import Catalog
from labmates.models.endpoints import endpoint_of
from labmates.models.names import parse_model
from labmates.models.options import ModelOptions
from labmates_gguf.server import acquire

SMOLLM2 = "gguf:smollm2?threads=1"
"""One thread: beside other tests, two would mostly wait for each other."""


@contextmanager
def served(reference: str = SMOLLM2) -> Iterator[tuple[str, ModelOptions]]:
    """Keep one server of a model for several tests; its name and the options of calls."""
    catalog = Catalog(named={})
    name = catalog.name_of(reference)
    weights = endpoint_of(parse_model(name), catalog.options(), {}).weights
    assert weights is not None
    server = acquire(weights)
    try:
        yield name, catalog.options()
    finally:
        server.release()
