"""Text that is data, marked off from the words of a prompt."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from labmates.judges.injection import MOST_CHARS, screen

_CUT = "[cut here: the report goes on for {} more characters]"


@dataclass(frozen=True)
class Fenced:
    """A report as a model gets it.

    Attributes
    ----------
    text
        As it was written, between two lines that hold the `mark`.
    mark
        What nobody who wrote the report can have written into it.
    injections
        The flagged passages, which may address the judge; they are in `text`.
    without
        The same without them.
    """

    text: str
    mark: str
    injections: tuple[str, ...]
    without: str


def fenced(report: str) -> Fenced:
    """Put a report between two marked lines.

    The mark is a hash of the report, 32 hexadecimal digits: to end the fence within the report, one would have to write
    a text that holds its own hash. So it can't be guessed, and the prompt of the same report is still the same each
    time.
    """
    mark = hashlib.blake2b(report.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    screened = screen(report)
    more = len(report) - MOST_CHARS
    cut = f"\n{_CUT.format(more)}" if more > 0 else ""
    text, without = (
        f"[report {mark} begins]\n{one}{cut}\n[report {mark} ends]" for one in (screened.text, screened.without)
    )
    return Fenced(text, mark, screened.found, without)
