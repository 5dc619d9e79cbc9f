"""What ``--help`` may not import: the libraries that would make it slow."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.command_line import HEAVY, verbs

# In one process, since a library that one verb imports is found at that verb, and none may import it.
PROGRAM = f"""
import json, sys
from benchmarks.command_line import verbs
from labmates.cli.main import run_command
kept, found = sys.stdout, {{}}
for verb in verbs():
    sys.stdout = open("/dev/null", "w")
    code = run_command([*verb, "--help"])
    sys.stdout = kept
    for name in sorted({set(HEAVY)!r}.intersection(sys.modules) - found.keys()):
        found[name] = " ".join(verb)
    found |= {{" ".join(verb): code}} if code else {{}}
print(json.dumps(found))
"""


def test_no_help_imports_a_heavy_library() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {}


def test_the_verbs_with_help_are_all_verbs_and_those_below_them() -> None:
    found = {" ".join(verb) for verb in verbs()}
    assert {"", "run", "run science", "analyze", "tasks new", "models", "study plan"} <= found
