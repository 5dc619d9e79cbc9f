"""Games: decisions of players and the payoffs that follow."""
