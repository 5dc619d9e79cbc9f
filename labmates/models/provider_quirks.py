"""Request parameters that a server's model supports, learned from its refusals."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from labmates.models.failures import ErrorBody
from labmates.models.prefix import CACHE_FIELD

LIMITS = ("max_tokens", "max_completion_tokens")
"""Names of the output limit: most compatible servers know the first, OpenAI's newer models only the second."""

UNASKED = ("stream_options", CACHE_FIELD)
"""Parameters that are added to calls."""
OPTIONAL = ("seed", "temperature", *UNASKED)
"""Parameters that may be left out."""

UNSUPPORTED = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|extra (?:inputs|fields)|extra_forbidden|not permitted"
    r"|not allowed|deprecated|no longer|unavailable",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Dialect:
    """Request parameters of one model."""

    limit: str  # name of the limit on a reply's tokens
    # Optional parameters that the server refused, and a name of the limit that it refused.
    dropped: frozenset[str] = frozenset()

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

    def without_refused(self, body: ErrorBody, sent: Collection[str]) -> Dialect | None:
        """The dialect without the parameter that the server reports as unsupported, given the `sent` names.

        None if the refusal isn't about a parameter that can be omitted or renamed; a too large value is not.
        """
        if not UNSUPPORTED.search(f"{body.message} {body.code} {body.type}"):
            return None
        named = [body.param] if body.param in sent else [name for name in sent if mentions(body.message, name)]
        for name in named:
            if name in OPTIONAL:
                return replace(self, dropped=self.dropped | {name})
            if name in LIMITS and not self.dropped & set(LIMITS):
                other = LIMITS[1 - LIMITS.index(name)]
                return Dialect(other, self.dropped | {name})
        return None


def mentions(message: str, name: str) -> bool:
    """Whether a text names a parameter."""
    return re.search(rf"\b{re.escape(name)}\b", message) is not None
