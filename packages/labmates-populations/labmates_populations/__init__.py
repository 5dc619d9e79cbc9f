"""Experiments with strategies written as code."""
