"""What the numbers mean: statistics over the runs of a store."""
