"""The conformance test that every task must pass, ours and those of other packages.

`check_task` applies the rules in this process. ``labmates tasks check`` calls `conformance.trial.try_task`, which does
it in processes of their own, and so can also name a task that hangs, crashes, takes too much memory or gives other
data in another process.
"""

from __future__ import annotations

from labmates.tasks.conformance.events import Problem
from labmates.tasks.conformance.examine import RULES, check_task

__all__ = ["RULES", "Problem", "check_task"]
