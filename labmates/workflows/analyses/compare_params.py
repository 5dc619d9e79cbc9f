"""The parameters of comparisons."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from labmates.workflows.protocol.analysis import Params


class ComparisonParams(Params):
    """The parameters of a comparison, but for what is compared."""

    metric: str | None = Field(None, description="Primary outcome. [default: that of the experiment]")
    where: tuple[str, ...] = Field((), description="Only runs with NAME=VALUE (or NAME!=VALUE); repeatable.")
    over: tuple[Literal["tasks", "models", "families"], ...] = Field(
        (), description="Extend the answer to new tasks, models or families of models, which are then the clusters."
    )
    within: float | None = Field(
        None, gt=0, description="Differences up to this size count as tied. [default: 5 % of the range]"
    )
    all: bool = Field(False, description="Show all pairs and outcomes.")


class CompareParams(ComparisonParams):
    """The parameters of a comparison."""

    conditions: tuple[str, ...] = Field(
        (), description="Conditions such as organisation=solo.", json_schema_extra={"argument": True}
    )
    by: tuple[str, ...] = Field(
        (), description="Compare the values of this parameter; repeatable. [default: all that vary]"
    )
    each: str | None = Field(
        None, description="Answer for each value of this parameter, with one figure of all; needs one --by."
    )
