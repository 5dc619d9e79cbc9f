"""Simulated studies of paired differences with a known truth, for tests and the table of coverage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from labmates.stats.domains import ANY, SHARE, Domain
from labmates.stats.intervals import LEVEL
from labmates.stats.paired import Pair, difference, possible

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Draw = Callable[[np.random.Generator, int], Sequence[Pair]]
SHARES = SHARE.difference()
SKILL = Domain(-0.19, 1.0).difference()


@dataclass(frozen=True)
class World:
    """A world: its pairs with this many blocks a task, the true difference, and what is claimed."""

    draw: Draw
    truth: float = 0.0
    domain: Domain = SHARES
    over: tuple[str, ...] = ()
    blocks: tuple[int, ...] = (3, 5, 10, 20)


def one_task(values: Callable[[np.random.Generator, int], Floats]) -> Draw:
    """One model on one task, a value a block."""
    return lambda rng, n: [Pair("task", str(at), "", float(value)) for at, value in enumerate(values(rng, n))]


def yes_no(first: float, second: float) -> Draw:
    """The difference of two yes-or-no outcomes."""
    return one_task(lambda rng, n: (rng.random(n) < first).astype(float) - (rng.random(n) < second))


def failing(share: float, loss: float = 0.9, spread: float = 0.02) -> Draw:
    """Equal arms, of which the first one is unreadable in some blocks and then gets 0."""

    def draw(rng: np.random.Generator, n: int) -> list[Pair]:
        values, failed = rng.normal(0, spread, n), rng.random(n) < share
        return [
            Pair("task", str(at), "", -loss if failed[at] else float(values[at]), not failed[at]) for at in range(n)
        ]

    return draw


def skill(rng: np.random.Generator, n: int) -> Floats:
    """Skill that is perfect in 60 % of runs, and never below its floor."""
    return np.maximum(-0.19, np.where(rng.random(n) < 0.6, 1.0, 1 - rng.exponential(0.5, n)))


def tasks(spreads: Sequence[float], effects: Sequence[float]) -> Draw:
    """Several tasks with their own spread and effect."""
    return lambda rng, n: [
        Pair(f"task{at}", str(block), "", float(rng.normal(effect, spread)))
        for at, (spread, effect) in enumerate(zip(spreads, effects, strict=True))
        for block in range(n)
    ]


def crossed(
    models: int,
    of_tasks: int,
    *,
    model: float = 0.0,
    task: float = 0.0,
    block: float = 0.0,
    both: float = 0.0,
    conditions: int = 1,
) -> Draw:
    """Models times tasks times blocks (and conditions of each), with effects of each of these standard deviations."""

    def draw(rng: np.random.Generator, n: int) -> list[Pair]:
        of_model, of_task = rng.normal(0, model, models), rng.normal(0, task, of_tasks)
        of_block, of_both = rng.normal(0, block, (of_tasks, n)), rng.normal(0, both, (models, of_tasks))
        return [
            Pair(
                f"task{t}",
                str(b),
                f"model{m}",
                float(of_model[m] + of_task[t] + of_block[t, b] + rest),
            )
            for m in range(models)
            for t in range(of_tasks)
            for b in range(n)
            for rest in rng.normal(of_both[m, t], 0.1, conditions)
        ]

    return draw


def unbalanced(rng: np.random.Generator, n: int) -> list[Pair]:
    """Two tasks, the noisier one with a third of the blocks."""
    return [
        Pair(f"task{at}", str(block), "", float(rng.normal(0, spread)))
        for at, (blocks, spread) in enumerate(((n, 0.3), (3 * n, 0.05)))
        for block in range(blocks)
    ]


def skewed_tasks(number: int) -> Draw:
    """Log-normal differences about 0 in some tasks."""
    return lambda rng, n: [
        Pair(f"task{task}", str(block), "", float(rng.lognormal(0, 1) - np.exp(0.5)))
        for task in range(number)
        for block in range(n)
    ]


def lopsided(rng: np.random.Generator, n: int) -> list[Pair]:
    """Three tasks of n, 2 n and 3 n blocks, the first one skewed, with two models that share all data sets."""
    effects = 0.2 * (rng.gamma(0.5, size=n) - 0.5), rng.normal(0, 0.1, 2 * n), rng.normal(0, 0.1, 3 * n)
    return [
        Pair(f"task{task}", str(block), model, float(np.clip(value + rng.normal(0, 0.05), -1.0, 1.0)))
        for task, values in enumerate(effects)
        for block, value in enumerate(values)
        for model in ("a", "b")
    ]


def dominated(rng: np.random.Generator, n: int) -> Floats:
    """Differences of which one varies ten times as much as the others."""
    return rng.normal(0, 0.04 * np.where(np.arange(n) == 0, 10, 1), n)


def harder(rng: np.random.Generator, n: int) -> Floats:
    """The harder a data set, the worse the first arm and the larger the spread."""
    hardness = rng.random(n)
    return 0.4 * (0.5 - hardness) + rng.normal(0, 0.3 * hardness, n)


def losing(rng: np.random.Generator, n: int) -> tuple[Floats, Floats]:
    """Equal arms, of which the first one loses three in ten of its runs (NaN), all of them below its median."""
    first, second = rng.normal(0.5, 0.1, (2, n))
    return np.where((first < 0.5) & (rng.random(n) < 0.6), np.nan, first), second


def lost(rng: np.random.Generator, n: int) -> list[Pair]:
    """The pairs that such arms leave, at least one."""
    first, second = losing(rng, n)
    kept = np.flatnonzero(np.isfinite(first)) if np.isfinite(first).any() else [0]
    return [Pair("task", str(at), "", float(np.nan_to_num(first[at]) - second[at])) for at in kept]


def lost_at_ends(rng: np.random.Generator, n: int) -> tuple[list[Pair], list[Pair]]:
    """The pairs of such arms, with lost runs at 0 and at 1."""
    first, second = losing(rng, n)
    values = [np.nan_to_num(first, nan=end) - second for end in (0, 1)]
    least, most = ([Pair("task", str(at), "", float(each)) for at, each in enumerate(some)] for some in values)
    return least, most


def rare(rng: np.random.Generator, n: int) -> list[Pair]:
    """Small gains and rare large losses, which few blocks don't show."""
    values = rng.choice([0.0, 0.1, -0.4], n, p=[0.5, 0.4, 0.1])
    return [Pair("task", str(at), "", float(value)) for at, value in enumerate(values)]


