"""What goes wrong with strategies through no fault of the user's request."""

from __future__ import annotations

from labmates.errors import LabmatesError


class WorkersError(LabmatesError):
    """The worker processes failed through no fault of any strategy."""
