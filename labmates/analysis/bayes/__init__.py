"""Bayesian models of what runs measure, fitted by importance sampling on small sufficient statistics."""
