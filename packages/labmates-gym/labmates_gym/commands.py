"""``labmates gym``: list environments, and train a policy in each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from labmates.stats.figures import Drawing
from labmates.stats.tables import Column, Table
from labmates.workflows.protocol.analysis import Params, Result
from labmates.workflows.protocol.command import Command
from labmates_gym.catalog import Split, environments

if TYPE_CHECKING:
    from labmates.workflows.protocol.command import Lab

NEAR = 0.1
"""Distance from the equilibrium that counts as reached."""
_LAST = 40
"""Episodes at the end of a training whose mean cooperation counts."""


class ListParams(Params):
    """Parameters of the list."""

    split: Split | None = Field(None, description="Split: train, framing or game; by default all.")


def list_(_lab: Lab, params: ListParams) -> Iterator[Result]:
    """List the environments with their split, for training or held out by framing or by game."""
    rows = [{"environment": listed.name, "split": listed.split} for listed in environments(params.split)]
    objects = [
        {**row, "kind": listed.kind, "condition": listed.condition}
        for row, listed in zip(rows, environments(params.split), strict=True)
    ]
    table = Table("environments", "Environments", [Column("environment"), Column("split")], rows)
    yield Result((table,), objects=objects)


class LearnParams(Params):
    """Parameters of a training."""

    episodes: int = Field(300, ge=_LAST, le=100_000, description="Episodes of each training.")
    seed: int = Field(0, ge=0, description="Seed of the policies.")


def learn(lab: Lab, params: LearnParams) -> Iterator[Result]:
    """Train a softmax policy by REINFORCE under each mechanism and reward, and compare it with the equilibrium."""
    from labmates_gym.learning import draw, lessons

    curves, rows = [], []
    for lesson in lessons():
        lab.step(f"training: {lesson.name}")
        curve = lesson.learn(params.episodes, params.seed)
        curves.append((lesson, curve))
        last = float(curve[-_LAST:].mean())
        row = {
            "environment": lesson.name,
            "first": float(curve[:_LAST].mean()),
            "last": last,
            "equilibrium": lesson.equilibrium,
            "reached": abs(last - lesson.equilibrium) <= NEAR,
            "curve": curve.tolist(),
        }
        rows.append(row)
    columns = [
        Column("environment"),
        Column("first", "first episodes", ".2f"),
        Column("last", "last episodes", ".2f"),
        Column("equilibrium", form=".0f"),
        Column("reached"),
    ]
    missed = [row["environment"] for row in rows if not row["reached"]]
    figure = Drawing(
        "learning",
        "Cooperation while learning",
        "The moving mean of cooperation over episodes, a panel for each mechanism and reward, beside the equilibrium.",
        partial(draw, curves),
    )
    yield Result(
        (Table("learning", "Mean cooperation in episodes of training", columns, rows),),
        [figure],
        [f"the equilibrium is not reached: {', '.join(map(str, missed))}" if missed else "all reach their equilibrium"],
        objects=rows,
    )


GYM = Command(
    example="labmates gym list --split framing",
    commands={
        "list": Command(list_, ListParams, example="labmates gym list --split framing", objects="per environment"),
        "learn": Command(
            learn,
            LearnParams,
            example="labmates gym learn --episodes 300 --plot learning.svg",
            has_tables=True,
            has_figures=True,
            objects="per training",
        ),
    },
)
