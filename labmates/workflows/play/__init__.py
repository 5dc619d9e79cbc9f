"""What experiments with players share."""
