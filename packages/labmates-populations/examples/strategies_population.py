"""A population of strategies as code.

A model writes strategies with two attitudes (here the scripted author, offline); they are checked, mixed in groups,
and evolve. What happens to welfare as groups get more exploitative members, and which attitude wins?
"""

import subprocess

import labmates
from labmates.records.store import Store
from labmates_populations.outcomes import evolution_results, welfare_curve

STORE = "sqlite:///population.db"
WRITE = ["labmates", "strategies", "write", "--model", "scripted:author", "--game", "public-goods", "-n", "8"]

for attitude in ("collective", "exploitative"):
    subprocess.run([*WRITE, "--attitude", attitude, "--store", STORE], check=True, capture_output=True)

[selfplay] = labmates.run("selfplay", game="public-goods", strategies="strategies", samples=20, store=STORE)
evolutions = labmates.run(
    "evolution",
    game="public-goods",
    strategies="strategies",
    population=32,
    elite=4,
    generations=10,
    replicates=2,
    store=STORE,
)

store = Store(STORE)
print("Welfare per round in groups of four, with its 95 % interval")
for share, welfare in welfare_curve(store, selfplay).points:
    (low, high), bar = welfare.ends(), "#" * round(20 * welfare.value)
    print(f"{share:>6.0%} exploitative   {welfare.value:.2f} [{low:.2f}, {high:.2f}]   {bar}")

[evolution] = evolution_results(store, evolutions)
print(f"\nAfter {evolution.generations:.0f} generations: cooperation {evolution.cooperation:.0%}")
for gene, runs in evolution.winners.items():
    print(f"{gene} won {runs} of {evolution.runs} evolutions")
store.close()
