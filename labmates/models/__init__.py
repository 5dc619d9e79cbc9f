"""Which chat model answers: names, endpoints, calls, usage, and the roster of known models."""
