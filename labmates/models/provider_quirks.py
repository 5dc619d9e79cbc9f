"""Request parameters that a server's model supports, learned from its refusals."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from labmates.models.error_bodies import ErrorBody
from labmates.models.prefix import CACHE_FIELD

LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the output limit: most compatible servers know the first, OpenAI's newer models only the second."""

UNASKED = ("stream_options", CACHE_FIELD)
"""Parameters that are added to calls."""
OPTIONAL = ("seed", "temperature", *UNASKED)
"""Parameters that may be left out."""

UNSUPPORTED = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|extra (?:inputs|fields)|extra_forbidden|not permitted"
    r"|not allowed|deprecated|no longer|unavailable|please remove|may only be set",
    re.IGNORECASE,
)

REQUIRING = ("anthropic", "bedrock", "google")
"""Beginnings of the names of providers that require what they attached: a refusal of it is never learnt."""
_EMPTY_REASONING = {"message": {"reasoning_content": ""}}
_NO_SIGNATURE = {"call": {"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}}}
FILLED = (
    (re.compile(r"reasoning_content[^.]{0,80}(?:must be passed|missing|required)"), _EMPTY_REASONING),
    (re.compile(r"missing\b.{0,8}thought_signature"), _NO_SIGNATURE),
)
"""Fields that servers require of replies with calls, by the text of the refusal (DeepSeek and Moonshot; Google), with
their values where none were kept: in replies of another model or of an earlier version. Google documents its value."""


@dataclass(frozen=True)
class Dialect:
    """What one model takes in a request: parameters, and what was attached to its replies."""

    limit: str  # name of the limit on a reply's tokens
    # Optional parameters and attached fields that the server refused, and a name of the limit that it refused.
    dropped: frozenset[str] = frozenset()
    filled: Mapping[str, Any] | None = None  # fields that the server requires of replies with calls

    def arguments(
        self, *, seed: int, max_output_tokens: int, temperature: float | None, insisted: Collection[str] = ()
    ) -> dict[str, Any]:
        """The parameters of one call; `insisted` ones are included even if refused before."""
        wanted: dict[str, Any] = {"seed": seed, self.limit: max_output_tokens}
        if temperature is not None:
            wanted["temperature"] = temperature
        if "stream_options" in self.dropped:
            wanted["stream_usage"] = False  # LangChain's name
        arguments = {name: value for name, value in wanted.items() if name not in self.dropped or name in insisted}
        return {**arguments, CACHE_FIELD: False} if CACHE_FIELD in self.dropped else arguments

    def without_refused(self, body: ErrorBody, sent: Collection[str], attached: Collection[str] = ()) -> Dialect | None:
        """The dialect without the parameter that the server reports as unsupported, given the `sent` names.

        `attached` are the names of fields that were sent back to the server. None if the refusal isn't about something
        that can be omitted, renamed or filled; a too large value is not.
        """
        for text, filled in FILLED:
            if text.search(body.message) and not (filled.items() <= (self.filled or {}).items()):
                return replace(self, filled={**(self.filled or {}), **filled})
        if not UNSUPPORTED.search(f"{body.message} {body.code} {body.type}"):
            return None
        named = [body.param] if body.param in sent else [name for name in sent if mentions(body.message, name)]
        named += [name for name in attached if name not in named and mentions(body.message, name)]
        for name in named:
            if name in OPTIONAL or name in attached:
                return replace(self, dropped=self.dropped | {name})
            if name in LIMITS and not self.dropped & set(LIMITS):
                other = LIMITS[1 - LIMITS.index(name)]
                return replace(self, limit=other, dropped=self.dropped | {name})
        return None


def mentions(message: str, name: str) -> bool:
    """Whether a text names a parameter."""
    return re.search(rf"\b{re.escape(name)}\b", message) is not None
