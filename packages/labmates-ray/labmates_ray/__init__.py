"""Executes studies of labmates on a Ray cluster."""
