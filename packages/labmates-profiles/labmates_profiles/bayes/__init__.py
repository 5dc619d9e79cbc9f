"""Bayesian models of outcomes of runs, fitted by importance sampling on small sufficient statistics.

The sampler is here; each model's data, density, checks and tables are in its experiment's folder.
"""
