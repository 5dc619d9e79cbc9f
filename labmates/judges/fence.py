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
        Between two lines that hold the `mark`, without the sentences that address the judge.
    mark
        What nobody who wrote the report can have written into it.
    injections
        The sentences that were left out.
    """

    text: str
    mark: str
    injections: tuple[str, ...]


def fenced(report: str) -> Fenced:
    """Put a report between two marked lines.

    The mark is a hash of the report, 32 hexadecimal digits: to end the fence within the report, one would have to write
    a text that holds its own hash. So it can't be guessed, and the prompt of the same report is still the same each
    time.
    """
    mark = hashlib.blake2b(report.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    screened = screen(report)
    more = len(report) - MOST_CHARS
    text = screened.text if more <= 0 else f"{screened.text}\n{_CUT.format(more)}"
    return Fenced(f"[report {mark} begins]\n{text}\n[report {mark} ends]", mark, screened.found)
