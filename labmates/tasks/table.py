"""Tasks without code: a table, and a YAML file with questions and answers.

``labmates tasks new NAME --csv data.csv --answers answers.yaml`` writes a package with both files and a class of four
lines. All seeds and difficulties have the same data.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)

from labmates.errors import UsageError, plain_fault, telling
from labmates.tasks.base import Check, Credit, Dataset, Difficulty, Task
from labmates.tasks.scoring import NOT_STATED, plain_name, score_names, score_number, within
from labmates.tasks.words import says_all, says_name, says_number
from labmates.util.bounded_yaml import read_source

if TYPE_CHECKING:
    import pandas as pd

DATA: Final = "data.csv"
ANSWERS: Final = "answers.yaml"
CR_LF, LF = b"\r\n", b"\n"
ZERO: Final = 5
"""A number earns no credit from this many tolerances on."""
STEM: Final = 6
"""Letters of a name's word that a report has to have: "irrigation" for "irrigated"."""
EXAMPLE: Final = "answers: {slope: {about: 'slope of y over x', value: 2.5}}"

Text = Annotated[str, Field(max_length=200)]
Names = Annotated[list[Text], Field(max_length=100)]


def _valid(value: object) -> object:
    """An answer as findings hold it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    names = value if isinstance(value, list) and 0 < len(value) <= 100 else [value]
    is_finite = isinstance(value, float) and math.isfinite(value)
    if not (isinstance(value, bool) or is_finite or all(isinstance(name, str) and _is_name(name) for name in names)):
        raise ValueError("expected a finite number, true, false, a text, or a list of up to 100 texts")
    return value


def _is_name(text: str) -> bool:
    return len(text) <= 200 and bool(plain_name(text))


Value = Annotated[Any, AfterValidator(_valid)]


class Answer(BaseModel):
    """A quantity to report.

    Attributes
    ----------
    about
        Description with its unit, for agents.
    value
        The right answer: a number, true or false, a text, or a list of names.
    tolerance
        Largest relative error of a number with full credit; from five times that on it earns none.
    absolute
        The same as an error in the number's unit, in place of `tolerance`; a value of 0 needs it.
    guess
        The best answer without the data, if any: skill is the accuracy beyond it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    about: str = Field(min_length=1)
    value: Value
    tolerance: float = Field(0.05, gt=0, le=1)
    absolute: float | None = Field(None, gt=0, allow_inf_nan=False)
    weight: float = Field(1, gt=0, allow_inf_nan=False)
    guess: Value = Field(None, validate_default=False)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if {"tolerance", "absolute"} & self.model_fields_set and not isinstance(self.value, float):
            raise ValueError("only numbers have a tolerance")
        if {"tolerance", "absolute"} <= self.model_fields_set:
            raise ValueError("give tolerance (relative) or absolute, not both")
        if self.value == 0 and isinstance(self.value, float) and self.absolute is None:
            raise ValueError("no error is relative to 0: give absolute, the largest error with full credit in its unit")
        if self.guess is not None and type(self.guess) is not type(self.value):
            raise ValueError("the guess must be of the same type as the value")
        return self

    @property
    def kind(self) -> Any:
        """The type of the answer in the findings."""
        kinds = {bool: bool, float: float, str: Text, list: Names}
        return kinds[type(self.value)]


