"""The array type of statistics."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
"""A NumPy array of any type; shapes are documented where it is used."""
