"""Access to chat models: names, endpoints, calls, usage, and the roster of known models."""
