"""The anomaly task's data: the sensors of a plant, their normal behaviour, incidents, and the log.

A normal reading is ``base + scale · (day·cycle(t) + group factor + noise + drift)``: the cycle follows day and shift,
sensors of the same group share a slow factor (so they correlate), and a few sensors drift. The noise has a standard
deviation of 1 before scaling; sizes below are in that unit.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view

from labmates.tasks.base import Difficulty
from labmates.tasks.data_errors import blank, repeat_rows, respell
from labmates.tasks.noise import DECIMALS, Floats, red_noise

Kind = Literal["point", "contextual", "collective"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

SAMPLES: Final = 4320
"""30 days of one sample every ten minutes."""
A_DAY: Final = 144
GAP: Final = 24
"""Fewest samples between two events, and between an event and either end of the data."""
NO_READING: Final = -999.0
SHIFTS: Final = ("night", "morning", "late")
CLOCKS: Final = tuple(f"{minutes // 60:02}:{minutes % 60:02}" for minutes in range(0, 24 * 60, 10))
"""The times of a day's samples."""


class SensorType(NamedTuple):
    """A kind of sensor."""

    letters: str  # prefix of its tags
    # Measured quantity, and its unit.
    quantity: str
    unit: str
    # Ranges of its level and of one noise unit, in its unit.
    base: tuple[float, float]
    scale: tuple[float, float]
    decimals: int  # decimals of its readings
    # Conversion to another usual unit: factor · reading + offset.
    factor: float
    offset: float


SENSOR_TYPES: Final = (
    SensorType("TT", "temperature", "degrees Celsius", (55, 90), (0.8, 1.6), 2, 1.8, 32.0),
    SensorType("PT", "pressure", "bar", (4, 9), (0.05, 0.12), 3, 100.0, 0.0),
    SensorType("VT", "vibration", "mm/s", (3, 6), (0.08, 0.15), 3, 1000.0, 0.0),
    SensorType("FT", "flow", "cubic metres per hour", (80, 150), (1.5, 3), 2, 50 / 3, 0.0),
    SensorType("IT", "motor current", "ampere", (25, 60), (0.6, 1.2), 2, 1000.0, 0.0),
    SensorType("ST", "speed", "revolutions per minute", (1400, 1500), (4, 9), 1, 1 / 60, 0.0),
)


@dataclass(frozen=True)
class AnomalyLevel:
    """Difficulty parameters of an anomaly data set.

    Pairs are inclusive ranges; sizes are in standard deviations of the noise.
    """

    # Number of events of each kind.
    points: tuple[int, int]
    contextual: tuple[int, int]
    collective: tuple[int, int]
    point_size: tuple[float, float]  # height of a spike
    context_size: float  # least distance of a contextual anomaly from the normal value at that time of day
    collective_size: tuple[float, float]  # height of a level shift; a burst multiplies the noise by one more than this
    drift: tuple[float, float]  # total drift of a drifting sensor
    factor: float  # standard deviation of a group's shared factor
    # Shares: of empty readings, of readings logged as −999, of repeated rows.
    missing: float
    sentinels: float
    repeats: float
    # Number of periods in which a logger repeats its last value, and of sensors that change their unit.
    stuck: int
    unit_changes: int


