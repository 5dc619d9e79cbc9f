"""Compilation and cache of the machine's functions.

Numba keeps what it has compiled by the file of each function, although that also holds functions of other files that
it calls. So all of it is kept by the text of all files.
"""

from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import config, njit

from labmates_fast import instructions

_FOLDER = Path(__file__).parent
_FILES = (Path(instructions.__file__), *sorted(_FOLDER.glob("*.py")))
_DIGEST = sha256(b"".join(file.read_bytes() for file in _FILES)).hexdigest()[:16]
_CONFIG: Any = config
_CONFIG.LOOP_VECTORIZE = 0  # vectors of the machine's short loops cost more than they save
_CONFIG.CACHE_DIR = str(Path(_CONFIG.CACHE_DIR or _FOLDER / "__pycache__") / _DIGEST)
compiled = njit(cache=True, error_model="numpy", nogil=True)
within = njit(cache=True, error_model="numpy", nogil=True, forceinline=True)
"""For what most instructions do: inlined into its callers."""
