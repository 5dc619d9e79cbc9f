"""Columns whose values give the truth away are found; honest columns are left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from labmates_author.tasks.leaks import find_leaks, held_answers, lasting_leaks

N = 600
Change = Callable[[pd.DataFrame, dict[str, Any], np.random.Generator], pd.DataFrame]


def trial(seed: int) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Patients of hidden types, visits over time with a hidden change, and a hidden number."""
    rng = np.random.default_rng(seed)
    patients = [f"P{number:03d}" for number in range(30)]
    types = rng.choice(["fast", "slow", "none"], len(patients)).tolist()
    rows = np.repeat(np.arange(len(patients)), N // len(patients))
    day = np.tile(np.arange(N // len(patients)) * 7, len(patients)) + rng.integers(0, 7, N)
    frame = pd.DataFrame(
        {
            "patient": [patients[row] for row in rows],
            "day": day,
            "arm": rng.choice(["A", "B"], N),
            "marker": np.round(rng.normal(10, 2, N), 2),
            "age": np.repeat(rng.integers(20, 80, len(patients)), N // len(patients)),
        }
    )
    truth = {
        "types": dict(zip(patients, types, strict=True)),
        "of_rows": [types[row] for row in rows],
        "level": np.round(rng.normal(0, 1, N), 3).tolist(),
        "responders": sorted(rng.choice(patients, 10, replace=False).tolist()),
        "patients": [{"id": p, "rate": round(float(rng.uniform(1, 9)), 3)} for p in patients],
        "changes": sorted(rng.choice(np.arange(30, 110), 2, replace=False).tolist()),
        "events": [{"start": int(s), "end": int(s) + 9} for s in rng.choice(range(20, 130, 12), 2, replace=False)],
        "strength": round(float(rng.uniform(1, 9)), 3),
        "drug": str(rng.choice(["Abnel", "Bortix", "Cavan", "Delur", "Emtal", "Fosin"])),
    }
    return frame, truth


def leaks(change: Change, description: Callable[[dict[str, Any]], str] = lambda truth: "rows") -> set[tuple[str, str]]:
    seen = []
    for seed in range(3):
        frame, truth = trial(seed)
        table = change(frame, truth, np.random.default_rng(seed))
        seen.append(find_leaks(table, description(truth), truth))
    return {(leak.place, leak.part) for leak in lasting_leaks(seen)}


def by_patient(frame: pd.DataFrame, values: dict[str, Any]) -> pd.Series[Any]:
    return frame["patient"].map(values)


def smudged(values: pd.Series[Any], rng: np.random.Generator, share: float) -> pd.Series[Any]:
    """Return the values with some of them missing."""
    return values.where(rng.random(len(values)) >= share)


def with_repeats(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame.head(9)], ignore_index=True)


def test_honest_columns_tell_nothing() -> None:
    assert leaks(lambda frame, truth, rng: frame) == set()


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("types", lambda frame, truth, rng: frame.assign(x=by_patient(frame, truth["types"]))),
        (
            "types",
            lambda frame, truth, rng: frame.assign(
                x=smudged(by_patient(frame, truth["types"]).map({"fast": 7, "slow": 2, "none": 5}), rng, 0.3)
            ),
        ),
        ("of_rows", lambda frame, truth, rng: frame.assign(x=pd.Series(truth["of_rows"]).str[0])),
        (
            "of_rows",
            lambda frame, truth, rng: with_repeats(frame.assign(x=truth["of_rows"])),
        ),
        ("level", lambda frame, truth, rng: frame.assign(x=smudged(pd.Series(truth["level"]), rng, 0.05))),
        ("level", lambda frame, truth, rng: frame.assign(x=pd.Series(truth["level"]).astype(str))),
        (
            "responders",
            lambda frame, truth, rng: frame.assign(x=frame["patient"].isin(truth["responders"]).astype(int)),
        ),
        (
            "patients[].rate",
            lambda frame, truth, rng: frame.assign(
                x=by_patient(frame, {one["id"]: one["rate"] for one in truth["patients"]})
            ),
        ),
        ("strength", lambda frame, truth, rng: frame.assign(x=truth["strength"])),
        ("drug", lambda frame, truth, rng: frame.assign(x=truth["drug"])),
        (
            "its numbers",
            lambda frame, truth, rng: frame.assign(x=rng.choice([one["rate"] for one in truth["patients"]][:5], N)),
        ),
    ],
)
def test_a_column_that_tells_a_part_of_the_truth_is_found(part: str, change: Change) -> None:
    assert ("the column 'x'", part) in leaks(change)


@pytest.mark.parametrize(
    "change",
    [
        lambda frame, truth, rng: frame.assign(x=by_patient(frame, truth["types"]).where(rng.random(N) < 0.7, "slow")),
        lambda frame, truth, rng: frame.assign(x=np.round(np.array(truth["level"]) + rng.normal(0, 0.5, N), 3)),
        lambda frame, truth, rng: frame.assign(
            x=np.round(frame["patient"].isin(truth["responders"]) * 2 + rng.normal(0, 1, N), 2)
        ),
        lambda frame, truth, rng: frame.assign(x=frame["patient"].str[1:].astype(int)),
        lambda frame, truth, rng: frame.assign(x=np.searchsorted([33, 77], frame["day"])),
        lambda frame, truth, rng: frame.assign(x="Abnel"),
        lambda frame, truth, rng: frame.assign(x=frame.index),
    ],
)
def test_a_column_that_has_to_be_analysed_is_no_leak(change: Change) -> None:
    assert leaks(change) == set()


def test_a_hidden_number_in_the_description_is_found() -> None:
    told = leaks(lambda frame, truth, rng: frame, lambda truth: f"the strength is {truth['strength']} or so")
    assert told == {("the description", "a number")}
    assert leaks(lambda frame, truth, rng: frame, lambda truth: "the strength is 0.5 to 3.14159") == set()


def test_what_one_seed_tells_by_chance_is_no_leak() -> None:
    frame, truth = trial(0)
    leaky = find_leaks(frame.assign(x=truth["drug"]), "", truth)
    assert leaky
    assert lasting_leaks([leaky, set()]) == []
    assert lasting_leaks([leaky, leaky]) == []


def test_a_column_that_marks_the_rows_of_an_answer_is_found_in_a_single_table() -> None:
    plots = [f"P{number}" for number in range(30)]
    table = pd.DataFrame({"plot": plots, "grain": range(30), "flag": [int(plot in ("P3", "P8")) for plot in plots]})
    truth = {"wrong": ["P3", "P8"]}
    assert [*held_answers(table, truth)] == [("the column 'flag'", "wrong")]
    assert not [*held_answers(table.drop(columns="flag"), truth)]
