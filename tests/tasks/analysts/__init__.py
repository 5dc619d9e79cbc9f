"""Analyses of the science tasks by somebody who has read the prompts and the table, and nothing else."""
