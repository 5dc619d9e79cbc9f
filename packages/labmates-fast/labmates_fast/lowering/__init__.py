"""Instructions for `machine` from compiled strategies."""
