"""Seeds: one number a run, and from it one number for everything in the run that draws at random."""

from __future__ import annotations

import hashlib

LARGEST_SEED = 2**53
"""Every reader of JSON and every data frame keeps integers up to here as they are."""

MOST_REPLICATES = 100_000
"""Most runs of one condition, each with the seed after that of the one before."""


def derive(seed: int, *path: str | int, bits: int = 31) -> int:
    """The seed of one place in a run, as an integer in [0, 2**bits).

    It depends on `seed` and on the `path` alone (for instance ``"data", 0, "lead", 3``), never on the order in which
    places are visited, so that a run repeats exactly whatever the concurrency.
    """
    text = "\x1f".join([str(seed), *(str(part) for part in path)])
    digest = hashlib.blake2b(text.encode(), digest_size=8 if bits <= 31 else 16).digest()
    return int.from_bytes(digest, "big") & ((1 << bits) - 1)
