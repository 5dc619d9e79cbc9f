"""The version of labmates."""

__version__ = "0.1.0"
