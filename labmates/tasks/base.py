"""Science tasks: generators of data with a known truth, and scorers of reports about them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, Field

from labmates.errors import unknown_name

if TYPE_CHECKING:
    import pandas as pd

    from labmates.tasks.evidence import Instruments

Difficulty = Literal["easy", "medium", "hard"]
"""Noise, dirt and effect sizes of the data; each task documents its levels as data."""

DIFFICULTIES: tuple[Difficulty, ...] = get_args(Difficulty)

TruthT = TypeVar("TruthT", bound=BaseModel)
FindingsT = TypeVar("FindingsT", bound=BaseModel)
LevelT = TypeVar("LevelT")

_CSV_ROWS = 100


def finding(description: str, example: object, *, most: int | None = None) -> Any:
    """A field of a task's findings, which a report may leave out.

    Parameters
    ----------
    description
        Meaning and unit, for those who write reports.
    example
        A made-up value, which shows the form.
    most
        Maximum length of a list.
    """
    return Field(None, description=description, examples=[example], max_length=most)


def accuracy(credits: Sequence[Credit]) -> float:
    """The weighted mean of `credits`, in [0, 1]; 0 if there are none."""
    total = sum(credit.weight for credit in credits)
    return sum(credit.credit * credit.weight for credit in credits) / total if total else 0.0


def skill(accuracy: float, prior: float) -> float:
    """An accuracy corrected for guessing: 1 for a perfect report, 0 for one as good as the task's prior.

    Negative if the report is worse than the prior. NaN if the prior is perfect: nothing is left to find out.
    """
    return (accuracy - prior) / (1 - prior) if prior < 1 else math.nan


def level_of(levels: Mapping[Difficulty, LevelT], difficulty: Difficulty) -> LevelT:
    """The parameters of one difficulty.

    Raises
    ------
    UsageError
        If `difficulty` is none of the `levels`.
    """
    if difficulty not in levels:
        raise unknown_name("difficulty", difficulty, levels)
    return levels[difficulty]


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """A table as the bytes of a CSV file (UTF-8, line feeds, no index)."""
    # In small pieces, between which other threads get the interpreter's lock.
    return frame.to_csv(index=False, lineterminator="\n", chunksize=_CSV_ROWS).encode()


@dataclass(frozen=True)
class Dataset(Generic[TruthT]):
    """One synthetic data set.

    Attributes
    ----------
    frame
        The data as the agents get them, with a plain index.
    truth
        What is true of them; the agents never see it.
    description
        The data dictionary for the agents: columns, units and known habits of the recording, nothing of the truth.
    """

    frame: pd.DataFrame
    truth: TruthT
    description: str

    def csv(self) -> bytes:
        """The data as the bytes of a CSV file (UTF-8, line feeds, no index)."""
        return csv_bytes(self.frame)


@dataclass(frozen=True)
class Credit:
    """The score of one finding.

    Attributes
    ----------
    finding
        What was compared, for instance ``"shift_surveys"``.
    credit
        From 0 (wrong or not stated) to 1 (right within the task's tolerance).
    weight
        Its share in the accuracy, relative to the other findings; positive.
    reason
        What was stated and what is true, in one line.
    """

    finding: str
    credit: float
    weight: float
    reason: str


@dataclass(frozen=True)
class Check:
    """One rule on the words of a report, for the judge that works without a model.

    Attributes
    ----------
    name
        What the rule looks for, for instance ``"species counted"``.
    holds
        Tells whether a report's prose fulfils it; must cope with any text.
    """

    name: str
    holds: Callable[[str], bool]


class Task(ABC, Generic[TruthT, FindingsT]):
    """A science problem with synthetic data.

    Subclass it, set the class attributes, write the four abstract methods and `prior`, and declare the class under the
    entry-point group ``labmates.tasks``; `labmates.tasks.conformance.check_task` tells what is still missing.

    Attributes
    ----------
    name
        Name in the registry: lower-case letters, digits and underscores.
    title
        A few words for tables and headings.
    brief
        The project text that the agents get: what to find out. It holds for every seed, so it says nothing of any
        truth.
    version
        Changes whenever the data of a seed or the scoring change; it is recorded with every score.
    findings
        Pydantic model of the quantities that a good report states. Every field is optional with the default None and
        has a description with its unit, so that a partial report is valid.
    instruments
        The way in which its evidence is divided among instruments; None if it can't be divided.
    is_fixed
        Whether all seeds and difficulties have the same data, as recorded data do.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    brief: ClassVar[str]
    version: ClassVar[str]
    findings: type[FindingsT]
    instruments: ClassVar[Instruments[Any, Any] | None] = None
    is_fixed: ClassVar[bool] = False

    @abstractmethod
    def generate(self, seed: int, difficulty: Difficulty = "medium") -> Dataset[TruthT]:
        """The data set of `seed`: the same seed and difficulty give the same bytes on every machine."""

    @abstractmethod
    def oracle(self, truth: TruthT) -> FindingsT:
        """The findings that a perfect report states."""

    @abstractmethod
    def score(self, findings: FindingsT, truth: TruthT) -> tuple[Credit, ...]:
        """Compare stated `findings` with the `truth`, one credit for each finding; see `accuracy`."""

    @abstractmethod
    def checks(self, truth: TruthT) -> tuple[Check, ...]:
        """The rules on a report's words that tell whether it reports the key findings."""

    def prior(self, columns: Sequence[str], difficulty: Difficulty) -> FindingsT:
        """The best findings that can be stated without looking at the data.

        They earn what guessing earns, so scores can be corrected for it (see `skill`). Everything public may be used:
        the brief, the findings schema, how the data are generated. Seeds, values and truths may not, so the arguments
        are all that may differ between data sets. The default states nothing, which is right only if guessing earns
        nothing.

        Parameters
        ----------
        columns
            Names of the table's columns, in order.
        """
        return self.findings()

    def summary(self, truth: TruthT) -> str:
        """The truth in plain sentences, for people, for LLM judges and for the template report.

        The default lists the oracle's findings; a task whose `checks` look for certain words tells them in prose.
        """
        stated = self.oracle(truth).model_dump(mode="json", exclude_none=True)
        return "\n".join(f"The finding {name} is {value}." for name, value in stated.items())