LEVELS: Final[Mapping[Difficulty, AnomalyLevel]] = {
    "easy": AnomalyLevel(
        points=(7, 10), contextual=(3, 5), collective=(3, 5), point_size=(9, 13), context_size=5.0,
        collective_size=(4.5, 6.0), drift=(6, 9), factor=0.5, missing=0.005, sentinels=0.002, repeats=0.005, stuck=1,
        unit_changes=0,
    ),
    "medium": AnomalyLevel(
        points=(7, 10), contextual=(3, 5), collective=(3, 5), point_size=(6, 8), context_size=3.5,
        collective_size=(2.5, 3.5), drift=(3.5, 5), factor=0.8, missing=0.02, sentinels=0.004, repeats=0.01, stuck=3,
        unit_changes=1,
    ),
    "hard": AnomalyLevel(
        points=(7, 10), contextual=(3, 5), collective=(3, 5), point_size=(4.2, 5.6), context_size=2.5,
        collective_size=(1.5, 2.3), drift=(1.4, 2.2), factor=1.1, missing=0.05, sentinels=0.008, repeats=0.02, stuck=6,
        unit_changes=2,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Plant:
    """S sensors and their normal behaviour."""

    # Kind and name (column) of each sensor.
    types: tuple[SensorType, ...]
    tags: tuple[str, ...]
    # Shape (S,): level and size of one noise unit in the sensor's unit; amplitude of the daily cycle in noise units.
    base: Floats
    scale: Floats
    day: Floats
    group: npt.NDArray[np.int64]  # shape (S,): index of the sensor's group factor
    drift: Floats  # shape (S,): total drift in noise units; 0 for most


@dataclass(frozen=True)
class Incident:
    """One anomaly: samples `start` to `end`, both included, on the sensors with these indices."""

    kind: Kind
    start: int
    end: int
    sensors: tuple[int, ...]


def draw_plant(level: AnomalyLevel, rng: np.random.Generator) -> Plant:
    """Draw 8 to 12 sensors; at least four follow the day, one or two drift."""
    n = int(rng.integers(8, 13))
    kinds = [*range(len(SENSOR_TYPES)), *(int(k) for k in rng.integers(len(SENSOR_TYPES), size=n))][:n]
    types = tuple(SENSOR_TYPES[k] for k in sorted(kinds))
    numbers = 101 + rng.permutation(899)[:n]
    day = np.where(rng.permutation(n) < 5, rng.uniform(3.0, 4.5, size=n), rng.uniform(0.2, 0.6, size=n))
    drifting = rng.permutation(n) < rng.integers(1, 3)
    drift = rng.uniform(*level.drift, size=n) * rng.choice([-1.0, 1.0], size=n)
    return Plant(
        types=types,
        tags=tuple(f"{kind.letters}{number}" for kind, number in zip(types, numbers, strict=True)),
        base=np.array([rng.uniform(*kind.base) for kind in types]),
        scale=np.array([rng.uniform(*kind.scale) for kind in types]),
        day=day,
        group=rng.permutation(n) % 3,
        drift=np.where(drifting, drift, 0.0),
    )


@cache
def day_cycle() -> Floats:
    """The course of a day at every sample, shape (SAMPLES,): a wave, and a step up in the two day shifts; read-only."""
    time = np.arange(SAMPLES) % A_DAY
    cycle = np.round(0.8 * np.sin(2 * np.pi * (time - 42) / A_DAY) + np.where(time < A_DAY // 3, -0.25, 0.15), DECIMALS)
    cycle.setflags(write=False)
    return cycle


def normal_readings(plant: Plant, level: AnomalyLevel, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Normal behaviour of the sensors and its noise, both in noise units with shape (SAMPLES, S)."""
    n = len(plant.tags)
    noise = red_noise(rng.standard_normal((SAMPLES, n)), 0.4)
    factors = level.factor * red_noise(rng.standard_normal((SAMPLES, 3)), 0.9)
    drift = np.linspace(0, 1, SAMPLES)[:, None] * plant.drift
    return day_cycle()[:, None] * plant.day + factors[:, plant.group] + drift + noise, noise


def draw_incidents(plant: Plant, level: AnomalyLevel, rng: np.random.Generator) -> list[Incident]:
    """Draw times and sensors of incidents, at least `GAP` samples apart."""
    kinds: list[Kind] = []
    ranges: tuple[tuple[Kind, tuple[int, int]], ...] = (
        ("point", level.points),
        ("contextual", level.contextual),
        ("collective", level.collective),
    )
    for kind, (low, high) in ranges:
        kinds += [kind] * int(rng.integers(low, high + 1))
    # One slot for each incident, in random order, so that nothing can overlap.
    slot = SAMPLES // len(kinds)
    return [
        _draw_incident(kinds[which], place * slot, slot, plant, level, rng)
        for place, which in enumerate(rng.permutation(len(kinds)))
    ]


def _draw_incident(
    kind: Kind, begin: int, room: int, plant: Plant, level: AnomalyLevel, rng: np.random.Generator
) -> Incident:
    n = len(plant.tags)
    if kind == "point":
        start = begin + int(rng.integers(GAP, room - GAP))
        return Incident(kind, start, start, (int(rng.integers(n)),))
    if kind == "collective":
        length = int(rng.integers(36, 73))
        start = begin + int(rng.integers(GAP, room - GAP - length))
        members = np.flatnonzero(plant.group == rng.integers(3))
        return Incident(kind, start, start + length - 1, tuple(int(s) for s in np.sort(rng.permutation(members)[:3])))
    sensor = int(rng.choice(np.flatnonzero(plant.day >= 3.0)))
    length = int(rng.integers(10, 21))
    cycle = day_cycle()
    away = np.abs(cycle - np.roll(cycle, A_DAY // 2)) * plant.day[sensor]
    starts = np.arange(begin + GAP, begin + room - GAP - length)
    least = sliding_window_view(away, length)[starts].min(axis=1)
    good = starts[least >= level.context_size] if (least >= level.context_size).any() else starts[[int(least.argmax())]]
    start = int(good[int(rng.integers(len(good)))])
    return Incident(kind, start, start + length - 1, (sensor,))


def add_incidents(
    plant: Plant,
    level: AnomalyLevel,
    incidents: list[Incident],
    normal: Floats,
    noise: Floats,
    rng: np.random.Generator,
) -> Floats:
    """The readings with incidents, in the sensors' units, shape (SAMPLES, S)."""
    readings, cycle = normal.copy(), day_cycle()
    for incident in incidents:
        span, sensors = slice(incident.start, incident.end + 1), list(incident.sensors)
        if incident.kind == "point":
            readings[span, sensors] += rng.uniform(*level.point_size) * rng.choice([-1.0, 1.0])
        elif incident.kind == "contextual":
            # The sensor behaves as twelve hours later: every value is ordinary, but at the wrong time.
            other = np.roll(cycle, A_DAY // 2)[span] - cycle[span]
            readings[span, sensors] += other[:, None] * plant.day[sensors]
        else:
            size = rng.uniform(*level.collective_size)
            if rng.random() < 0.5:
                # Some rise and some fall: all together, they could be a common swing.
                signs = rng.permutation([-1.0, 1.0, *rng.choice([-1.0, 1.0], size=len(sensors) - 2)])
                readings[span, sensors] += size * signs
            else:
                readings[span, sensors] += size * noise[span, sensors]
    return plant.base + plant.scale * readings


def logged_frame(
    plant: Plant, level: AnomalyLevel, readings: Floats, incidents: list[Incident], rng: np.random.Generator
) -> pd.DataFrame:
    """The logger's table: one row per sample, one column per sensor, with the errors of real data."""
    given = _change_units(plant, _stick(readings, level, incidents, rng), level, rng)
    columns = [np.round(given[:, s], kind.decimals) for s, kind in enumerate(plant.types)]
    written = np.stack(columns, axis=1)
    logged = blank(written, level.missing, rng)
    logged = blank(logged, level.sentinels, rng, mark=NO_READING)
    for incident in incidents:
        if incident.kind == "point":  # a missing spike could not be found
            logged[incident.start, list(incident.sensors)] = written[incident.start, list(incident.sensors)]
    first = datetime.date(2015 + int(rng.integers(9)), int(rng.integers(1, 13)), 1)
    days = [str(first + datetime.timedelta(days=day)) for day in range(SAMPLES // A_DAY)]
    shifts = [shift for _ in days for shift in SHIFTS for _ in range(A_DAY // 3)]
    frame = pd.DataFrame(
        {
            "sample": np.arange(SAMPLES),
            "timestamp": [f"{day} {clock}" for day in days for clock in CLOCKS],
            "shift": respell(shifts, 5 * level.repeats, [str.upper, str.title, lambda name: f"{name} "], rng),
            **dict(zip(plant.tags, logged.T, strict=True)),
        }
    )
    return repeat_rows(frame, level.repeats, rng)


def _stick(readings: Floats, level: AnomalyLevel, incidents: list[Incident], rng: np.random.Generator) -> Floats:
    stuck = readings.copy()
    for _ in range(level.stuck):
        sensor, start = int(rng.integers(readings.shape[1])), int(rng.integers(SAMPLES - 60))
        end = start + int(rng.integers(12, 37))
        # A logger that sticks during an incident would hide it.
        if not any(sensor in i.sensors and start <= i.end + GAP and i.start - GAP <= end for i in incidents):
            stuck[start:end, sensor] = readings[start, sensor]
    return stuck


def _change_units(plant: Plant, readings: Floats, level: AnomalyLevel, rng: np.random.Generator) -> Floats:
    given = readings.copy()
    for sensor in rng.permutation(len(plant.tags))[: level.unit_changes]:
        start = int(rng.integers(SAMPLES // 5, SAMPLES * 4 // 5))
        kind = plant.types[sensor]
        given[start:, sensor] = given[start:, sensor] * kind.factor + kind.offset
    return given
