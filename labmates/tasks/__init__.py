"""Science tasks: generators of synthetic data with a known truth, and scorers of reports about them."""