FEW = (2, 3, 5)
MORE = (3, 5, 6, 8, 10, 20)
BOTH = ("models", "tasks")
WORLDS: dict[str, World] = {
    "normal": World(one_task(lambda rng, n: rng.normal(0, 0.1, n))),
    "normal, +.2": World(one_task(lambda rng, n: rng.normal(0.2, 0.1, n)), 0.2),
    "yes or no, .5 and .5": World(yes_no(0.5, 0.5)),
    "yes or no, .95 and .5": World(yes_no(0.95, 0.5), 0.45),
    "win in 90 %, never a loss": World(yes_no(0.9, 0.0), 0.9),
    "equal in 80 %, else ±.3": World(one_task(lambda rng, n: (rng.random(n) < 0.2) * rng.choice([-0.3, 0.3], n))),
    "equal in 60 %, else up to +.5": World(one_task(lambda rng, n: (rng.random(n) < 0.4) * rng.random(n) / 2), 0.1),
    "shares near the end": World(one_task(lambda rng, n: rng.beta(8, 1, n) - rng.beta(2, 2, n)), 8 / 9 - 0.5),
    "shares of 20 at .02": World(one_task(lambda rng, n: np.subtract(*rng.binomial(20, 0.02, (2, n))) / 20)),
    "skill, 60 % perfect": World(one_task(lambda rng, n: skill(rng, n) - skill(rng, n)), domain=SKILL),
    "log-normal, unbounded": World(
        one_task(lambda rng, n: rng.lognormal(0, 1, n) - rng.lognormal(0, 1, n)), domain=ANY
    ),
    "skewed: log-normal": World(skewed_tasks(1), domain=ANY, blocks=(3, 4, 5, 6, 8, 10, 20)),
    "skewed: log-normal, bounded": World(
        one_task(lambda rng, n: np.minimum(1.1, rng.lognormal(0, 1, n) / 10) - 0.1606), domain=SKILL, blocks=MORE
    ),
    "skewed: crowded at 0, beta(.3, 3)": World(one_task(lambda rng, n: rng.beta(0.3, 3, n) - 1 / 11), blocks=MORE),
    "skewed: two tasks": World(skewed_tasks(2), domain=ANY, blocks=(3, 5, 10)),
    "skewed: four tasks": World(skewed_tasks(4), domain=ANY, blocks=FEW),
    "heavy tails (t, 2.2 df)": World(one_task(lambda rng, n: rng.standard_t(2.2, n)), domain=ANY),
    "four tasks, alike": World(tasks([0.1] * 4, [0.0] * 4), blocks=FEW),
    "four tasks, other effects": World(tasks([0.05] * 4, [0.3, -0.1, 0.0, -0.2]), blocks=FEW),
    "four tasks, sd .05 to .2": World(tasks([0.05, 0.2, 0.1, 0.1], [0.0] * 4), blocks=FEW),
    "two tasks, n and 3 n blocks, sd .3 and .05": World(unbalanced, blocks=(2, 3, 5)),
    "a task with an effect each, one data set": World(tasks([0.1] * 4, [0.1, -0.1, 0.1, -0.1]), blocks=(1,)),
    "credits of four findings": World(one_task(lambda rng, n: np.subtract(*rng.binomial(4, 0.7, (2, n))) / 4)),
    "12 conditions share 5 data sets": World(crossed(1, 1, block=0.1, conditions=12), blocks=(3, 5)),
    "2 models, 3 tasks, 4 conditions": World(crossed(2, 3, block=0.1, conditions=4), blocks=FEW),
    "sd differs by data set": World(one_task(lambda rng, n: rng.normal(0, 0.1 * rng.lognormal(0, 1, n)))),
    "half gain .3, half lose .2": World(
        one_task(lambda rng, n: np.where(rng.random(n) < 0.5, 0.3, -0.2) + rng.normal(0, 0.03, n)), 0.05
    ),
    "three tasks, n to 3 n blocks, one skewed": World(lopsided, blocks=FEW),
    "equal in 70 %, else +.25 twice as often as -.5": World(
        one_task(lambda rng, n: rng.choice([0.0, 0.25, -0.5], n, p=[0.7, 0.2, 0.1])), blocks=MORE
    ),
    "one data set varies ten times as much": World(one_task(dominated), blocks=MORE),
    "harder data sets: worse and noisier": World(one_task(harder), blocks=MORE),
    "new models: 5, data sets sd .1": World(crossed(5, 1, model=0.1, block=0.1), 0, ANY, ("models",), (3, 5)),
    "new models: 5 on 2 tasks": World(crossed(5, 2, model=0.1, block=0.1), 0, ANY, ("models",), FEW),
    "new models: 8 alike": World(crossed(8, 1, block=0.1), 0, ANY, ("models",), (3, 5)),
    "new models and tasks: 5 and 4": World(
        crossed(5, 4, model=0.1, task=0.1, both=0.1), 0, ANY, ("models", "tasks"), FEW
    ),
    "new models and tasks: 3 and 3": World(
        crossed(3, 3, model=0.1, task=0.1, block=0.05), 0, ANY, ("models", "tasks"), FEW
    ),
    "new tasks: 4": World(crossed(2, 4, task=0.1, block=0.05), 0, ANY, ("tasks",), FEW),
}
"""All have 3 blocks or more, in one task or several."""
UNREADABLE: dict[str, World] = {
    "unreadable in 5 %": World(failing(0.05), -0.045),
    "unreadable in 15 %": World(failing(0.15), -0.135),
    "unreadable in 15 %, sd .1": World(failing(0.15, spread=0.14), -0.135),
}
"""Worlds of rare failures; studies without a failure tell nothing of it, and their interval is for readable reports."""
LIMITS: dict[str, World] = {
    "the first arm loses worse runs": World(lost, blocks=MORE),
    "equal in half, else +.1 four times as often as -.4": World(rare, blocks=MORE),
}
"""Worlds in which the interval does not hold; the answer says what it takes for granted, and the interval below."""
BY_RANGE: dict[str, Callable[[np.random.Generator, int], tuple[list[Pair], list[Pair]]]] = {
    "the first arm loses worse runs": lost_at_ends,
    "equal in half, else +.1 four times as often as -.4": lambda rng, n: (rare(rng, n),) * 2,
}
"""The pairs of the same worlds with the least and the most that lost runs may have given."""


