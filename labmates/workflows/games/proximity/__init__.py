"""The regression of how near play is to the optimum."""
