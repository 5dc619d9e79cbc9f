"""Formats of ``labmates study export`` for other programs."""
