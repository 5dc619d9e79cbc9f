"""The ideal analysis of a plant's log: the true model of normal behaviour, and the true incidents' size and place.

Known are the cycle, the drift and which incidents there are; estimated from the readings are their first and last
samples. An incident that the readings don't show is not stated.
"""

from __future__ import annotations

import numpy as np

from labmates.tasks.anomaly.data import SAMPLES, Incident, Plant, day_cycle
from labmates.tasks.anomaly.findings import AnomalyFindings, AnomalyTruth, Event
from labmates.tasks.noise import Floats

WINDOW = 12
"""Samples around the true begin and end among which they are looked for."""
CLEAR = 3.0
"""Least z of an incident that is stated."""


def ideal_findings(truth: AnomalyTruth, plant: Plant, incidents: list[Incident], readings: Floats) -> AnomalyFindings:
    """What the readings allow to state at best; `readings` has the shape (SAMPLES, S), in the sensors' units."""
    left = (readings - plant.base) / plant.scale - day_cycle()[:, None] * plant.day
    left = left - np.linspace(0, 1, SAMPLES)[:, None] * plant.drift
    # Noise and group factors are slow, so a spike stands out from its neighbours.
    spike = np.abs(left - np.stack([_between(values) for values in left.T], axis=1))
    left, spike = (values / (1.4826 * np.median(np.abs(values), axis=0)) for values in (left, spike))
    events = [event for incident in incidents if (event := _found(incident, plant, left, spike))]
    kinds = [event.kind for event in events]
    abnormal = {sample for event in events for sample in range(event.start, event.end + 1)}
    return AnomalyFindings(
        n_sensors=len(plant.tags),
        events=events,
        n_point=kinds.count("point"),
        n_contextual=kinds.count("contextual"),
        n_collective=kinds.count("collective"),
        anomalous_share=len(abnormal) / SAMPLES,
        most_affected_sensor=max(plant.tags, key=lambda tag: sum(tag in event.sensors for event in events)),
        drifting_sensors=truth.drifting_sensors,
    )


def _between(values: Floats) -> Floats:
    """What two neighbours on either side predict of each sample; how they do is fitted over the month."""
    near = np.stack([np.roll(values, step) + np.roll(values, -step) for step in (1, 2)], axis=1)
    fitted: Floats = near @ np.linalg.solve(near.T @ near, near.T @ values)
    return fitted


def _found(incident: Incident, plant: Plant, left: Floats, spike: Floats) -> Event | None:
    """The incident with its begin and end as the squared residuals show them; None if they don't show it."""
    first, last = incident.start, incident.end
    power = (left[:, list(incident.sensors)] ** 2).mean(axis=1) - 1
    if incident.kind == "point":
        near = range(first - WINDOW, first + WINDOW + 1)
        size = spike[:, incident.sensors[0]]
        first = last = max(near, key=lambda sample: size[sample])
        clear = size[first]
    else:
        # The likelihood of a higher variance inside grows with the sum of what exceeds half of the excess there.
        excess = np.cumsum(power - power[first : last + 1].mean() / 2)
        begin, end = range(first - WINDOW, first + WINDOW), range(last - WINDOW, last + WINDOW)
        first = min(begin, key=lambda sample: excess[sample - 1])
        last = max((sample for sample in end if sample > first), key=lambda sample: excess[sample])
        clear = power[first : last + 1].sum() / np.sqrt(2 * (last - first + 1))
    if clear < CLEAR:
        return None
    return Event(start=first, end=last, sensors=[plant.tags[s] for s in incident.sensors], kind=incident.kind)
