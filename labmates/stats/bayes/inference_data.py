"""Export of fits as netCDF files for ArviZ: posterior, prior, log likelihood, replications and data, in groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from labmates.errors import MissingExtraError, UsageError
from labmates.stats.bayes.blocks import Evaluated

ENDING: Final = ".nc"


def check_netcdf(path: Path) -> None:
    """Check, before the fit, that it can be written to a file; a `UsageError` if not.

    The file must end in .nc, its folder must be writable, and the extra `analysis` must be installed.
    """
    if path.suffix.lower() != ENDING:
        raise UsageError(f"a file of draws ends in {ENDING}, not '{path.name}'")
    try:
        import arviz_base  # noqa: F401
        import h5netcdf  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError("a netCDF file of draws", "analysis") from error
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"can't write draws to '{path}': {error.strerror}") from error


def inference_data(fit: Evaluated) -> Any:
    """A fit as an `xarray.DataTree` with ArviZ's groups.

    ``posterior`` and ``prior`` contain the parameters; ``log_likelihood`` that of each outcome given its model's
    effects (``outcome``) and of all outcomes of a model with these integrated out (``by_model``, for leaving models
    out); ``log_prior`` the density of each kind of parameters (for power-scaling); ``posterior_predictive``
    replications; ``observed_data`` and ``constant_data`` the cells. Draws are equally weighted and independent; the
    attributes of ``sample_stats`` describe their quality (k-hat, effective draws).
    """
    from arviz_base import from_dict

    def chained(draws: Any, parameter_dimension: str) -> Any:
        return draws[None] if parameter_dimension else draws[None, :, 0]

    kinds = fit.parameters
    dims = {key: [kind.dimension] for key, kind in kinds.items() if kind.dimension}
    coords: dict[str, Any] = {kind.dimension: list(kind.labels) for kind in kinds.values() if kind.dimension}
    coords |= {"cell": list(fit.cells), "model": list(fit.models)}
    dims |= {"outcome": ["cell"], "by_model": ["model"], "count": ["cell"], "model_of_cell": ["cell"]}
    data = {
        "posterior": {key: chained(kind.draws, kind.dimension) for key, kind in kinds.items()},
        "prior": {
            key: chained(kind.prior, kind.dimension) for key, kind in kinds.items() if not np.isnan(kind.prior).any()
        },
        "posterior_predictive": {"outcome": fit.replicated[None]},
        "log_likelihood": {"outcome": fit.log_likelihood[None], "by_model": fit.by_model[None]},
        "sample_stats": {"log_prior": fit.log_prior[None], "log_likelihood": fit.by_model.sum(axis=1)[None]},
        "observed_data": {"outcome": fit.observed},
        "constant_data": {"count": fit.count, "model_of_cell": np.array([fit.models[at] for at in fit.model_of])},
    }
    diagnostics = fit.posterior.diagnostics
    quality = {
        "method": diagnostics.method,
        "effective_draws": diagnostics.effective,
        "draws_of_fit": diagnostics.draws,
    }
    if diagnostics.k_hat is not None:
        quality["k_hat"] = diagnostics.k_hat
    attributes = {"posterior": {"inference_library": "labmates", "fit": fit.name, "explains": fit.outcome}}
    tree = from_dict(data, coords=coords, dims=dims, attrs={**attributes, "sample_stats": quality})
    log_prior = {key: kind.log_prior[None] for key, kind in kinds.items() if kind.log_prior is not None}
    tree["log_prior"] = from_dict({"log_prior": log_prior})["log_prior"]
    return tree


def write_netcdf(fits: list[Evaluated], path: Path) -> list[Path]:
    """Write fits to one file each, and return the files; names of several fits precede the ending.

    Raises
    ------
    UsageError
        As in `check_netcdf`, or if a file can't be written.
    """
    check_netcdf(path)
    written = []
    for fit in fits:
        file = path if len(fits) == 1 else path.with_stem(f"{path.stem}-{fit.name}")
        try:
            inference_data(fit).to_netcdf(file, engine="h5netcdf")
        except OSError as error:
            raise UsageError(f"can't write draws to '{file}': {error.strerror or error}") from error
        written.append(file)
    return written
