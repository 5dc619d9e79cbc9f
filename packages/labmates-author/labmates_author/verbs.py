"""The commands that this package adds to verbs of labmates."""

from __future__ import annotations

from labmates.registry import lazy
from labmates.workflows.protocol.verb import Verb

CHECK_TASK = Verb("Check a task against the rules.", lazy("labmates_author.commands.tasks:CHECK"))
NEW_TASK = Verb("Write a package with a task.", lazy("labmates_author.commands.tasks:NEW"))
ORACLE = Verb("Print the report of a team that knows the truth.", lazy("labmates_author.commands.scoring:ORACLE"))
PRIOR = Verb("Print the report of a team without data.", lazy("labmates_author.commands.scoring:PRIOR"))
SCORE = Verb("Score the findings in a text.", lazy("labmates_author.commands.scoring:SCORE"))
CHECK_JUDGE = Verb("Check a judge against the rules.", lazy("labmates_author.commands.judges:CHECK"))
NEW_JUDGE = Verb("Write a package with a judge.", lazy("labmates_author.commands.judges:NEW"))
CHECK_GAME = Verb("Check a game.", lazy("labmates_author.commands.games:CHECK"))
CHECK_MECHANISM = Verb("Check a mechanism.", lazy("labmates_author.commands.mechanisms:CHECK"))
CHECK_ORGANISATION = Verb("Check an organisation.", lazy("labmates_author.commands.organisations:CHECK"))
DRAW_ORGANISATION = Verb("Draw an organisation.", lazy("labmates_author.commands.organisations:DRAW"))
NEW_ORGANISATION = Verb("Write the files of an organisation.", lazy("labmates_author.commands.organisations:NEW"))
