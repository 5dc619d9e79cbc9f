"""Self-play of strategies written as code: all mixtures of two attitudes."""
