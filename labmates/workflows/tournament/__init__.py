"""Tournaments of the iterated prisoner's dilemma: teams, planner and critic, three structures."""

ENTRIES = {
    "labmates.experiments": {"tournament": ".experiment:TOURNAMENT"},
    "labmates.analyses": {"tournament": ".analyses:COOPERATION"},
    "labmates.players": {"tournament": ".players:FAMILY"},
}
