"""What is kept of a run: typed events, the store, data frames."""
