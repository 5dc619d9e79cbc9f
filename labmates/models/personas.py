"""Personas: a text of the researcher's at the end of the system message of all calls of a model.

A persona's name in conditions is its first words and the start of the SHA-256 digest of its text
(``openai:gpt-5.4-mini?persona=you-care-about-080fc30d``); the text stands with the model's connection.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

MOST_CHARS: Final = 4000
_NAMED = re.compile(r"[a-z0-9-]*\b[0-9a-f]{8}")
_LABEL_CHARS = 16


def is_named(persona: str) -> bool:
    """Whether a setting is the name of a persona, not its text."""
    return _NAMED.fullmatch(persona) is not None


def persona_name(text: str) -> str:
    """The name of a persona with this text.

    >>> persona_name("You care about what everyone earns.")
    'you-care-about-080fc30d'
    """
    words = "-".join(re.findall(r"[a-z0-9]+", text.lower()))
    label = words if len(words) <= _LABEL_CHARS else words[: _LABEL_CHARS + 1].rpartition("-")[0]
    return "-".join(filter(None, (label, hashlib.sha256(text.encode()).hexdigest()[:8])))
