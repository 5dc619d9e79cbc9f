"""Science tasks: generators of data with a known truth, and scorers of reports about them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, TypeVar, get_args

from pydantic import BaseModel, Field

from labmates.errors import unknown_name

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from labmates.tasks.analysis import Analysis
    from labmates.tasks.restoring import Keys

Difficulty = Literal["easy", "medium", "hard"]
"""Noise, errors and effect sizes of the data; each task documents its levels as data."""

DIFFICULTIES: tuple[Difficulty, ...] = get_args(Difficulty)

TruthT = TypeVar("TruthT", bound=BaseModel)
FindingsT = TypeVar("FindingsT", bound=BaseModel)
LevelT = TypeVar("LevelT")

Share = Annotated[float, Field(ge=0, le=1)]
"""A finding that is a share: a percentage is invalid, so that its writer is told, not scored for another value."""

_CSV_ROWS = 100


def finding(description: str, example: object, *, most: int | None = None) -> Any:
    """An optional field of a task's findings.

    Parameters
    ----------
    description
        Meaning and unit, for writers of reports.
    example
        A made-up value that shows the form.
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

    Negative if the report is worse than the prior; NaN if the prior is perfect.
    """
    return (accuracy - prior) / (1 - prior) if prior < 1 else math.nan


def level_of(levels: Mapping[Difficulty, LevelT], difficulty: Difficulty) -> LevelT:
    """The parameters of one difficulty.

    Raises
    ------
    UsageError
        If `difficulty` is not one of the `levels`.
    """
    if difficulty not in levels:
        raise unknown_name("difficulty", difficulty, levels)
    return levels[difficulty]


def csv_bytes(frame: pd.DataFrame) -> bytes:
    """A table as the bytes of a CSV file (UTF-8, line feeds, no index)."""
    # Small chunks let other threads get the interpreter's lock.
    return frame.to_csv(index=False, lineterminator="\n", chunksize=_CSV_ROWS).encode()


@dataclass(frozen=True)
class Dataset(Generic[TruthT]):
    """One synthetic data set.

    Attributes
    ----------
    frame
        The agents' data, with a plain index.
    truth
        The truth, which agents never see.
    description
        The data dictionary for the agents: columns, units and known habits of the recording, without the truth.
    ideal
        Makes the findings of an ideal analysis, for a mark beside a run's: the truth's structure is known, its numbers
        are estimated from the table. None if the task has none.
    """

    frame: pd.DataFrame
    truth: TruthT
    description: str
    ideal: Callable[[], BaseModel] | None = field(default=None, compare=False, repr=False)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(map(str, self.frame.columns))

    def csv(self) -> bytes:
        """The data as the bytes of a CSV file (UTF-8, line feeds, no index)."""
        return csv_bytes(self.frame)


@dataclass(frozen=True)
class Credit:
    """The score of one finding.

    Attributes
    ----------
    finding
        Name of the finding, for instance ``"shift_surveys"``.
    credit
        From 0 (wrong or not stated) to 1 (right within the task's tolerance).
    weight
        Weight in the accuracy, relative to the other findings; positive.
    reason
        Stated and true value, in one line.
    """

    finding: str
    credit: float
    weight: float
    reason: str


@dataclass(frozen=True)
class Check:
    """A rule on the words of a report, for the judge without a model.

    Attributes
    ----------
    name
        Content that the rule requires, for instance ``"species counted"``.
    holds
        Whether a report's prose satisfies the rule; must accept any text.
    """

    name: str
    holds: Callable[[str], bool]


@dataclass(frozen=True)
class Division:
    """A divided data set.

    Attributes
    ----------
    plain
        The common table: the original without closed units; None if all are closed.
    tables
        Further tables, by instrument.
    """

    plain: pd.DataFrame | None
    tables: Mapping[str, Mapping[str, pd.DataFrame]]


class Instruments(ABC, Generic[TruthT, FindingsT]):
    """The division of a task's evidence among instruments.

    Attributes
    ----------
    about
        Data dictionary of each instrument's tables, by name; at least three, the one with the readings first.
    explains
        The instrument that knows the codes; only its holder gets the whole data dictionary.
    """

    about: ClassVar[Mapping[str, str]]
    explains: ClassVar[str]

    @abstractmethod
    def units(self, data: Dataset[TruthT]) -> tuple[str, ...]:
        """Unique names of the units that can be closed, in any order; closing all of them closes everything."""

    @abstractmethod
    def known(self, truth: TruthT, closed: Collection[str]) -> FindingsT:
        """The best findings from one part alone with these units closed, but not all of them."""

    @abstractmethod
    def divide(
        self, data: Dataset[TruthT], other: Dataset[TruthT], closed: Collection[str], rng: np.random.Generator
    ) -> Division:
        """Divide a data set.

        Parameters
        ----------
        other
            A data set of another seed, as a source of records of another campaign.
        closed
            The units to close, at least one.
        """

    def hand_over(self, frame: pd.DataFrame) -> Keys:
        """The keys that the holder of a part can give to the others: some tens of numbers as a JSON object."""
        from labmates.tasks import restoring  # it needs pandas

        return restoring.hand_over(frame)

    def combine(self, frame: pd.DataFrame, received: Sequence[Keys] = ()) -> pd.DataFrame | None:
        """The table that the holder of a part can restore with others' keys; None if the part has no readings."""
        from labmates.tasks import restoring  # it needs pandas

        return restoring.restored(frame, received)


class Task(ABC, Generic[TruthT, FindingsT]):
    """A science problem with synthetic data.

    Subclass it, set the class attributes, write the four abstract methods and `prior`, and declare the class under the
    entry-point group ``labmates.tasks``; ``labmates tasks check`` lists what is missing.

    Attributes
    ----------
    name
        Name in the registry: lower-case letters, digits and underscores.
    title
        A few words for tables and headings.
    brief
        The project text for the agents, with the questions. It is the same for every seed, so it reveals no truth.
    version
        Changes whenever the data of a seed or the scoring change; recorded with every score.
    findings
        Pydantic model of the quantities in a good report. Every field is optional with the default None and has a
        description with its unit, so that a partial report is valid.
    instruments
        Division of its evidence among instruments; None if it can't be divided.
    analysis
        Cells of code with which scripted baselines analyse the data; None if it has none, and they report nothing.
    is_fixed
        Whether all seeds and difficulties have the same data, such as recorded data.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    brief: ClassVar[str]
    version: ClassVar[str]
    findings: type[FindingsT]
    instruments: ClassVar[Instruments[Any, Any] | None] = None
    analysis: ClassVar[Analysis | None] = None
    is_fixed: ClassVar[bool] = False

    @abstractmethod
    def generate(self, seed: int, difficulty: Difficulty = "medium") -> Dataset[TruthT]:
        """The data set of `seed`: the same seed and difficulty give the same bytes on every machine."""

    @abstractmethod
    def oracle(self, truth: TruthT) -> FindingsT:
        """The findings of a perfect report."""

    @abstractmethod
    def score(self, findings: FindingsT, truth: TruthT) -> tuple[Credit, ...]:
        """Credits of stated `findings`, one for each finding; see `accuracy`."""

    @abstractmethod
    def checks(self, truth: TruthT) -> tuple[Check, ...]:
        """Rules on a report's words that detect the key findings."""

    def prior(self, columns: Sequence[str], difficulty: Difficulty) -> FindingsT:
        """The best findings without looking at the data.

        Their accuracy is that of guessing, so scores can be corrected for it (see `skill`). Use anything public: the
        brief, the findings schema, the generation of the data. Don't use seeds, values or truths: only the arguments
        may differ between data sets. The default states nothing, which is right only if guessing earns nothing.

        Parameters
        ----------
        columns
            Names of the table's columns, in order.
        """
        return self.findings()

    def summary(self, truth: TruthT) -> str:
        """The truth in plain sentences, for people, for LLM judges and for the template report.

        The default lists the oracle's findings; override it if `checks` require certain words.
        """
        stated = self.oracle(truth).model_dump(mode="json", exclude_none=True)
        return "\n".join(f"The finding {name} is {value}." for name, value in stated.items())
