"""The image that a Docker sandbox runs: its name, its ingredients, its build."""
