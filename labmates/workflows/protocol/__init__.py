"""The protocols of experiments, analyses and commands, and what a run is given."""