def _free(name: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or hasattr(BaseModel, name):
        raise ValueError("expected a name of lower-case letters, digits and underscores, other than model_… and copy")
    return name


FindingName = Annotated[str, AfterValidator(_free)]


class Answers(BaseModel):
    """The file of questions and answers.

    Attributes
    ----------
    brief
        The questions for the agents.
    description
        The data dictionary: columns, units and known habits of the recording.
    version
        To change whenever the data or an answer change.
    content
        Version and hash of the table and the answers, as `labmates tasks new` writes them: other content under the same
        version is refused.
    answers
        The answers, by names of the findings.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(min_length=1)
    brief: str = Field(min_length=1)
    description: str = Field(min_length=1)
    version: str = Field("1", min_length=1)
    content: str | None = None
    answers: dict[FindingName, Answer] = Field(min_length=1)

    def versioned(self, table: bytes) -> str:
        """The version with a hash of the questions, their answers and the table: ``1+0f3a92bc``."""
        text = self.model_dump_json(exclude={"content", "version"}).encode()
        return f"{self.version}+{hashlib.sha256(text + table.replace(CR_LF, LF)).hexdigest()[:8]}"


def read_answers(path: Path) -> Answers:
    """The answers in a file.

    Raises
    ------
    UsageError
        If the file is unreadable or invalid; the text names the line.
    """
    with telling(f"can't read '{path}'"):
        text = path.read_text(encoding="utf-8-sig")
    source = read_source(text, str(path), "file of answers", EXAMPLE)
    try:
        return Answers.model_validate(source.data)
    except ValidationError as error:
        raise source.error((problem["loc"], plain_fault(problem)) for problem in error.errors()) from error


def read_table(path: Path) -> pd.DataFrame:
    """The table in a CSV file, separated by commas, semicolons (also with decimal commas), tabs or bars.

    Raises `UsageError` if the file is unreadable or has no rows.
    """
    import pandas as pd

    with telling(f"can't read the table '{path}'", ValueError):
        with path.open(encoding="utf-8-sig") as lines:
            head = lines.readline()
        separator = max(",;\t|", key=head.count)
        frame = pd.read_csv(path, sep=separator, encoding="utf-8-sig")
        if separator != ",":
            for name in frame.columns[frame.dtypes.map(pd.api.types.is_string_dtype)]:
                if frame[name].dropna().str.fullmatch(r"\s*[-+]?\d+(,\d+)?\s*").all():
                    frame[name] = frame[name].str.replace(",", ".").astype(float)
    if frame.empty:
        raise UsageError(f"the table '{path}' has no rows")
    return frame


class TableTask(Task[BaseModel, BaseModel]):
    """A table with its answers.

    Attributes
    ----------
    folder
        Where the table and the answers are.
    """

    folder: ClassVar[Path]
    is_fixed = True
    questions: ClassVar[Answers]

    def __init_subclass__(cls) -> None:
        """Read the answers, which define title, brief, version and findings; the version has a hash of the content.

        Raises `UsageError` if a file is unreadable, or the content is not that of the version.
        """
        cls.questions = read_answers(cls.folder / ANSWERS)
        cls.title, cls.brief = cls.questions.title, cls.questions.brief
        with telling(f"can't read the table '{cls.folder / DATA}'"):
            cls.version = cls.questions.versioned((cls.folder / DATA).read_bytes())
        made = cls.questions.content
        if made is not None and made != cls.version and made.startswith(f"{cls.questions.version}+"):
            raise UsageError(
                f"{cls.folder / ANSWERS}: the table or the answers have changed, but version is still "
                f"'{cls.questions.version}', so that scores of both would be mixed; give another version"
            )
        fields: dict[str, Any] = {
            name: (answer.kind | None, Field(None, description=answer.about))
            for name, answer in cls.questions.answers.items()
        }
        cls.findings = create_model("Findings", **fields)

    @cached_property
    def _table(self) -> pd.DataFrame:
        return read_table(self.folder / DATA)

    def generate(self, seed: int, difficulty: Difficulty = "medium") -> Dataset[BaseModel]:
        """The table, for any seed and difficulty."""
        del seed, difficulty
        truth = self.findings(**{name: answer.value for name, answer in self.questions.answers.items()})
        return Dataset(self._table.copy(), truth, self.questions.description)

    def oracle(self, truth: BaseModel) -> BaseModel:
        """The answers."""
        return truth

    def prior(self, columns: Sequence[str], difficulty: Difficulty) -> BaseModel:
        """The guesses."""
        del columns, difficulty
        return self.findings(**{name: answer.guess for name, answer in self.questions.answers.items()})

    def score(self, findings: BaseModel, truth: BaseModel) -> tuple[Credit, ...]:
        """Numbers by their error (none with a wrong sign), lists by guarded F1, texts by `plain_name`."""
        return tuple(
            _credit(name, getattr(findings, name), getattr(truth, name), answer)
            for name, answer in self.questions.answers.items()
        )

    def checks(self, truth: BaseModel) -> tuple[Check, ...]:
        """The report has a right number beside a word of its name, a text or name of the answer, or what it asks."""
        answers = self.questions.answers
        uses = Counter(word for name in answers for word in name.split("_"))
        return tuple(
            Check(f"{name} reported", _rule(_own(name, uses), getattr(truth, name), answer))
            for name, answer in answers.items()
        )


def _credit(name: str, stated: Any, true: Any, answer: Answer) -> Credit:
    if isinstance(true, list):
        return score_names(name, stated, true, weight=answer.weight)
    if isinstance(true, float):
        full = answer.absolute or answer.tolerance
        near = within(full, ZERO * full, relative=answer.absolute is None)
        return score_number(
            name, stated, true, weight=answer.weight, credit=lambda a, b: near(a, b) if a * b >= 0 else 0.0
        )
    if stated is None:
        return Credit(name, 0.0, answer.weight, NOT_STATED)
    is_right = stated is true if isinstance(true, bool) else plain_name(stated) == plain_name(true)
    return Credit(name, float(is_right), answer.weight, f"stated {stated}, true {true}")


def _own(name: str, uses: Mapping[str, int]) -> list[str]:
    """The words that no other name has, or all of them."""
    words = name.split("_")
    return [word for word in words if uses[word] == 1] or words


def _rule(own: Sequence[str], true: Any, answer: Answer) -> Any:
    """A rule for an answer, by words of its name."""
    words = rf"\b(?:{'|'.join(word[:STEM] for word in own)})"
    if isinstance(true, bool):
        return says_all(words)
    if isinstance(true, float):
        return says_number(words, [true], answer.absolute or abs(true) * answer.tolerance, whole=False)
    return says_name([true] if isinstance(true, str) else true)
