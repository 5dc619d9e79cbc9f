"""Instruments of the anomaly task: the plant's recorders, the register of tapes, and the workshop."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
import pandas as pd

from labmates.tasks.anomaly.data import NO_READING, SAMPLES
from labmates.tasks.anomaly.findings import AnomalyFindings, AnomalyTruth
from labmates.tasks.base import Division, Instruments
from labmates.tasks.evidence import check_runs, code_blocks, code_names, coded

if TYPE_CHECKING:
    from labmates.tasks.base import Dataset

TAPE: Final = 120
"""Samples on a tape: 20 hours, so that a place on a tape does not reveal the time of day."""
TAPES: Final = SAMPLES // TAPE
RECORDERS: Final = ("R1", "R2", "R3")
OTHER_TAPES, SPARES = (12, 36), (1, 4)
"""Ranges of the numbers of tapes of another plant, and of unused channels."""

READINGS = f"""The plant's recorders wrote some sensors to tapes of {TAPE} samples, ten minutes apart.

- tape, step: code of the tape and number of the sample on it, from 0
- recorder: the recorder that wrote the tape
- columns C01, C02 …: raw readings of a channel, in units of the recorder that wrote them

The register tells when each tape was recorded. The workshop knows which sensor a channel belongs to, and offset and \
gain of each recorder on it. Some tapes and channels belong to another plant."""

REGISTER = """The register of tapes, on which recorders of the plant wrote some sensors.

- table blocks: first is the number of a tape's first sample (sample 0 was taken at midnight); tapes that are not \
listed were recorded at another plant

The recorders' readings are held elsewhere, and so is what is known of channels and recorders."""

WORKSHOP = """The workshop's notes on the recorders that wrote some of the plant's sensors to tape.

- table names: name is the sensor behind the code of a channel; channels that are not listed belong to another plant
- table checks, with check runs: code and recorder are the channel and the recorder, reference is the true value in \
the sensor's unit, reading what the recorder wrote (offset + gain · reference, and a small error)

The recorders' readings are held elsewhere, and so is the register that tells when a tape was recorded."""


class AnomalyInstruments(Instruments[AnomalyTruth, AnomalyFindings]):
    """Sensors are closed one by one."""

    explains = "workshop"
    about: ClassVar = {"readings": READINGS, "register": REGISTER, "workshop": WORKSHOP}

    def units(self, data: Dataset[AnomalyTruth]) -> tuple[str, ...]:
        """The sensors."""
        return tuple(data.truth.sensors)

    def known(self, truth: AnomalyTruth, closed: Collection[str]) -> AnomalyFindings:
        """Events and drift of the open sensors; counts are unknown if a sensor is closed."""
        events = [
            event.model_copy(update={"sensors": open_})
            for event in truth.events
            if (open_ := [sensor for sensor in event.sensors if sensor not in closed])
        ]
        return AnomalyFindings(
            events=events, drifting_sensors=[sensor for sensor in truth.drifting_sensors if sensor not in closed]
        )

    def divide(
        self,
        data: Dataset[AnomalyTruth],
        other: Dataset[AnomalyTruth],
        closed: Collection[str],
        rng: np.random.Generator,
    ) -> Division:
        """Divide the log: closed sensors are on tapes in random order, mixed with tapes of another plant."""
        sensors = [sensor for sensor in data.truth.sensors if sensor in closed]
        names = [*sensors, *(f"spare {number}" for number in range(int(rng.integers(*SPARES))))]
        channels = coded(names, "C", rng)
        strange = {name: other.truth.sensors[place % len(other.truth.sensors)] for place, name in enumerate(names)}
        foreign = other.frame[["sample"]].assign(**{name: other.frame[sensor] for name, sensor in strange.items()})
        own = foreign.reindex(data.frame.index).assign(sample=data.frame["sample"], **data.frame[sensors])
        tapes = [(own, place) for place in range(TAPES)]
        tapes += [(foreign, place) for place in rng.permutation(TAPES)[: rng.integers(*OTHER_TAPES)].tolist()]
        codes = [f"T{number + 1:02d}" for number in rng.permutation(len(tapes)).tolist()]
        scales = {(channels[name], recorder): _scale(own[name], rng) for name in names for recorder in RECORDERS}
        written = {
            code: _tape(frame[frame["sample"] // TAPE == place], code, str(rng.choice(RECORDERS)), channels, scales)
            for (frame, place), code in zip(tapes, codes, strict=True)
        }
        spans = {channels[name]: _span(own[name]) for name in names}
        everything = len(sensors) == len(data.truth.sensors)
        return Division(
            None if everything else data.frame.drop(columns=sensors),
            {
                "readings": {"readings": pd.concat([written[code] for code in sorted(written)], ignore_index=True)},
                "register": {
                    "blocks": code_blocks({code: {"first": place * TAPE} for place, code in enumerate(codes[:TAPES])})
                },
                "workshop": {"names": code_names(channels, sensors), "checks": check_runs(scales, spans, rng)},
            },
        )


def _span(readings: pd.Series) -> tuple[float, float]:
    # The first week only: no gateway changes its unit before its end.
    low, high = readings[readings != NO_READING].head(SAMPLES // 5).quantile([0.01, 0.99])
    return float(low), float(high)


def _scale(readings: pd.Series, rng: np.random.Generator) -> tuple[float, float]:
    """Offset and gain that shift the readings by several times their usual span."""
    low, high = _span(readings)
    gain = float(np.exp(rng.uniform(-1, 1)))
    return float(rng.uniform(-3, 3) * (high - low) * gain), gain


def _tape(
    rows: pd.DataFrame,
    code: str,
    recorder: str,
    channels: Mapping[str, str],
    scales: Mapping[tuple[str, str], tuple[float, float]],
) -> pd.DataFrame:
    tape = pd.DataFrame({"tape": code, "step": rows["sample"] % TAPE, "recorder": recorder})
    for name, channel in sorted(channels.items(), key=lambda pair: pair[1]):
        offset, gain = scales[channel, recorder]
        tape[channel] = rows[name].where(rows[name] == NO_READING, (offset + gain * rows[name]).round(5))
    return tape
