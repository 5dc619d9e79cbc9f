"""A private salt changes every data set and is known by its fingerprint alone."""

from __future__ import annotations

import numpy as np
import pytest

from labmates.errors import UsageError
from labmates.models.redact import Redactor
from labmates.tasks.base import accuracy
from labmates.tasks.noise import random_for
from labmates.tasks.registry import get_task
from labmates.tasks.salt import VARIABLE, data_seed, salt_fingerprint
from labmates.util.seeds import derive

SALT, OTHER = "correct horse battery staple", "correct horse battery stapler"


def test_without_a_salt_seeds_are_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for empty in ("", "   "):
        monkeypatch.setenv(VARIABLE, empty)
        assert (data_seed(7), salt_fingerprint()) == (7, None)
    for seed in (0, 7, 2**31, 2**53):
        usual = np.random.Generator(np.random.PCG64(derive(seed, "tasks", "ecology", "easy", "x")))
        assert random_for("ecology", seed, "easy", "x").integers(2**62) == usual.integers(2**62)


def test_a_salt_gives_each_seed_another_wide_one_and_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SALT)
    seeds, mark = [data_seed(seed) for seed in range(50)], salt_fingerprint()
    assert len(set(seeds)) == 50
    assert all(2**127 <= seed < 2**128 for seed in seeds)
    assert [data_seed(seed) for seed in range(50)] == seeds
    monkeypatch.setenv(VARIABLE, f"{SALT}\n")
    assert (data_seed(0), salt_fingerprint()) == (seeds[0], mark)
    monkeypatch.setenv(VARIABLE, OTHER)
    assert set(seeds).isdisjoint(data_seed(seed) for seed in range(50))
    assert salt_fingerprint() != mark


def test_the_fingerprint_is_no_part_of_the_salt_or_of_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, SALT)
    mark = salt_fingerprint()
    assert mark is not None
    assert len(mark) == 16
    assert mark not in SALT.encode().hex()
    assert mark not in f"{data_seed(0):x}"


def test_a_short_salt_is_refused_without_being_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "hunter2hunter2")
    for ask in (salt_fingerprint, lambda: data_seed(1)):
        with pytest.raises(UsageError, match=r"LABMATES_SALT: a salt of 14 characters .* at least 16") as error:
            ask()
        assert "hunter2" not in str(error.value)


def test_the_salt_is_redacted_like_a_key() -> None:
    redact = Redactor.from_environment({VARIABLE: SALT})
    assert redact(f"failed with {SALT}!") == "failed with [key]!"


@pytest.mark.parametrize("name", ["ecology", "anomaly", "biomarker", "geospatial"])
def test_salted_data_sets_are_others_with_a_truth_of_their_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = get_task(name)
    public = task.generate(data_seed(5), "easy")
    monkeypatch.setenv(VARIABLE, SALT)
    private, again = (task.generate(data_seed(5), "easy") for _ in range(2))
    assert private.csv() == again.csv() != public.csv()
    assert accuracy(task.score(task.oracle(private.truth), private.truth)) == pytest.approx(1.0)
    assert accuracy(task.score(task.oracle(public.truth), private.truth)) < 0.5
