"""Another process that makes a task's data sets, for `labmates_author.tasks.examine`: REFERENCE SEED/DIFFICULTY…

It writes the hashes of each data set as a JSON object a line; output of the task goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from typing import cast

from labmates.tasks.base import Difficulty
from labmates.tasks.registry import load_task
from labmates_author.tasks.cases import fingerprint


def main(reference: str, *places: str) -> None:
    """Make the data sets in this order."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    task = load_task(reference)
    for place in places:
        seed, _, difficulty = place.partition("/")
        channel.write(json.dumps(fingerprint(task.generate(int(seed), cast(Difficulty, difficulty)))) + "\n")
        channel.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
