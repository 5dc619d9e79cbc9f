"""A behavioural game played by groups of agents."""

ENTRIES = {
    "labmates.experiments": {"game": ".experiment:GAME"},
    "labmates.analyses": {
        "check/prediction": ".prediction.analysis:CHECK_PREDICTION",
        "check/proximity": ".proximity.analysis:CHECK_PROXIMITY",
        "convergence": ".analyses:CONVERGENCE",
        "prediction": ".prediction.analysis:PREDICTION",
        "profiles": ".analyses:PROFILES",
        "proximity": ".proximity.analysis:PROXIMITY",
        "usage": ".usage:USAGE",
        "usefulness": ".prediction.analysis:USEFULNESS",
    },
    "labmates.verbs": {"games": ".verbs:GAMES", "profile": ".verbs:PROFILE", "screen": ".verbs:SCREEN"},
    "labmates.players": {"behavioural": ".players:FAMILY"},
}
