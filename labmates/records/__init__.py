"""Records of runs: typed events, the store, data frames."""
