"""From observations to the cells of one question: its rows, its varying predictors, and notes on the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from labmates.errors import UsageError
from labmates.stats.validity import MOST_FAILED
from labmates_profiles.bayes.covariates import Covariates, covariate_columns
from labmates_profiles.proximity.cells import (
    REFERENCE_GAME,
    Cells,
    about_models,
    collapse,
    game_columns,
    label,
    with_predictors,
)
from labmates_profiles.proximity.observations import FAILED, OUTCOMES, LeftOut, Observations

if TYPE_CHECKING:
    import pandas as pd

Question = Literal["strategy", "prompt"]
LEAST_MODELS: Final = 3
ASKED: Final[dict[Question, tuple[str, ...]]] = {
    "strategy": ("size", "thinking", "cot", "tom", "group_size"),
    "prompt": ("size", "thinking", "standard"),
}
"""The predictors of each question."""


@dataclass(frozen=True)
class Prepared:
    """The data of one question.

    Attributes
    ----------
    frame
        The fitted rows, with all predictors.
    notes
        Notes on the predictors and the data.
    """

    question: Question
    outcome: str
    reference: str
    cells: Cells
    frame: pd.DataFrame
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]


def prepare(
    observations: Observations,
    *,
    outcome: str = "cooperation",
    question: Question = "strategy",
    covariates: Covariates | None = None,
) -> Prepared:
    """The cells of one question, and the rows left out with reasons.

    Parameters
    ----------
    outcome
        ``cooperation``, ``efficiency``, or ``proximity``, the paper's distance (`OUTCOMES`).
    question
        ``strategy``: all conditions with the standard framing. ``prompt``: players without reasoning, under conditions
        with both framings.
    covariates
        The user's predictors of models; see `labmates_profiles.bayes.covariates`.

    Raises
    ------
    UsageError
        If too few models are left, their outcomes do not vary, no condition has both framings, or a covariate is
        invalid.
    """
    left = list(observations.left_out)
    frame = _without_failures(observations.frame, left)
    frame = _defined(frame, OUTCOMES[outcome], left)
    frame = _told_standard(frame, left) if question == "strategy" else _told_both_ways(frame, left)
    models = frame["model"].nunique()
    if models < LEAST_MODELS:
        reasons = "".join(f"\n  left out: {each.what} ({each.rows} rows): {each.reason}" for each in left)
        many = "1 model is" if models == 1 else f"{models} models are"
        raise UsageError(f"{many} too few for a regression over models, which needs {LEAST_MODELS}{reasons}")
    if frame[OUTCOMES[outcome]].nunique() < 2:
        raise UsageError(
            f"{OUTCOMES[outcome]} is {frame[OUTCOMES[outcome]].iloc[0]:.3g} in every row: nothing to explain"
        )
    notes: list[str] = []
    frame, reference = _with_games(frame, notes)
    names = _varying(frame, ASKED[question], notes)
    if covariates:
        frame, more = _with_covariates(frame, covariates, about_models(names))
        names += more
    names += game_columns(frame["game"], reference)
    cells = collapse(frame, OUTCOMES[outcome], names)
    if len(cells.families) < 2:
        notes.append(f"All models are of the family {cells.families[0]}: nothing is said of other families.")
    if cells.repeats and cells.count.max() > 1:
        notes.append(
            "Simulations of the same cell never differ: more of them add no information, and each cell is one row."
        )
        once = frame.drop_duplicates(["model", "game", "condition", *names])
        cells = collapse(once, OUTCOMES[outcome], names)
    return Prepared(question, outcome, reference, cells, frame, tuple(left), tuple(notes))


def _without_failures(frame: pd.DataFrame, left: list[LeftOut]) -> pd.DataFrame:
    cell = ["model", "game", "framing", "condition", "reasoning", "group_size"]
    rate = frame.groupby(cell)[FAILED].transform("mean")
    bad = frame[rate > MOST_FAILED]
    for (model, game), rows in bad.groupby(["model", "game"]):
        reason = f"{rows[FAILED].mean():.0%} of decisions failed in these cells, more than {MOST_FAILED:.0%}"
        left.append(LeftOut(f"{model} in {game}", len(rows), reason))
    return frame.drop(bad.index)


def _defined(frame: pd.DataFrame, outcome: str, left: list[LeftOut]) -> pd.DataFrame:
    missing = frame[frame[outcome].isna()]
    for (model, game), rows in missing.groupby(["model", "game"]):
        left.append(LeftOut(f"{model} in {game}", len(rows), f"{outcome} is missing or not defined"))
    return frame.drop(missing.index)


def _told_standard(frame: pd.DataFrame, left: list[LeftOut]) -> pd.DataFrame:
    other = frame["framing"] != "standard"
    if other.any():
        left.append(LeftOut("rules in the alternate framing", int(other.sum()), "compared by --question prompt"))
    return frame[~other]


def _told_both_ways(frame: pd.DataFrame, left: list[LeftOut]) -> pd.DataFrame:
    reasoned = frame["reasoning"] != "none"
    if reasoned.any():
        left.append(LeftOut("players asked to reason", int(reasoned.sum()), "framings are compared without"))
    frame = frame[~reasoned]
    ways = frame.groupby(["game", "condition", "group_size"])["framing"].transform("nunique")
    once = ways < 2
    if once.all():
        raise UsageError(
            "no condition without reasoning has both framings, standard and alternate: play some with "
            "labmates run game --framing alternate"
        )
    if once.any():
        left.append(
            LeftOut("conditions with one framing only", int(once.sum()), "there is nothing to compare them with")
        )
    return frame[~once]


def _with_games(frame: pd.DataFrame, notes: list[str]) -> tuple[pd.DataFrame, str]:
    games = sorted(set(frame["game"]))
    reference = REFERENCE_GAME if REFERENCE_GAME in games else games[0]
    if len(games) == 1:
        notes.append(f"All rows are of the game {games[0]}: results may not hold in other games.")
    elif reference != REFERENCE_GAME:
        notes.append(f"Games are compared with {reference}, since there are no rows of {REFERENCE_GAME}.")
    return with_predictors(frame, reference), reference


def _with_covariates(frame: pd.DataFrame, covariates: Covariates, about: list[str]) -> tuple[pd.DataFrame, list[str]]:
    by_model = frame.drop_duplicates("model").set_index("model")
    models = [str(model) for model in by_model.index]
    known = by_model[about].to_numpy(dtype=float)
    names, columns = covariate_columns(covariates, models, known, [label(name) for name in about])
    values = {name: frame["model"].map(dict(zip(models, columns[:, at], strict=True))) for at, name in enumerate(names)}
    return frame.assign(**values), names


def _varying(frame: pd.DataFrame, names: tuple[str, ...], notes: list[str]) -> list[str]:
    constant = [name for name in names if frame[name].nunique() < 2]
    notes += [f"{label(name)} is the same in all rows, so nothing is said of it." for name in constant]
    return [name for name in names if name not in constant]
