"""The image that a Docker sandbox runs: what it is called, what it is made from, how it is made."""
