"""Benchmarks, run by hand: `make bench`. They print ratios measured side by side in one run."""
