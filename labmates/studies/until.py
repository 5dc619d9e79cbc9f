"""Studies that grow by one replicate at a time until their comparison is settled."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from labmates.errors import UsageError
from labmates.records.store import Store
from labmates.records.studies import study_counts
from labmates.stats.stopping import FEWEST_BLOCKS, looks
from labmates.studies.spec import StudySpec
from labmates.workflows.analyses.compare import compare
from labmates.workflows.analyses.compare_params import CompareParams
from labmates.workflows.protocol.analysis import Runs, TooFewRunsError

LEAST: int = FEWEST_BLOCKS + 1
"""Fewest replicates with which stopping early is possible at all."""


@dataclass(frozen=True)
class Settled:
    """The end of a comparison after some replicates of a study; `answer` is its first sentence."""

    replicates: int
    is_told: bool
    answer: str


def growing(store: Store, spec: StudySpec) -> Iterator[StudySpec]:
    """The study with more and more replicates, from those that have started up to its own number.

    It ends when runs are left, because the cap is spent, a model pauses or a person stops the study.

    Raises
    ------
    UsageError
        If it has too few replicates to stop early.
    """
    if spec.replicates < LEAST:
        raise UsageError(
            f"--until settled needs replicates: {LEAST} or more, the largest number to be played; "
            f"{spec.name} has {spec.replicates}"
        )
    started = (run.replicate + 1 for run in store.runs(study=spec.name) if run.status != "planned")
    for number in range(min(max(started, default=1), spec.replicates), spec.replicates + 1):
        yield spec.model_copy(update={"replicates": number})
        if _left(store, spec):
            return


def settled(store: Store, study: StudySpec, most: int) -> Settled | None:
    """Whether every pair of conditions of a study is told apart, or will hardly be in `most` replicates.

    Pairs are those of ``labmates compare``, on the primary outcome. None while replicates are worth playing, while runs
    are left, and after the last replicate.

    Raises
    ------
    TooFewRunsError
        If nothing can be compared after `LEAST` replicates.
    """
    if study.replicates >= most or _left(store, study):
        return None
    records = list(store.runs(study=study.name))
    try:
        result = compare(Runs.given(store, records), CompareParams())
    except TooFewRunsError:
        if study.replicates >= LEAST:
            raise
        return None
    p_values = [row["p"] for row in result.objects or () if row["role"] == "primary"]
    if any(p is None for p in p_values):
        return None
    blocks = math.ceil(len({run.data_set for run in records}) / study.replicates)
    look = looks(most, blocks)[study.replicates - 1]
    if all(p <= look.told or p >= look.hopeless for p in p_values):
        return Settled(study.replicates, any(p <= look.told for p in p_values), result.verdict[0])
    return None


def _left(store: Store, study: StudySpec) -> int:
    return study_counts(store.database, study.name).of("planned", "interrupted", "running")
