"""Mechanisms that make cooperation pay: repetition, reputation, mediators, contracts."""
