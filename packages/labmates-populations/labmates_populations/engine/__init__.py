"""Strategies as code: authoring, checks, loading, play, evolution and comparison."""
