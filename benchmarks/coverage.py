"""What `labmates compare` promises, in simulated studies with a known truth.

    python -m benchmarks.coverage [intervals] [scores] [nulls] [power] [--studies 1000]

``intervals``: how often intervals hold the truth and (in brackets) exclude 0, by number of blocks, in the worlds of
`tests.stats.paired_worlds`. ``scores``: how often those of ``labmates analyze scores`` do where some reports are
unreadable, and (in brackets) how often they are printed. ``nulls``: the share of studies without any effect in which
the primary outcome has a mark (in brackets: any outcome), in the designs of `tests.workflows.test_null_studies`.
``power``: the share of studies told at the minimum detectable difference of ``labmates study plan``, which promises
.80. A line ends with < where coverage is below .93, a null world is rejected in over .06, or power is off by over .05.
At 1,000 studies, one standard error of .95 is .007.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np

from labmates.records.run import RunRecord
from labmates.records.store import Store
from labmates.studies.plan import make_plan
from labmates.studies.spec import each_condition, read_spec
from labmates.util.bounded_yaml import Source
from labmates.workflows.analyses.compare import COMPARE
from labmates.workflows.analyses.compare_params import CompareParams
from labmates.workflows.protocol.analysis import Runs
from labmates.workflows.science.analyses.score_tables import scores_table
from labmates_design.plan import Detectable
from tests.stats.paired_worlds import BY_RANGE, LIMITS, UNREADABLE, WORLDS, coverage, held_by_range
from tests.workflows.test_null_studies import DESIGNS, OUTCOMES, marks

PLANS = {
    "12 data sets, two organisations": (["anomaly"], ["pipeline", "solo"], ["full"], 12),
    "4 tasks of 5 data sets": (["anomaly", "ecology", "geospatial", "biomarker"], ["pipeline", "solo"], ["full"], 5),
    "four conditions share each of 8": (["anomaly"], ["pipeline", "solo"], ["full", "hidden"], 8),
    "three organisations, 15 data sets": (["anomaly"], ["pipeline", "solo", "centralised"], ["full"], 15),
}
"""Tasks, organisations, visibilities and replicates."""

SCORES = ((0.9, 0.02, 0.05), (0.9, 0.02, 0.15), (0.7, 0.1, 0.15), (0.5, 0.2, 0.15))
"""Mean and standard deviation of readable reports, and the share of unreadable ones."""


def of_intervals(studies: int) -> Iterator[tuple[str, bool]]:
    """Coverage and rejections in each world, and whether they are off."""
    for name, world in {**WORLDS, **UNREADABLE, **LIMITS}.items():
        found = {blocks: coverage(world, blocks, studies, 1) for blocks in world.blocks}
        cells = "  ".join(f"{blocks:2}: {each.held:.3f} ({each.rejected:.3f})" for blocks, each in found.items())
        is_off = any(each.held < 0.93 or (world.truth == 0 and each.rejected > 0.06) for each in found.values())
        yield f"{name:46} {cells}", is_off
    for name in BY_RANGE:
        held = {blocks: held_by_range(name, blocks, studies, 1) for blocks in LIMITS[name].blocks}
        cells = "  ".join(f"{blocks:2}: {share:.3f}" for blocks, share in held.items())
        yield f"by range: {name:36} {cells}", min(held.values()) < 0.93


def of_scores(studies: int) -> Iterator[tuple[str, bool]]:
    """Coverage of printed means by number of data sets, with unreadable reports as 0."""
    for mean, spread, share in SCORES:
        rows: dict[int, list[dict[str, Any]]] = {}
        for n in (3, 5, 10, 20):
            rng = np.random.default_rng(n)
            for _ in range(studies):
                values, readable = rng.normal(mean, spread, n).clip(0, 1), rng.random(n) >= share
                runs = [RunRecord(f"{at}", "science", "", at, at, {"task": "anomaly"}, ["openai:a"]) for at in range(n)]
                judged: Any = [SimpleNamespace(run=run, readable=bool(readable[at])) for at, run in enumerate(runs)]
                newest = {run.id: {("verified", "accuracy"): values[run.seed] * readable[run.seed]} for run in runs}
                rows.setdefault(n, []).extend(scores_table(judged, newest).rows)
        for name, truth in (("score", mean * (1 - share)), ("protocol", mean), ("unreadable", share)):
            shown = {n: [row for row in some if row.get(f"{name}_low") is not None] for n, some in rows.items()}
            held = {
                n: [row[f"{name}_low"] <= truth <= row[f"{name}_high"] for row in some] for n, some in shown.items()
            }
            cells = "  ".join(f"{n:2}: {np.mean(some):.3f} ({len(some) / studies:.2f})" for n, some in held.items())
            head = f"{mean} ± {spread}, {share:.0%} unreadable"
            yield f"{head:26} {name:10} {cells}", any(np.mean(some) < 0.93 for some in held.values())


def of_nulls(studies: int) -> Iterator[tuple[str, bool]]:
    """Marks in each design without an effect."""
    with TemporaryDirectory() as folder:
        for name, design in DESIGNS.items():
            for outcome in OUTCOMES:
                found = marks(Path(folder), design, outcome, 6, studies)
                yield f"{name:34} {outcome:14} {found.primary:.3f} ({found.any:.3f})", found.primary > 0.06


def of_power(studies: int) -> Iterator[tuple[str, bool]]:
    """Power of the printed verdict at the planned difference."""
    for name, (tasks, organisations, visibilities, replicates) in PLANS.items():
        grid = {"task": tasks, "organisation": organisations, "visibility": visibilities}
        data = {"name": "s", "kind": "science", "models": ["openai:a"], "grid": grid, "replicates": replicates}
        spec = read_spec(Source("s.yaml", data, {}))
        found = [each for each in make_plan(spec, None).detectable if isinstance(each, Detectable)]
        [plan] = [each for each in found if each.parameter == "organisation"]
        least, rng, told = plan.difference or 0.0, np.random.default_rng(1), 0
        conditions = [(key, each.model_dump(mode="json"), each.models()) for key, each in each_condition(spec)]
        with TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/runs.db") as store:
            for _ in range(studies):
                runs = [
                    replace(
                        RunRecord(f"{key}{seed}", "science", key, seed, seed, condition, models, "completed"),
                        metrics={
                            "skill": rng.normal(least * (condition["organisation"] == organisations[0]), plan.spread)
                        },
                    )
                    for key, condition, models in conditions
                    for seed in range(replicates)
                ]
                rows = COMPARE.result(Runs.given(store, runs), CompareParams(by=("organisation",))).json_objects()
                [p] = [row["p"] for row in rows if {row["first"], row["second"]} == {*organisations[:2]}]
                told += p < 0.05
        yield f"{name:34} {least:.3f} told in {told / studies:.3f}", abs(told / studies - 0.8) > 0.05


PARTS = {"intervals": of_intervals, "scores": of_scores, "nulls": of_nulls, "power": of_power}


def main() -> None:
    """Print a line per world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="default: all")
    parser.add_argument("--studies", type=int, default=1000)
    given = parser.parse_args()
    for part in given.parts or PARTS:
        for line, is_off in PARTS[part](given.studies):
            print(f"{line}{'  <' if is_off else ''}", flush=True)


if __name__ == "__main__":
    main()
