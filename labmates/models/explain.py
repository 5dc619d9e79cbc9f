"""The error that a caller gets for a call that failed: what happened, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

from labmates.models.endpoints import Endpoint
from labmates.models.errors import ContextOverflowError, EndpointError, ModelCallError
from labmates.models.failures import Failure, context_limits
from labmates.models.names import ModelName
from labmates.models.provider_quirks import UNSUPPORTED, mentions


def call_error(model: ModelName, endpoint: Endpoint, attempts: int, failures: Sequence[Failure]) -> ModelCallError:
    """Return the error for a call whose last failure ended it.

    Parameters
    ----------
    model, endpoint
        Which model was asked, and where.
    attempts
        Number of HTTP attempts.
    failures
        All failed attempts, in order; not empty.
    """
    last = failures[-1]
    kind = ContextOverflowError if last.kind == "overflow" else EndpointError
    if last.kind == "overflow":
        text = _overflow(last)
    elif last.kind == "refused":
        text = _refusal(last, model, endpoint)
    else:
        text = f"no reply after {attempts} attempt{'s' if attempts > 1 else ''}; the last one: {last}"
    error = kind(
        f"{model} at {endpoint.address}: {text}",
        model=str(model),
        endpoint=endpoint.address,
        status=last.status,
        attempts=attempts,
        errors=tuple(map(str, failures)),
    )
    if isinstance(error, ContextOverflowError):
        error.limit, error.requested = context_limits(last.body)
    return error


def _overflow(failure: Failure) -> str:
    limit, requested = context_limits(failure.body)
    if limit is None:
        return f"the prompt is too long for the model's context ({failure.reason})"
    needed = "" if requested is None else f"; the call needs {requested:,}"
    return f"the prompt is too long: the model's context takes {limit:,} tokens{needed}"


def _refusal(failure: Failure, model: ModelName, endpoint: Endpoint) -> str:
    key = endpoint.key_name or "the environment"
    match failure.status:
        case 401 if not endpoint.key:
            return f"the server wants a key, and {key} is not set"
        case 401:
            return f"the server refused the key in {key} ({failure.reason})"
        case 403:
            return f"the key in {key} may not use this model ({failure.reason})"
        case 404:
            unknown = f"the server doesn't know the model '{model.name}', or the base URL is not that of its API"
            return f"{unknown} ({failure.reason})"
        case 400 | 422 if (setting := _refused_setting(failure, model)) is not None:
            told = f"the server does not take the setting {setting} ({failure.reason})"
            return f"{told}; leave it out of the model's settings, or of the condition"
        case _:
            return f"the server refused the call ({failure})"


def _refused_setting(failure: Failure, model: ModelName) -> str | None:
    """Return the setting that the server says it doesn't support; None if it names none."""
    body = failure.body
    if not UNSUPPORTED.search(f"{body.message} {body.code} {body.type}"):
        return None
    settings = model.settings.given()
    extra = [f"extra_body.{name}" for name in settings.pop("extra_body", {})]
    named = [*extra, *settings, "temperature"]  # That one may be the condition's.
    return next((one for one in named if mentions(f"{body.message} {body.param}", one.rpartition(".")[2])), None)
