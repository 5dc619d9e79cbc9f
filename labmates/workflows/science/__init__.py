"""The science lab: four teams of agents under one shared budget (cooperative-profiles paper, section 4)."""
