"""The cells of the geospatial task for diligent baselines: plain methods, as a careful analyst would use them."""

from labmates.tasks.analysis import Analysis

GEOSPATIAL_ANALYSIS = Analysis(
    package=__name__,
    titles={
        "prepare": "see the layout of the map",
        "clean": "repair coordinates, units and gaps",
        "model": "fit trend, hot spots and variogram",
        "future": "cross-validate in space",
        "check": "check the claims in parts of the map",
    },
    methods=(
        "Exchanged coordinates were put right, batches in parts per billion converted, second samples of a site "
        "dropped, half the detection limit taken for what lies below it, decimal slips set aside, and gaps in "
        "covariates interpolated.",
        "The main model is a linear regression of the log grade on covariates and rock, fitted by generalised "
        "least squares with the covariance of the fitted variogram; t-tests were corrected for their number "
        "(Bonferroni, 5 %).",
        "Hot spots are where residuals stand out from a ring around them by three robust standard deviations; "
        "their place and half-distance were fitted by least squares.",
        "The variogram of what is left is exponential with nugget and geometric anisotropy, fitted by weighted "
        "least squares in six directions.",
        "Regression kriging was set against regression alone in random 10-fold cross-validation and on left-out "
        "blocks.",
    ),
    doubt="near samples say much the same, so p-values rest on the variogram, and weak hot spots may be chance",
)
