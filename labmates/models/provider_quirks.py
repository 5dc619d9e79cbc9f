"""Request parameters that a model at a server supports, learnt from its refusals."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from labmates.models.failures import ErrorBody
from labmates.models.prefix import CACHE_FIELD

LIMITS = ("max_tokens", "max_completion_tokens")
"""The two names of the limit on a reply: most compatible servers know the first, OpenAI's newer models only
the second."""

UNASKED = ("stream_options", CACHE_FIELD)
"""Parameters that a call may have without having been given them."""
OPTIONAL = ("seed", "temperature", *UNASKED)
"""Parameters that a call can do without."""

UNSUPPORTED = re.compile(
    r"unsupported|not support|unrecogni[sz]ed|unknown|unexpected|extra (?:inputs|fields)|extra_forbidden|not permitted"
    r"|not allowed|deprecated|no longer|unavailable",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Dialect:
    """Request parameters of one model.

    Attributes
    ----------
    limit
        Name of the limit on a reply's tokens.
    dropped
        Optional parameters that the server refused, and a name of the limit that it refused.
    """

    limit: str
    dropped: frozenset[str] = frozenset()

    def arguments(
        self, *, seed: int, max_output_tokens: int, temperature: float | None, insisted: Collection[str] = ()
    ) -> dict[str, Any]:
        """The parameters of one call; those `insisted` on are among them, whatever was refused before."""
        wanted: dict[str, Any] = {"seed": seed, self.limit: max_output_tokens}
        if temperature is not None:
            wanted["temperature"] = temperature
        if "stream_options" in self.dropped:
            wanted["stream_usage"] = False  # How LangChain names it.
        arguments = {name: value for name, value in wanted.items() if name not in self.dropped or name in insisted}
        return {**arguments, CACHE_FIELD: False} if CACHE_FIELD in self.dropped else arguments

    def without_refused(self, body: ErrorBody, sent: Collection[str]) -> Dialect | None:
        """The dialect without the parameter that the server says it doesn't support.

        Parameters
        ----------
        body
            The server's refusal.
        sent
            Names of the parameters that were sent.

        Returns
        -------
        Dialect or None
            None if the refusal isn't about a parameter that can be left out or named otherwise. A value that
            is too large is no unsupported parameter.
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
