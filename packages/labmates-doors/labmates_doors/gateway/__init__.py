"""The gateway: programs that speak a provider's HTTP protocol share one pool of money."""
