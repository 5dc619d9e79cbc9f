"""Formats of ``labmates export`` for other programs."""
