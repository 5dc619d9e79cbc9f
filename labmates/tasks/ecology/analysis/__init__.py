"""The cells of the ecology task for diligent baselines: plain methods, as a careful analyst would use them."""

from labmates.tasks.analysis import Analysis

ECOLOGY_ANALYSIS = Analysis(
    package=__name__,
    titles={
        "prepare": "see the layout of the surveys",
        "clean": "repair names, units and slips",
        "model": "fit the growth model",
        "future": "forecast with a held-out year",
        "check": "check the claims in both halves",
    },
    methods=(
        "Names were brought to one spelling by edit distance, repeated rows dropped, and decimal slips set aside "
        "against a rolling median.",
        "The main model is a linear regression of each log abundance on all log abundances one step before (a "
        "vector autoregression), with an intercept for each place.",
        "Regime shifts were found by a likelihood-ratio test at every possible time, one after the other.",
        "Effects were tested with t-tests whose p-values were corrected for the number of pairs (Bonferroni, 20 % "
        "in all).",
        "Forecasts take the mean of the latest stretch without a change and were cross-checked on a held-out year.",
    ),
    doubt="effects near the threshold may be chance, and a shift that takes several steps is dated to its middle",
)
