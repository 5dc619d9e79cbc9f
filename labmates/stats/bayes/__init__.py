"""Bayesian models of what runs measure, fitted by importance sampling on small sufficient statistics.

The sampler is here; a folder for each of the two questions holds its data, its density, its checks and its tables.
"""
