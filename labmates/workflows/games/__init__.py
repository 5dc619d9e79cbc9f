"""A behavioural game played by groups of agents."""
