"""Scripted baselines that work in the science lab, and what a disposition means there."""
