"""The array type of statistics."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
"""A NumPy array of any type; its shape is given where it is used."""
