"""The ecology task: surveys of species at sites."""
