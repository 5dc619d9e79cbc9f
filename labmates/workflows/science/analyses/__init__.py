"""Analyses of science runs, and the sections of their pages."""
