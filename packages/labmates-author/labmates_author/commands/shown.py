"""What the commands print: the rules of a trial, the problems of a check, the files of a new package."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from labmates.util.grouping import grouped
from labmates.workflows.protocol.analysis import Result
from labmates.workflows.protocol.catalogue import Named

if TYPE_CHECKING:
    from labmates.stats.tables import Table
    from labmates_author.trial import Trial

_MOST_TEXTS: Final = 4
"""Maximum printed problems of one rule; ``--json`` has all."""
_MOST_PLACES: Final = 3


class NewParams(Named):
    """A package with a new entry."""

    folder: str | None = Field(None, description="Folder to write to, new or empty. [default: NAME]")


def verdict(name: str, trial: Trial, *, head: str = "", tables: Sequence[Table] = (), **facts: Any) -> Result:
    """The outcome of a trial, a line per rule; `head` is the first line, `facts` are of the JSON object."""
    rules = list(trial.verdicts())
    found = [severity for rule in rules for severity, _ in {(one["severity"], one["text"]) for one in rule["problems"]}]
    lines = [line for rule in rules for line in _rule_lines(**rule)]
    errors, warnings = (
        f"{number} {kind}{'s' * (number != 1)}" for kind in ("error", "warning") for number in [found.count(kind)]
    )
    total = f"{'passed' if trial.passed else 'failed'}: {errors}, {warnings}"
    fault = None if trial.passed else f"{name} does not pass the check"
    objects = [{**facts, "passed": trial.passed, "rules": rules}]
    return Result(tables, verdict=[*([head] if head else []), *lines, total], objects=objects, fault=fault)


def _rule_lines(rule: str, status: str, about: str, problems: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """One rule: a line if it holds or was not tried, else its violations and their places."""
    if not problems:
        yield f"{status:<10}{rule:<14}{about}"
    places = grouped(((problem["severity"], problem["text"]), problem["where"]) for problem in problems)
    for (severity, text), all_places in sorted(places.items())[:_MOST_TEXTS]:
        more = f" and {len(all_places) - _MOST_PLACES} more" if len(all_places) > _MOST_PLACES else ""
        where = "; ".join(filter(None, all_places[:_MOST_PLACES])) + more
        yield f"{severity:<10}{rule:<14}" + (f"{text} [{where}]" if where else text)
    if len(places) > _MOST_TEXTS:
        yield f"{'':<10}{rule:<14}and {len(places) - _MOST_TEXTS} more; --json prints all"


def checked(name: str, problems: Sequence[str]) -> Result:
    """The problems of something that was checked."""
    text = f"{name}: {len(problems) or 'no'} problem{'s' * (len(problems) != 1)}."
    return Result((), verdict=[*problems, text], fault=f"{name} does not pass the check" if problems else None)


def written(folder: Path, paths: Iterable[Path], *commands: str) -> Result:
    """The files of a new package, and what to do next."""
    lines = [
        *(f"wrote {folder / path}" for path in paths),
        "Next, in the environment that has labmates:",
        f"  pip install -e {shlex.quote(str(folder))}",
        *(f"  {command}" for command in commands),
        f"{folder / 'README.md'} lists what to change.",
    ]
    return Result((), verdict=lines)
