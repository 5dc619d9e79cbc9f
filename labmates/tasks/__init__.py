"""Science tasks: generators of synthetic data with a known truth, and scorers of what a report says about them."""
