"""Experiments with strategies written as code."""

ENTRIES = {
    "labmates.experiments": {
        "selfplay": ".experiment:SELFPLAY",
        "evolution": ".experiment:EVOLUTION",
        "strategies": ".experiment:STRATEGIES",
    },
    "labmates.analyses": {
        "diversity": ".analyses:DIVERSITY",
        "evolution": ".analyses:EVOLUTION",
        "fixation": ".analyses:FIXATION",
        "invasion": ".analyses:INVASION",
        "selfplay": ".analyses:SELFPLAY",
    },
    "labmates.verbs": {"strategies": ".verbs:STRATEGIES"},
    "labmates.models": {"author": ".author:Author", "code/": ".code_players:code_player"},
}