@dataclass(frozen=True)
class Coverage:
    """How often an interval holds the truth, excludes 0, and disagrees with its p; and the studies counted."""

    held: float
    rejected: float
    disagree: float
    studies: int


def coverage(world: World, blocks: int, studies: int, seed: int = 0) -> Coverage:
    """The coverage in simulated studies; a missing interval counts as held.

    In studies of rare failures without a failure the truth is 0, that of readable reports.
    """
    rng = np.random.default_rng([seed, blocks])
    held = rejected = disagree = 0
    for _ in range(studies):
        pairs = world.draw(rng, blocks)
        found = difference(pairs, world.domain, world.over)
        if found.low is None or found.high is None or found.p is None:
            held += 1
            continue
        truth = 0.0 if world in UNREADABLE.values() and all(pair.usable for pair in pairs) else world.truth
        held += found.low - 1e-9 <= truth <= found.high + 1e-9
        excludes = not found.low <= 0 <= found.high
        rejected += excludes
        disagree += excludes != (found.p < 0.05)
    return Coverage(held / studies, rejected / studies, disagree / studies, studies)


def held_by_range(name: str, blocks: int, studies: int, seed: int = 0) -> float:
    """How often the interval that the range alone allows holds 0, in a world of `BY_RANGE`."""
    rng = np.random.default_rng([seed, blocks])
    ends = [possible(*BY_RANGE[name](rng, blocks), SHARES, LEVEL) for _ in range(studies)]
    return float(np.mean([low is not None and high is not None and low <= 0 <= high for low, high in ends]))
