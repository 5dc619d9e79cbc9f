"""Paid model calls of a run: made, recorded, replayed, repaired."""
