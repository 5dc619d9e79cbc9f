"""A private salt: data sets that can't be regenerated from public code.

Seeds are small numbers and the generators are public, so the truth could be recomputed. With ``LABMATES_SALT`` set, a
generator gets a keyed 128-bit hash of the seed. The key and the fingerprint, which is recorded with runs, are different
parts of the scrypt hash of the salt: the fingerprint reveals nothing about the key, and each guess of the salt takes
32 MB of memory and about a tenth of a second.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from typing import NamedTuple

from labmates.errors import UsageError

VARIABLE = "LABMATES_SALT"
LEAST_CHARS = 16
_COST, _BLOCK, _MEMORY = 2**15, 8, 2**26
_PURPOSE = b"labmates data sets"
_TOP_BIT = 2**127


class _Salt(NamedTuple):
    key: bytes
    fingerprint: str

    def __repr__(self) -> str:
        return f"_Salt({self.fingerprint})"


def salt_fingerprint() -> str | None:
    """A fingerprint of the current salt, 16 hexadecimal digits that don't reveal it; None without a salt.

    Raises `UsageError` if the salt is too short.
    """
    salt = _in_use()
    return salt.fingerprint if salt else None


def data_seed(seed: int) -> int:
    """The generator's seed for a public `seed`: the seed itself, or with a salt, a 128-bit number.

    Raises `UsageError` if the salt is too short.
    """
    salt = _in_use()
    if salt is None:
        return seed
    digest = hashlib.blake2b(str(seed).encode(), key=salt.key, digest_size=16).digest()
    return int.from_bytes(digest, "big") | _TOP_BIT


def _in_use() -> _Salt | None:
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return None
    if len(text) < LEAST_CHARS:
        raise UsageError(
            f"{VARIABLE}: a salt of {len(text)} characters can be guessed; use at least {LEAST_CHARS} random ones "
            '(try: python -c "import secrets; print(secrets.token_urlsafe(24))")'
        )
    return _stretched(text)


@lru_cache(maxsize=4)
def _stretched(text: str) -> _Salt:
    made = hashlib.scrypt(
        text.encode(errors="surrogateescape"), salt=_PURPOSE, n=_COST, r=_BLOCK, p=1, maxmem=_MEMORY, dklen=40
    )
    return _Salt(made[:32], made[32:].hex())
