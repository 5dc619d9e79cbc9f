"""The regression of play's closeness to the social optimum."""
