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
        self._secrets = tuple(sorted({secret for secret in secrets if len(secret) >= FRAGMENT}))

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
        for secret in self._secrets:
            text = _mask_pieces(text, secret)
        for pattern in PATTERNS:
            text = pattern.sub(MASK, text)
        return without_password(text)

    def __repr__(self) -> str:
        return f"Redactor({len(self._secrets)} secrets)"


def _mask_pieces(text: str, secret: str) -> str:
    lowered, secret = text.lower(), secret.lower()
    if len(lowered) != len(text):
        lowered = text  # Some letters change their length in lower case; then the match is case-sensitive.
    hidden = bytearray(len(text))
    for start in range(len(secret) - FRAGMENT + 1):
        piece = secret[start : start + FRAGMENT]
        at = lowered.find(piece)
        while at >= 0:
            hidden[at : at + FRAGMENT] = b"\x01" * FRAGMENT
            at = lowered.find(piece, at + 1)
    if not any(hidden):
        return text
    parts: list[str] = []
    for at, char in enumerate(text):
        if not hidden[at]:
            parts.append(char)
        elif not (at and hidden[at - 1]):
            parts.append(MASK)
    return "".join(parts)
