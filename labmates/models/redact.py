"""Redaction of keys in errors and logs, including keys echoed by a server."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from labmates.errors import without_password

SECRET_NAME = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS|SALT)$", re.IGNORECASE)
PATTERNS = (
    re.compile(r"\bBearer\s+[^\s\"',;]+", re.IGNORECASE),
    re.compile(r"\b(?:sk|pk|rk|hf|gsk|xai|lsv2|AIza)[-_][\w*.-]{6,}"),
    # A key that the server masked (`sk-ab***********yz`) still shows both ends.
    re.compile(r"(?<![\w.-])[\w.-]*+\*{3,}[\w*.-]*"),
)
MASK = "[key]"
FRAGMENT = 8
"""Minimum length, in characters, of a part of a secret that counts as a leak."""


class Redactor:
    """Replaces secrets in text; values shorter than 8 characters (a local server's ``none``) don't count as secrets."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = [_pieces(secret) for secret in sorted(set(secrets)) if len(secret) >= FRAGMENT]

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *more: str) -> Redactor:
        """A redactor of all variables whose name suggests a secret, and of `more` values."""
        named = (value for name, value in environment.items() if SECRET_NAME.search(name))
        return cls([*named, *more])

    def __call__(self, text: str) -> str:
        """`text` with all secrets replaced by ``[key]``.

        This includes parts of 8 or more characters, in any case, everything that looks like a key, and passwords in
        URLs.
        """
        for pattern in (*self._secrets, *PATTERNS):
            text = pattern.sub(MASK, text)
        return without_password(text)

    def __repr__(self) -> str:
        return f"Redactor({len(self._secrets)} secrets)"


def _pieces(secret: str) -> re.Pattern[str]:
    """Matches each part of a secret of `FRAGMENT` or more characters, in any case."""
    pieces = (re.escape(secret[start : start + FRAGMENT]) for start in range(len(secret) - FRAGMENT + 1))
    return re.compile(rf"(?:(?={'|'.join(pieces)}).)+.{{{FRAGMENT - 1}}}", re.IGNORECASE | re.DOTALL)
