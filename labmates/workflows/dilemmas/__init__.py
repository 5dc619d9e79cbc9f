"""Social dilemmas under cooperation mechanisms, played by models against each other."""

ENTRIES = {
    "labmates.experiments": {"dilemma": ".experiment:DILEMMA"},
    "labmates.analyses": {
        "dilemmas": ".analyses:CHOICES",
        "ratings": ".analyses:RATINGS",
    },
    "labmates.verbs": {
        "analyze/reasons": ".verbs:REASONS",
        "dilemmas": ".verbs:DILEMMAS",
        "mechanisms": ".verbs:MECHANISMS",
    },
    "labmates.players": {"dilemma": ".players:FAMILY"},
}
