"""Text that is safe to show: models' replies must not control a terminal or an editor."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


PLAIN_LETTERS = "letters (A-Z and a-z, no accents)"
_PASSWORD = re.compile(r"(://[^\s/?#:@'\"]*):[^\s'\"]*@")


def without_password(text: str) -> str:
    """Text whose URLs have ``***`` for their passwords."""
    return _PASSWORD.sub(r"\1:***@", text)


def clean(text: str) -> str:
    """Text without control characters."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))
