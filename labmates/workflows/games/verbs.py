"""``labmates games``."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.workflows.protocol.verb import Verb

GAMES = Verb("List the behavioural games, or show one.", lazy("labmates.workflows.games.catalog:COMMAND"))
