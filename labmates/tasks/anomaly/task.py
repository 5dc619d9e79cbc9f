"""The anomaly task: time, sensors and kind of a plant's abnormal behaviour.

Source: cooperative-profiles paper, section 4.1 (science tasks). Data, findings and scoring are our own design.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import numpy as np

from labmates.tasks.anomaly.analysis import ANOMALY_ANALYSIS
from labmates.tasks.anomaly.data import (
    KINDS,
    LEVELS,
    NO_READING,
    SAMPLES,
    SENSOR_TYPES,
    Incident,
    Kind,
    Plant,
    add_incidents,
    draw_incidents,
    draw_plant,
    logged_frame,
    normal_readings,
)
from labmates.tasks.anomaly.findings import AnomalyFindings, AnomalyTruth, Event
from labmates.tasks.anomaly.ideal import ideal_findings
from labmates.tasks.anomaly.instruments import AnomalyInstruments
from labmates.tasks.base import Check, Credit, Dataset, Difficulty, Task, level_of
from labmates.tasks.noise import random_for
from labmates.tasks.scoring import (
    NOT_STATED,
    plain_name,
    score_count,
    score_list,
    score_names,
    score_number,
    within,
)
from labmates.tasks.words import says_all, says_count, says_name, says_number, says_together

BRIEF = """The sensors of an industrial plant were logged every ten minutes for a month. Build a detector that tells \
abnormal from normal behaviour, and report what it finds. How many sensors are there? When did something abnormal \
begin and end, on which sensors, and of which kind is it: a point anomaly (one sample far off), a contextual one \
(values that are ordinary as such, but not at that time of the day), or a collective one (a longer stretch in which \
several sensors together run at another level or become restless)? How many of each kind are there, and which share \
of the time is abnormal? Which sensor is involved most often? Which sensors drift slowly over the month? Daily and \
shift cycles, common swings of related sensors and slow drift are normal operation. So are faults of the logging: \
missing readings, a logger that repeats its last value for some hours, a change of unit, \
rows written twice. Separate them from real anomalies."""

TIME_FULL = 0.5
"""The time of a stated event earns full credit from an overlap (intersection over union) of one half on."""
SLACK = 2
"""Both intervals are widened by this many samples on either side before computing their overlap."""
WRONG_KIND, NO_KIND = 0.7, 0.85
"""Factor for an event with a wrong, or no, kind."""
NO_SENSORS = 0.5
"""Factor for an event without sensors; stated sensors count by their F1, so only wrong ones earn no credit."""
COUNT_ZERO = 0.3
"""A number of events earns full credit if exact, none from an error of 30 % on."""
SHARE_FULL, SHARE_ZERO = 0.1, 0.4
"""The abnormal share of time earns full credit within 10 % of the truth, none from 40 % on."""

_TAG = re.compile(rf"(?:{'|'.join(kind.letters for kind in SENSOR_TYPES)})\d{{3}}")


class AnomalyTask(Task[AnomalyTruth, AnomalyFindings]):
    """Point, contextual and collective anomalies in the readings of 8 to 12 sensors.

    Periods in which a logger repeats its last value are logging faults, not anomalies, as stated in brief and
    description.
    """

    name = "anomaly"
    title = "Anomalies in industrial sensors"
    brief = BRIEF
    version = "3"
    findings = AnomalyFindings
    instruments = AnomalyInstruments()
    analysis = ANOMALY_ANALYSIS

    def generate(self, seed: int, difficulty: Difficulty = "medium") -> Dataset[AnomalyTruth]:
        """The log of one plant; for difficulties see `labmates.tasks.anomaly.data.LEVELS`."""
        level = level_of(LEVELS, difficulty)
        plant = draw_plant(level, random_for(self.name, seed, difficulty, "plant"))
        incidents = draw_incidents(plant, level, random_for(self.name, seed, difficulty, "incidents"))
        normal, noise = normal_readings(plant, level, random_for(self.name, seed, difficulty, "normal"))
        sizes, dirt = random_for(self.name, seed, difficulty, "sizes"), random_for(self.name, seed, difficulty, "log")
        readings = add_incidents(plant, level, incidents, normal, noise, sizes)
        frame = logged_frame(plant, level, readings, incidents, dirt)
        truth = _truth(plant, incidents)
        return Dataset(frame, truth, _description(plant), partial(ideal_findings, truth, plant, incidents, readings))

    def oracle(self, truth: AnomalyTruth) -> AnomalyFindings:
        """The truth as findings."""
        return AnomalyFindings(
            n_sensors=len(truth.sensors),
            events=truth.events,
            n_point=_count(truth, "point"),
            n_contextual=_count(truth, "contextual"),
            n_collective=_count(truth, "collective"),
            anomalous_share=truth.anomalous_share,
            most_affected_sensor=truth.most_affected_sensors[0],
            drifting_sensors=truth.drifting_sensors,
        )

    def prior(self, columns: Sequence[str], difficulty: Difficulty) -> AnomalyFindings:
        """The number of sensors (from the columns), likely numbers of events, and random sensors."""
        sensors = [column for column in columns if _TAG.fullmatch(column)]
        return AnomalyFindings(
            n_sensors=len(sensors),
            n_point=8,
            n_contextual=4,
            n_collective=4,
            anomalous_share=0.062,
            most_affected_sensor=sensors[0] if sensors else None,
            drifting_sensors=sensors[:2],
        )

    def score(self, findings: AnomalyFindings, truth: AnomalyTruth) -> tuple[Credit, ...]:
        """Credits by the tolerances of this module; lists by F1 (`labmates.tasks.scoring.guarded_f1`).

        Numbers weigh little: most can be guessed, and they follow from the events.
        """
        stated = (findings.n_point, findings.n_contextual, findings.n_collective)
        near, near_count = within(SHARE_FULL, SHARE_ZERO, relative=True), within(0.0, COUNT_ZERO, relative=True)
        counts = (
            score_number(f"n_{kind}", number, _count(truth, kind), weight=0.2, credit=near_count)
            for kind, number in zip(KINDS, stated, strict=True)
        )
        return (
            score_count("n_sensors", findings.n_sensors, len(truth.sensors), weight=0.1),
            score_list("events", findings.events, truth.events, weight=6, similarity=_event_similarity),
            *counts,
            score_number("anomalous_share", findings.anomalous_share, truth.anomalous_share, weight=0.3, credit=near),
            _score_worst(findings.most_affected_sensor, truth.most_affected_sensors),
            score_names("drifting_sensors", findings.drifting_sensors, truth.drifting_sensors, weight=1),
        )

    def checks(self, truth: AnomalyTruth) -> tuple[Check, ...]:
        """Sensors counted and named, each kind of anomaly reported, an event dated, drift and cycles discussed."""
        odd = r"\b(?:anomal|outlier|abnormal|event)"
        involved = sorted({sensor for event in truth.events for sensor in event.sensors})
        return (
            Check("sensors counted", says_count(len(truth.sensors), "sensors?")),
            Check("point anomalies reported", says_together(odd, r"\b(?:point|spikes?|isolated)\b")),
            Check("contextual anomalies reported", says_together(odd, r"\bcontextual")),
            Check("collective anomalies reported", says_together(odd, r"\bcollective")),
            Check("affected sensors named", says_name(involved)),
            Check("event dated", says_number(odd, [event.start for event in truth.events], SLACK)),
            Check("drift discussed", says_together(r"\bdrift", r"\b(?:sensors?|channels?|[A-Z]{2}\d{3})\b")),
            Check("normal cycles discussed", says_all(r"\b(?:daily|diurnal|shifts?|cycles?|season)", odd)),
        )

    def summary(self, truth: AnomalyTruth) -> str:
        """The truth in sentences."""
        counts = ", ".join(f"{_count(truth, kind)} {kind}" for kind in KINDS)
        events = [
            f"A {event.kind} anomaly lasts from sample {event.start} to {event.end} on {', '.join(event.sensors)}."
            for event in truth.events
        ]
        return "\n".join(
            [
                f"The plant has {len(truth.sensors)} sensors: {', '.join(truth.sensors)}.",
                f"There are {len(truth.events)} anomalies: {counts}.",
                *events,
                f"Abnormal are {100 * truth.anomalous_share:.1f} % of the samples.",
                f"Most anomalies involve sensor {' or '.join(truth.most_affected_sensors)}.",
                f"A slow drift over the month is found in the sensors {', '.join(truth.drifting_sensors)}.",
                "Daily cycles, shift cycles and swings that related sensors share are normal and no anomalies.",
            ]
        )


def _count(truth: AnomalyTruth, kind: Kind) -> int:
    return sum(event.kind == kind for event in truth.events)


def _event_similarity(stated: Event, true: Event) -> float:
    """Similarity in [0, 1]: overlap in time, times agreement on the sensors, times a factor for the kind."""
    shared = min(stated.end, true.end) - max(stated.start, true.start) + 1 + 2 * SLACK
    if shared <= 0 or stated.end < stated.start:
        return 0.0
    union = max(stated.end, true.end) - min(stated.start, true.start) + 1 + 2 * SLACK
    names, right = {plain_name(name) for name in stated.sensors}, {plain_name(name) for name in true.sensors}
    sensors = 2 * len(names & right) / (len(names) + len(right)) if names else NO_SENSORS
    kind = NO_KIND if stated.kind is None else 1.0 if stated.kind == true.kind else WRONG_KIND
    return min(1.0, shared / union / TIME_FULL) * sensors * kind


def _score_worst(stated: str | None, true: Sequence[str]) -> Credit:
    """Credit of the sensor with most anomalies; any of several with equal numbers is right."""
    right = stated is not None and plain_name(stated) in map(plain_name, true)
    reason = NOT_STATED if stated is None else f"{'one' if right else 'none'} of {', '.join(true)}"
    return Credit("most_affected_sensor", float(right), 1, reason)


def _truth(plant: Plant, incidents: Sequence[Incident]) -> AnomalyTruth:
    tags = plant.tags
    abnormal = {sample for incident in incidents for sample in range(incident.start, incident.end + 1)}
    involved = [sum(s in incident.sensors for incident in incidents) for s in range(len(tags))]
    return AnomalyTruth(
        sensors=list(tags),
        events=[Event(start=i.start, end=i.end, sensors=[tags[s] for s in i.sensors], kind=i.kind) for i in incidents],
        anomalous_share=round(len(abnormal) / SAMPLES, 4),
        most_affected_sensors=[tag for tag, times in zip(tags, involved, strict=True) if times == max(involved)],
        drifting_sensors=[tags[s] for s in np.flatnonzero(plant.drift)],
    )


def _description(plant: Plant) -> str:
    sensors = "\n".join(
        f"- {tag}: {kind.quantity}, meant to be in {kind.unit}"
        for tag, kind in zip(plant.tags, plant.types, strict=True)
    )
    return f"""One row for each sample of the plant's sensors, every ten minutes.

- sample: number of the sample, from 0
- timestamp: when it was taken (local time)
- shift: working shift on duty (night from 00:00, morning from 08:00, late from 16:00), typed by hand
{sensors}

Known habits of the log: empty or {NO_READING:.0f} means that there is no reading; a logger sometimes repeats its last \
value for some hours, which is a fault of the logging and not an anomaly; a gateway that was set up anew may report \
another unit from then on; some rows were written twice."""
