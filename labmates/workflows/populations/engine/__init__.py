"""Strategies as code: written, checked, loaded, played by the hundred, evolved, compared."""
