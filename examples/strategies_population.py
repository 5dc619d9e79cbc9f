"""A population of strategies as code.

A model writes strategies with two attitudes (here the scripted author, offline); they are checked, mixed in groups,
and evolve. What happens to welfare as groups get more exploitative members, and which attitude wins?
"""

import json
import subprocess

import labmates

STORE = "sqlite:///population.db"


def command(*arguments: str) -> str:
    """Run a command of labmates and return what it prints."""
    done = subprocess.run(["labmates", *arguments, "--store", STORE], capture_output=True, text=True, check=True)
    return done.stdout


for attitude in ("collective", "exploitative"):
    command(
        "strategies", "write", "--model", "scripted:author", "--game", "public-goods", "--attitude", attitude, "-n", "8"
    )

GAME = {"game": "public-goods", "strategies": "strategies"}
labmates.run("selfplay", **GAME, samples=50, store=STORE)
labmates.run("evolution", **GAME, population=64, elite=8, generations=20, replicates=3, store=STORE)

print("Welfare per round in groups of four")
for line in command("analyze", "selfplay", "--json").splitlines():
    for mixture in json.loads(line)["mixtures"]:
        print(mixture)

print("\nWho wins the evolution")
print(command("analyze", "evolution"))
