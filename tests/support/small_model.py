"""A real language model of 135 million parameters, for tests marked ``needs("gguf")``."""

from __future__ import annotations

SMOLLM2 = "gguf:smollm2?threads=1"
"""One thread: beside other tests, two would mostly wait for each other."""
