"""The panel of judges: those that always score, others by name, and models as judges.

A failing judge breaks neither the others nor the run: if it can't be created, raises, or returns anything but scores,
it is recorded as unscored with the reason.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from labmates.errors import LabmatesError, UsageError, unknown_name
from labmates.judges.base import Judge, Report, Score
from labmates.judges.extraction import Extractor
from labmates.judges.interview import JudgeCalls
from labmates.judges.registry import JUDGES, MODEL_JUDGES, get_judge
from labmates.judges.rubric import PREFIX
from labmates.judges.verified import VerifiedJudge
from labmates.models.error_bodies import one_line
from labmates.models.names import parse_model
from labmates.registry import PluginError
from labmates.util.safe_text import safe_text, safe_value

_log = logging.getLogger(__name__)

ALWAYS: Final = ("heuristic", "verified")
"""The judges that score every run at its end; others can judge it then or later."""
MEAN: Final = PREFIX.removesuffix(":")
"""The name of the mean of two or more model judges."""
EVERY_METRIC: Final = "all"
"""The metric of a judge that failed before it named any."""
UNKNOWN_VERSION: Final = "?"
_LONGEST_REASON = 400


@dataclass(frozen=True)
class Panel:
    """The judges of a run.

    Attributes
    ----------
    names
        Judges by full name (``heuristic``, ``rubric:openai:gpt-5.4-mini``), each once.
    extractor
        Model that extracts findings from the prose of a report without a findings block; None for no extraction.
    """

    names: tuple[str, ...] = ALWAYS
    extractor: str | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """The models called by the panel, each once."""
        asked = [model for name in self.names if (model := _model_of(name))]
        helper = [self.extractor] if self.extractor and VerifiedJudge.name in self.names else []
        return tuple(dict.fromkeys([*asked, *helper]))


DEFAULT_PANEL: Final = Panel()
"""The judges without a model."""


def _model_of(judge: str) -> str:
    """The model of a judge; empty for a judge that is not a model."""
    kind, _, model = judge.partition(":")
    return model if kind in MODEL_JUDGES else ""


def partial_judges(panel: Panel, models: Collection[str]) -> str | None:
    """A warning about models of the panel that judge their own work; None without any."""
    partial = [model for name in panel.names if (model := _model_of(name)) in models]
    return f"{', '.join(partial)} will judge its own work, which models tend to prefer." if partial else None


def make_panel(judges: Sequence[str], extractor: str | None = None, *, always: Sequence[str] = ALWAYS) -> Panel:
    """The panel of the default judges and the requested `judges`.

    Parameters
    ----------
    judges
        Names of registered judges, and models: ``provider:name`` to judge by rubrics, ``KIND:provider:name``
        for another of `MODEL_JUDGES`.
    extractor
        A model; by default the first model among the `judges`.

    Raises
    ------
    UsageError
        If a name is unknown.
    """
    names = tuple(dict.fromkeys([*always, *map(_full_name, judges)]))
    models = [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]
    return Panel(names, str(parse_model(extractor)) if extractor else next(iter(models), None))


def _full_name(text: str) -> str:
    name = text.strip()
    kind, colon, rest = name.partition(":")
    MODEL_JUDGES.refuse_missing(kind)
    prefix, model = (f"{kind}:", rest) if colon and kind in MODEL_JUDGES else (PREFIX, name)
    if ":" in model or prefix != PREFIX:
        return f"{prefix}{parse_model(model)}"
    if model == MEAN:
        raise UsageError(f"'{MEAN}' is not a judge: name the model, for instance openai:gpt-5.4-mini")
    if model not in JUDGES:
        error = unknown_name("judge", model, JUDGES.names())
        raise UsageError(f"{error} A model judges by rubrics as provider:name, for instance openai:gpt-5.4-mini.")
    return model


class SafeJudge:
    """A judge whose errors are recorded as unscored; only exceptions that end the process are raised."""

    def __init__(self, name: str, make: Callable[[], Judge]) -> None:
        self.name = name
        self._judge: Judge | None = None
        self._problem = ""
        try:
            with JUDGES.guarded(name, "can't be made"):
                self._judge = checked_judge(make())
        except (Exception, SystemExit) as error:
            self._problem = self._failure_text("can't be made", error)

    @property
    def version(self) -> str:
        """The judge's version; a question mark if it can't be created."""
        return self._judge.version if self._judge is not None else UNKNOWN_VERSION

    async def score(self, report: Report) -> list[Score]:
        """The judge's scores; an unscored entry for each of its metrics if it fails."""
        if self._judge is None:
            return self._unscored()
        try:
            with JUDGES.guarded(self.name, "failed"):
                return checked_scores(await self._judge.score(report), self.name)
        except (Exception, SystemExit) as error:
            self._problem = self._failure_text("failed", error)
            return self._unscored()

    def _failure_text(self, what: str, error: BaseException) -> str:
        _log.warning("judge %s %s", self.name, what, exc_info=True)
        kind = "" if isinstance(error, LabmatesError) else f"{type(error).__name__}: "
        whole = str(error) if isinstance(error, PluginError) else f"the judge {what}: {kind}{error}"
        return one_line(whole, _LONGEST_REASON)

    def _unscored(self) -> list[Score]:
        metrics = getattr(self._judge, "metrics", None) or (EVERY_METRIC,)
        return [Score(self.name, self.version, str(metric), None, self._problem, failed=True) for metric in metrics]


def open_judge(name: str, panel: Panel, call: JudgeCalls, thinkers: set[str] | None = None) -> SafeJudge:
    """The judge called `name`; `call` and `thinkers` are those of a `ModelJudge`."""

    def make() -> Judge:
        if model := _model_of(name):
            return cast(Judge, MODEL_JUDGES.get(name.partition(":")[0])(model, call, thinkers))
        if name == VerifiedJudge.name and JUDGES.is_own(name) and panel.extractor:
            return VerifiedJudge(Extractor(panel.extractor, call, thinkers))
        return get_judge(name)

    return SafeJudge(name, make)


class WrongJudgeError(LabmatesError):
    """The object does not implement `Judge`."""


def checked_judge(judge: object) -> Judge:
    """The same object if it implements `Judge`.

    Raises
    ------
    WrongJudgeError
        If it does not.
    """
    version = getattr(judge, "version", None)
    if not isinstance(version, str) or not version:
        raise WrongJudgeError(f"its version must be a text, not {version!r}")
    if not callable(getattr(judge, "score", None)):
        raise WrongJudgeError("it has no method 'score'")
    return judge  # type: ignore[return-value]


def checked_scores(scores: object, name: str) -> list[Score]:
    """A judge's scores in storable form, under its registered name.

    Raises
    ------
    WrongJudgeError
        If they are not a list of `Score`, or the list is empty.
    """
    if not isinstance(scores, list | tuple) or not all(isinstance(score, Score) for score in scores):
        raise WrongJudgeError(f"it returned {type(scores).__name__} instead of a list of Score")
    if not scores:
        raise WrongJudgeError("it returned no score")
    return [_storable(score, name) for score in scores]


def _storable(score: Score, name: str) -> Score:
    """A score in storable form: plain number, safe text, JSON."""
    details: dict[str, Any] = safe_value(json.loads(json.dumps(dict(score.details), allow_nan=False)))
    value = None if score.value is None else float(score.value)
    metric, reason = safe_text(score.metric), safe_text(score.reason)
    return replace(score, judge=name, metric=metric, value=value, reason=reason, details=details)
