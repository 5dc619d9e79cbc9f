"""The cells of the anomaly task for diligent baselines: plain methods, as a careful analyst would use them."""

from labmates.tasks.analysis import Analysis

ANOMALY_ANALYSIS = Analysis(
    package=__name__,
    titles={
        "prepare": "see the layout of the readings",
        "clean": "repair readings and take out the normal course",
        "model": "detect events",
        "check": "check the claimed events",
    },
    methods=(
        "Error codes, stuck readings and repeated rows were taken out, and changed units brought back to the "
        "first one.",
        "The normal course of each sensor is its median at each time of the day plus a linear regression on time.",
        "What is left was turned into robust z-scores with the median absolute deviation.",
        "Spikes were tested against a rolling median, longer events against a rolling mean with a three-sigma "
        "rule; events on several sensors at once were joined.",
        "Every claimed event was tested against all other stretches of the same length, with an empirical p-value.",
    ),
    doubt="short events near the threshold may be noise, and the kind of an event on one sensor is a guess",
)
