"""The conformance test for tasks, built-in and of other packages.

`check_task` applies the rules. ``labmates tasks check`` calls `conformance.examine.try_task`, which also detects
tasks that hang, or give different data in another process.
"""

from __future__ import annotations

from labmates.tasks.conformance.examine import RULES, check_task
from labmates.tasks.conformance.trial import Problem

__all__ = ["RULES", "Problem", "check_task"]
