"""Compiled modules and the list of fonts, created once per machine instead of in every session.

A sandbox can't write next to the packages, nor to any permanent place. If packages are installed without compiled
modules (by uv, or with ``PYTHONDONTWRITEBYTECODE``), every session would compile pandas again, which takes seconds, and
every first plot would scan the machine's fonts. Compiled modules go next to the packages, or to a cache folder if that
is not writable.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from labmates.sandboxes.folders import cache_folder, remove_folder
from labmates.sandboxes.interpreter import FLAGS, PACKAGES, local_modules, this_interpreter

_IMPORTS = """
import ipykernel.debugger, ipykernel.kernelapp, ipykernel.ipkernel, matplotlib_inline.backend_inline, site
import tornado.locks, tornado.platform.asyncio, tornado.queues
import IPython.core.completerlib, IPython.core.debugger, IPython.core.logger, IPython.core.oinspect
import IPython.core.pylabtools, IPython.extensions.storemagic
import matplotlib.pyplot, matplotlib.font_manager, numpy, pandas, scipy.optimize, scipy.signal, scipy.spatial
import scipy.stats, seaborn, sklearn.cluster, sklearn.decomposition, sklearn.ensemble, sklearn.gaussian_process
import sklearn.linear_model, sklearn.metrics, sklearn.model_selection, sklearn.pipeline, sklearn.preprocessing
import statsmodels.api, statsmodels.formula.api
"""
_LIST_FONTS = "import matplotlib.font_manager"
_BYTECODE, _FONTS = "bytecode", "matplotlib"
_LOCK = threading.Lock()
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Warmup:
    """Read-only folders that speed up sessions' starts; None if unneeded or impossible."""

    bytecode: Path | None = None
    fonts: Path | None = None


def warm_up() -> Warmup:
    """The prepared folders for this interpreter and these package versions; created if missing.

    Blocks: the first call on a machine takes a second, or several to compile modules. Call it in a thread.
    """
    with _LOCK:  # concurrent sessions wait for one preparation
        return _prepared()


@cache
def _prepared() -> Warmup:
    local_modules()  # kept for the launches, which must not read files in the event loop
    folder = cache_folder("kernel") / _fingerprint()
    bytecode, fonts = folder / _BYTECODE, folder / _FONTS
    # Check both: compiled packages may have been reinstalled.
    if not fonts.is_dir() or not (bytecode.is_dir() or _are_compiled()):
        _prepare(folder)
    return Warmup(bytecode if bytecode.is_dir() else None, fonts if fonts.is_dir() else None)


def _fingerprint() -> str:
    versions = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    places = [str(path) for path in this_interpreter().packages]
    return hashlib.sha256("\n".join([sys.version, *versions, *places]).encode()).hexdigest()[:16]


def _prepare(folder: Path) -> None:
    """Import the packages once in a separate process, for its by-products."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=folder))
    except OSError:
        return
    (made / _FONTS).mkdir()
    environment = {
        "HOME": str(made),
        "PATH": "/usr/bin:/bin",
        "MPLBACKEND": "agg",
        "MPLCONFIGDIR": str(made / _FONTS),
        "PYTHONPATH": os.pathsep.join(map(str, this_interpreter().packages)),
    }
    wanted = _LIST_FONTS
    if not _are_compiled():
        wanted = _IMPORTS
        if not all(os.access(source.parent, os.W_OK) for source in _large()):
            environment["PYTHONPYCACHEPREFIX"] = str(made / _BYTECODE)
    command = [str(this_interpreter().executable), *FLAGS, "-c", wanted]
    _LOGGER.info("preparing Python for sandboxes in %s, once; this takes some seconds", folder)
    done = subprocess.run(command, env=environment, cwd=made, capture_output=True, check=False)  # noqa: S603
    if done.returncode == 0:
        for part in made.iterdir():
            try:
                part.rename(folder / part.name)
            except OSError as error:
                if not (folder / part.name).is_dir():  # else another process was faster
                    _LOGGER.warning("what was prepared for sandboxes can't be kept: %s", error)
    remove_folder(made)


def _large() -> Iterator[Path]:
    """Yield the first files of large installed packages, as a sample of all packages."""
    for name in ("IPython", "sklearn", "statsmodels"):
        spec = find_spec(name)
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin)


def _are_compiled() -> bool:
    tag = sys.implementation.cache_tag
    return all((source.parent / "__pycache__" / f"{source.stem}.{tag}.pyc").exists() for source in _large())
