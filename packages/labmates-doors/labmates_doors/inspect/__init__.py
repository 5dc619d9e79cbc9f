"""Conditions of labmates as tasks of Inspect, whose model plays."""
