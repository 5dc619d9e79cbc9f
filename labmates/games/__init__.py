"""Games: who decides what, and who gets which payoff."""
