"""The conformance test for tasks, built-in and of other packages.

`check_task` applies the rules in this process. ``labmates tasks check`` calls `conformance.trial.try_task`, which runs
them in separate processes, and so also detects tasks that hang, crash, take too much memory or give different data in
another process.
"""

from __future__ import annotations

from labmates.tasks.conformance.events import Problem
from labmates.tasks.conformance.examine import RULES, check_task

__all__ = ["RULES", "Problem", "check_task"]
