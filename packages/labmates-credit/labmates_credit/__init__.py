"""Whom to credit: the seat of a run that lost credit, and how far judges agree."""
