"""Errors that a user can act on.

Every error that labmates raises on purpose derives from `LabmatesError`; its text states the problem and what
is allowed. The command line prints that text without a traceback.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from pydantic import ValidationError


_PASSWORD = re.compile(r"(://[^\s/?#:@'\"]*):[^\s'\"]*@")


def without_password(text: str) -> str:
    """Text whose URLs have ``***`` for their passwords."""
    return _PASSWORD.sub(r"\1:***@", text)


class LabmatesError(Exception):
    """Base of all errors that labmates raises on purpose; passwords in URLs are masked."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*(without_password(part) if isinstance(part, str) else part for part in parts))

    def _render_traceback_(self) -> list[str]:
        """The error in a notebook: IPython shows these lines in place of frames."""
        return [f"{type(self).__name__}: {self}"]


class UsageError(LabmatesError, ValueError):
    """The caller's request is invalid: the command line exits with 2."""


class MissingExtraError(UsageError):
    """Optional dependencies of a requested part are missing."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}': pip install 'labmates[{extra}]'")


def unknown_name(what: str, name: str, known: Iterable[str]) -> UsageError:
    """The error for an unknown `name`; it suggests the nearest of the `known` names."""
    names = sorted(known)
    return UsageError(f"unknown {what} '{name}'.{did_you_mean(name, names)} Known: {', '.join(names) or 'none'}.")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that suggests the nearest known name; empty if none is near."""
    from difflib import get_close_matches  # `labmates --help` does without

    close = get_close_matches(name, list(known), n=1)
    return f" Did you mean '{close[0]}'?" if close else ""


def reason(error: Exception) -> str:
    """Why a file can't be read or written, without numbers of errors and names of codecs."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 text (byte {error.start})"
    return getattr(error, "strerror", None) or str(error)


@contextmanager
def telling(what: str, *others: type[Exception]) -> Iterator[None]:
    """Make a `UsageError`, `what` with the reason, of the block's failure to read or write, and of `others`."""
    told: tuple[type[Exception], ...] = (OSError, UnicodeDecodeError, *others)
    try:
        yield
    except told as error:
        raise UsageError(f"{what}: {reason(error)}") from error


@contextmanager
def explaining(names: Callable[[str], str] = str, known: Iterable[str] = (), *, head: str = "") -> Iterator[None]:
    """Make a `UsageError`, `head` with the faults, of pydantic's error in the block; see `explain`."""
    from pydantic import ValidationError

    try:
        yield
    except ValidationError as error:
        raise UsageError(head + explain(error, names, known)) from error


def explain(error: ValidationError, names: Callable[[str], str] = str, known: Iterable[str] = ()) -> str:
    """The faults in a pydantic validation error, one per line.

    Parameters
    ----------
    names
        Turns a field's path (``"team_size"``) into the user's name for it (``"--team-size"``).
    known
        The allowed keys, for the message about an unknown one.
    """
    lines = []
    faults = error.errors()
    broken = {fault["loc"][:1] for fault in faults if fault["type"] != "too_short"}
    for fault in faults:
        if fault["type"] == "too_short" and fault["loc"] in broken:
            continue  # pydantic does not count the invalid entry
        if fault["type"] == "extra_forbidden" and len(fault["loc"]) == 1 and known:
            lines.append(str(unknown_name("key", str(fault["loc"][0]), known)))
            continue
        where = names(".".join(str(part) for part in fault["loc"])) if fault["loc"] else ""
        lines.append(f"{where}: {plain_fault(fault)}" if where else plain_fault(fault))
    return "\n".join(lines)


_PLAIN: dict[str, str] = {
    **dict.fromkeys(("list_type", "tuple_type", "set_type"), "expected a list, e.g. [a, b]"),
    **dict.fromkeys(
        ("dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type"),
        "expected keys with values, e.g. {{key: value}}",
    ),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "expected a whole number"),
    **dict.fromkeys(("float_type", "float_parsing", "decimal_type", "decimal_parsing"), "expected a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "expected true or false"),
    "finite_number": "expected a finite number",
    "extra_forbidden": "unknown key",
    "missing": "this key is missing",
    "json_invalid": "invalid JSON: {error}",
    "string_type": "expected a text",
    "too_short": "needs at least {min_length}",
    "too_long": "takes at most {max_length}",
    "string_too_short": "needs at least {min_length} characters",
    "string_too_long": "takes at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "is_instance_of": "expected {class}",
    "union_tag_invalid": "unknown {discriminator} '{tag}'; known: {expected_tags}",
    "union_tag_not_found": "the key {discriminator} is missing",
    **dict.fromkeys(("literal_error", "enum"), "expected {expected}"),
    "greater_than": "must be above {gt:.15g}",
    "greater_than_equal": "must be at least {ge:.15g}",
    "less_than": "must be below {lt:.15g}",
    "less_than_equal": "must be at most {le:.15g}",
}
"""Message by type of pydantic's fault."""
_OURS = ("value_error", "assertion_error")
"""Types of faults with a message from a validator."""


def plain_fault(fault: Mapping[str, Any]) -> str:
    """The message for one of pydantic's faults (``ValidationError.errors()``) in a user's values."""
    from pydantic_core.core_schema import ErrorType  # `labmates --help` does without

    kind, given = fault["type"], fault["input"]
    known = _PLAIN.get(kind, "invalid value" if kind in get_args(ErrorType) and kind not in _OURS else None)
    if known is None:
        # Some messages quote the value or a part of it; quoting a whole record would not help.
        message = str(fault["msg"]).removeprefix("Value error, ")
        quoted = "(given: " in message or f"'{given}'" in message or isinstance(given, Mapping)
        return message if quoted else f"{message} (given: {repr(given)[:80]})"
    is_value = kind not in ("extra_forbidden", "json_invalid") and not isinstance(given, Mapping | list | tuple)
    shown = f", not {given!r:.80}" if is_value else ""
    if given is None:
        shown = "; nothing stands here"
    return known.format(**fault.get("ctx", {})) + shown
