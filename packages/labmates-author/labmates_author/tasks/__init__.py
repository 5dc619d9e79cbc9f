"""The conformance test for tasks, built-in and of other packages.

`check_task` applies the rules. ``labmates tasks check`` calls `examine.try_task`, which also detects
tasks that hang, or give different data in another process.
"""

from __future__ import annotations

from labmates_author.tasks.examine import RULES, check_task
from labmates_author.trial import Problem

__all__ = ["RULES", "Problem", "check_task"]
