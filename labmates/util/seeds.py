"""Seeds: one per run, from which every random draw in the run derives its own."""

from __future__ import annotations

import hashlib

LARGEST_SEED = 2**53
"""The largest seed: JSON readers and data frames hold integers up to here exactly."""

MOST_REPLICATES = 100_000
"""Maximum number of runs per condition; each has the next seed."""


def derive(seed: int, *path: str | int, bits: int = 31) -> int:
    """The seed of one place in a run: an integer in [0, 2**bits).

    It depends only on `seed` and `path` (for instance ``"data", 0, "lead", 3``), never on the order of derivation, so
    a run repeats exactly at any concurrency.
    """
    text = "\x1f".join([str(seed), *(str(part) for part in path)])
    digest = hashlib.blake2b(text.encode(), digest_size=8 if bits <= 31 else 16).digest()
    return int.from_bytes(digest, "big") & ((1 << bits) - 1)
