"""Errors of strategies that are not errors of the user's request."""

from __future__ import annotations

from labmates.errors import LabmatesError


class WorkersError(LabmatesError):
    """The worker processes failed for a reason other than a strategy."""
