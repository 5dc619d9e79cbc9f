"""The pipeline and its teams, and one agent alone."""

from __future__ import annotations

from labmates.agents.organisation_files import find_organisation

PIPELINE = find_organisation("pipeline")
TEAMS = PIPELINE.teams
DATA, MODEL, EVAL, WRITING = TEAMS.values()
ALONE = find_organisation("solo")
[SOLO] = ALONE.teams.values()
