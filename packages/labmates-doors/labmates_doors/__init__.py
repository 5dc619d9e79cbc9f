"""Doors of labmates: what comes in by a protocol, and what goes out."""
