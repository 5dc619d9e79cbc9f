"""Analysis of single strategies: fingerprint, nearest known strategy, and an equivalent automaton."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from labmates.errors import UsageError
from labmates.stats.tables import Column, Table
from labmates.workflows.analysis import Analysis, Drawing, Result, Runs
from labmates.workflows.populations.analyses import DiversityParams

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from labmates.workflows.populations.engine.automaton import Automaton
    from labmates.workflows.populations.engine.behaviour import Behaviour
    from labmates.workflows.populations.engine.workers import Workers

_MOST_DRAWN = 60
_MOST_NUMBERED = 60
"""Maximum rows of a heat map with numbers in its cells."""


class FingerprintParams(DiversityParams):
    """The parameters of the analysis of fingerprints."""

    features: Literal["counts"] = Field(
        "counts", description="Features of a history: the number of cooperators per round."
    )
    namesakes: Literal["references", "axelrod"] = Field(
        "references",
        description="Strategies to compare with: the reference strategies, or with --group-size 2 also the "
        "deterministic strategies of the axelrod library.",
    )

    def references(self, runs: Runs, workers: Workers) -> dict[str, NDArray[np.float64]]:
        """Cooperation rates of the strategies to compare with, by name.

        Raises
        ------
        UsageError
            If strategies of axelrod are requested for games of more than two players.
        """
        from labmates.workflows.populations.engine.reference import REFERENCES, reference_source

        if self.namesakes == "axelrod" and self.group_size != 2:
            raise UsageError("--namesakes axelrod: its strategies play two-player games (--group-size 2)")
        values = {"N": range(1, self.group_size), "P": ("0.5",), "": ("",), "A": ()}
        names = [
            f"{name}-{value}".rstrip("-")
            for name, reference in REFERENCES.items()
            for value in values[reference.parameter]
        ]
        loaded = workers.load("reference strategies", reference_source(names))
        behaviours = self.behaviours(runs, workers, [strategy.index for strategy in loaded])
        rates = {name: behaviour.rates for name, behaviour in zip(names, behaviours, strict=True)}
        return rates | (self._axelrod() if self.namesakes == "axelrod" else {})

    def _axelrod(self) -> dict[str, NDArray[np.float64]]:
        import numpy as np

        from labmates.games.iterated.match import Payoffs
        from labmates.workflows.populations.engine.automaton import deterministic_strategies, library_moves

        game = self.make_game(2, 1)
        actions = np.array([[[False, True]], [[True, True]], [[False, False]], [[True, False]]])
        # The library also needs integers; only the proportions of payoffs matter to its strategies.
        temptation, reward, punishment, sucker = (
            round(1000 * payoff) for payoff in game.play(actions)[:, 0, 0].tolist()
        )
        payoffs = Payoffs(temptation, reward, punishment, sucker)
        rates = {}
        for name in deterministic_strategies():
            with suppress(UsageError):  # strategies that require other payoffs
                rates[f"axelrod/{name}"] = library_moves(name, self.rounds, payoffs).astype(float)
        return rates


@dataclass(frozen=True)
class Fingerprint:
    """The behaviour of one strategy.

    Attributes
    ----------
    after
        Cooperation rate after a round in which 0, 1, … others cooperated, over all situations.
    nearest, agreement
        The most similar known strategy, and the share of equal decisions: the mean over rounds of the mean over
        situations.
    automaton
        None for random strategies, or if there is no automaton.
    last
        The move of the last round if it is constant and the automaton covers the rounds before; else empty.
    """

    name: str
    behaviour: Behaviour
    first: float
    after: tuple[float, ...]
    nearest: str
    agreement: float
    automaton: Automaton | None
    last: str = ""

    def row(self) -> dict[str, Any]:
        """A table row."""
        return {
            "strategy": self.name,
            "deterministic": self.behaviour.deterministic,
            "first": self.first,
            **{f"after_{count}": rate for count, rate in enumerate(self.after)},
            "nearest": self.nearest,
            "agreement": self.agreement,
            "states": None if self.automaton is None else len(self.automaton.actions),
            "automaton": None if self.automaton is None else str(self.automaton),
            "last": self.last or None,
        }


def fingerprint(runs: Runs, params: FingerprintParams) -> Result:
    """Describe each strategy: cooperation by the others' last moves, the nearest known strategy, and an automaton.

    Each strategy is played against every history of the others. The automaton reproduces all moves in games of this
    length; a strategy that counts rounds has no automaton.
    """
    with params.workers(runs) as workers:
        population = params.load(workers)
        members = [index for indices in population.genes.values() for index in indices]
        behaviours = params.behaviours(runs, workers, members, population.cooperate)
        references = params.references(runs, workers)
    names = [population.names[index] for index in members]
    fingerprints = [_fingerprint(*named, references, params) for named in zip(names, behaviours, strict=True)]
    title = f"Fingerprints in {params.game}"
    alt = "Cooperation rates of strategies, in the first round and by how many others cooperated in the last one."
    drawing = Drawing("fingerprints", title, alt, partial(_figure, fingerprints[:_MOST_DRAWN], title))
    return Result([_table(fingerprints, params)], [drawing])


def _fingerprint(
    name: str, behaviour: Behaviour, references: Mapping[str, NDArray[np.float64]], params: FingerprintParams
) -> Fingerprint:
    rates, players, rounds = behaviour.rates, params.group_size, params.rounds
    # In the order of situations, the last count of others varies fastest.
    last = [float(rates[1:].reshape(-1, players)[:, count].mean()) for count in range(players)] if rounds > 1 else []
    alike = {other: _agreement(rates, theirs, players) for other, theirs in references.items()}
    nearest = max(alike, key=alike.__getitem__)
    automaton, end = _automaton(rates == 1, params) if behaviour.deterministic else (None, "")
    return Fingerprint(name, behaviour, float(rates[0]), tuple(last), nearest, alike[nearest], automaton, end)


def _automaton(moves: NDArray[np.bool_], params: FingerprintParams) -> tuple[Automaton | None, str]:
    """The automaton of a strategy, and the move of the last round if the automaton covers only the rounds before."""
    from labmates.workflows.populations.engine.automaton import find_automaton

    players, rounds = params.group_size, params.rounds
    automaton, end = find_automaton(moves, players, rounds), ""
    last = moves[-(players ** (rounds - 1)) :]
    if automaton is None and last.all() == last.any():
        automaton = find_automaton(moves[: -len(last)], players, rounds - 1)
        end = "C" if last.all() else "D"
    return automaton, "" if automaton is None else end


def _agreement(rates: NDArray[np.float64], others: NDArray[np.float64], players: int) -> float:
    """The share of equal decisions: the mean over rounds of the mean over situations."""
    alike = 1 - abs(rates - others)
    means, start, size = [], 0, 1
    while start < len(rates):
        means.append(float(alike[start : start + size].mean()))
        start, size = start + size, size * players
    return sum(means) / len(means)


def _figure(fingerprints: Sequence[Fingerprint], title: str) -> Figure:
    """A heat map of cooperation rates: strategies in rows, the others' last moves in columns."""
    import numpy as np

    from labmates.stats.figures import new_figure, write_numbers

    figure, [axes] = new_figure(6.0, 1.5 + 0.22 * len(fingerprints))
    rates = np.array([[one.first, *one.after] for one in fingerprints])
    image = axes.imshow(rates, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    axes.set_yticks(range(len(fingerprints)), [one.name for one in fingerprints], fontsize=7)
    axes.set_xticks(range(rates.shape[1]), ["first\nround", *map(str, range(rates.shape[1] - 1))])
    if len(fingerprints) <= _MOST_NUMBERED:
        write_numbers(axes, rates)
    axes.set_xlabel("number of others who cooperated in the last round")
    axes.set_title(title, loc="left", fontsize=10)
    figure.colorbar(image, ax=axes, label="cooperation rate")
    return figure


def _table(fingerprints: Sequence[Fingerprint], params: FingerprintParams) -> Table:
    columns = [Column("strategy"), Column("deterministic"), Column("first", "first round", ".2f")]
    columns += [
        Column(f"after_{count}", f"after {count}", ".2f")
        for count in range(params.group_size if params.rounds > 1 else 0)
    ]
    columns += [Column("nearest", "most like"), Column("agreement", form=".0%"), Column("states")]
    columns += [Column("automaton"), Column("last", "last round")]
    notes = [
        f"Cooperation rates over all situations of {params.rounds} rounds with {params.group_size} players: in the "
        "first round, and after 0, 1, … others cooperated.",
        "An automaton begins in state 0; a state's action is followed by the next states after 0, 1, … others "
        "cooperated.",
    ]
    failed = [f"{one.name} failed in {one.behaviour.errors} decisions" for one in fingerprints if one.behaviour.errors]
    return Table("fingerprint", "What strategies do", columns, [one.row() for one in fingerprints], notes + failed)


FINGERPRINT = Analysis(
    "fingerprint",
    "Fingerprints of strategies",
    FingerprintParams,
    fingerprint,
    example="labmates analyze fingerprint strategies --game public-goods --plot fingerprints.png",
    choices=(),
    objects="per strategy",
    has_figures=True,
)
