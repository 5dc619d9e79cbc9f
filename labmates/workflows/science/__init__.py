"""The science lab: four teams of agents under one shared budget (cooperative-profiles paper, section 4)."""

ENTRIES = {
    "labmates.experiments": {"science": ".experiment:SCIENCE"},
    "labmates.analyses": {
        "scores": ".analyses:SCORES",
        "coordination": ".analyses:COORDINATION",
        "necessity": ".analyses:NECESSITY",
        "teamwork": ".analyses:TEAMWORK",
        "organisations": ".analyses:ORGANISATIONS",
    },
    "labmates.verbs": {"demo": ".verbs:DEMO", "organisations": ".verbs:ORGANISATIONS"},
    "labmates.players": {"science": ".baselines.players:FAMILY"},
    "labmates.models": {
        "diligent": ".baselines.diligent:Diligent",
        "hasty": ".baselines.hasty:Hasty",
        "wasteful": ".baselines.wasteful:Wasteful",
        "talkative": ".baselines.wasteful:Talkative",
        "silent": ".baselines.hasty:Silent",
        "sharing": ".baselines.sharing:Sharing",
    },
}
