"""Findings and truth of the anomaly task."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from labmates.tasks.anomaly.data import Kind
from labmates.tasks.base import Share, finding
from labmates.tasks.choices import Listed

Tag = Annotated[str, Field(max_length=100)]


class Event(BaseModel):
    """One stretch of abnormal behaviour."""

    start: int = Field(description="number of the first abnormal sample, as in the column `sample`")
    end: int = Field(description="number of the last abnormal sample; equal to start for a single one")
    sensors: list[Tag] = Field(default_factory=list, max_length=50, description="columns of the sensors involved")
    kind: Annotated[Kind, Listed] | None = Field(None, description="kind of anomaly")


class AnomalyFindings(BaseModel):
    """The findings of a report on the anomaly task."""

    n_sensors: int | None = finding("number of sensors", 3)
    events: list[Event] | None = finding(
        "all anomalies, one entry for each", [{"start": 1, "end": 2, "sensors": ["XX1"], "kind": "point"}], most=300
    )
    n_point: int | None = finding("number of point anomalies", 1)
    n_contextual: int | None = finding("number of contextual anomalies", 1)
    n_collective: int | None = finding("number of collective anomalies", 1)
    anomalous_share: Share | None = finding(
        "share of all samples at which at least one sensor is abnormal, between 0 and 1", 0.5
    )
    most_affected_sensor: Tag | None = finding("column of the sensor that is involved in most anomalies", "XX1")
    drifting_sensors: list[Tag] | None = finding(
        "columns of the sensors whose level moves slowly in one direction over the month", ["XX1"], most=100
    )


class AnomalyTruth(BaseModel):
    """The truth of one anomaly data set; fields as in `AnomalyFindings`."""

    sensors: list[str]
    events: list[Event]
    anomalous_share: float
    most_affected_sensors: list[str]
    drifting_sensors: list[str]
