"""The cells of the biomarker task for diligent baselines: plain methods, as a careful analyst would use them."""

from labmates.tasks.analysis import Analysis

BIOMARKER_ANALYSIS = Analysis(
    package=__name__,
    titles={
        "prepare": "see the layout of the trial",
        "clean": "read numbers, units, batches and gaps",
        "model": "fit markers and their interactions with the arm",
        "future": "look for hidden subtypes",
        "check": "check the claims in both halves",
    },
    methods=(
        "Patients entered twice were dropped, units of assay batches brought together by powers of ten, and "
        "values below a detection limit set to the limit over the root of two.",
        "Shifted batches were centred, log levels turned into standard deviations, and gaps filled by linear "
        "regression on the other markers (single imputation).",
        "The main model is a linear regression of the outcome on arm, covariates, markers and arm-by-marker "
        "interactions; t-tests were corrected for the number of markers by the false discovery rate (Benjamini- "
        "Hochberg, 10 %).",
        "Hidden subtypes are the components of a Gaussian mixture with one covariance, their number chosen by BIC.",
        "Claimed effects were estimated anew in two random halves of the patients, given each other.",
    ),
    doubt="interactions near the threshold may be chance, and those who left the trial did worse than the others",
)
