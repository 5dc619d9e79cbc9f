"""Analyses that apply to several experiments."""
