"""Games of many groups at once, round by round. No strategy's code runs here; processes of players make decisions.

A player that fails makes the fallback move of its attitude; it does not affect the game otherwise.
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labmates_populations.engine.kernel.batches import Batch, Cost, Errors, Result
from labmates_populations.engine.kernel.hosts import Failure, History, Host, HostError, UnreadyError
from labmates_populations.engine.kernel.limits import MOST_SPENT
from labmates_populations.engine.kernel.players import FAILED
from labmates_populations.engine.kernel.source import Source
from labmates_populations.engine.kernel.tables import UNKNOWN, Table
from labmates_populations.engine.kernel.ways import COMPILED, PROCESS, WAYS
from labmates_populations.engine.kernel.wire import send
from labmates_populations.repeated import RepeatedGame

_MOST_KEPT = 128
"""Maximum number of processes of single strategies that are kept for the next batch."""
_MOST_TABLES = 2
_MOST_COLUMNS = 5
"""Number of opponents up to which moves are cached by what each opponent does; the table doubles with each."""
_NOISE, _ORDER = 1, 2
"""Components of the seeds of noise and of the order of players, in contrast to players' random numbers."""
_COMPILED_ONES = -1
"""In place of a strategy: all compiled ones."""
_PROCESS = WAYS.index(PROCESS)


def serve(connection: socket.socket, settings: dict[str, Any], requests: int) -> None:
    """Play batches until the connection closes; `requests` is the descriptor of the socket to the forking process."""
    send(connection, {"ready": True})
    with socket.socket(fileno=requests) as forks, Connection(connection.detach()) as link:
        engine = Engine(forks, settings)
        while True:
            try:
                sources, batch = link.recv()
            except EOFError:
                return
            engine.sources += sources
            try:
                link.send(engine.play(batch))
            except Exception as error:  # the one who asked learns the reason
                what = str(error) if isinstance(error, (HostError, UnreadyError)) else repr(error)
                link.send((what, isinstance(error, UnreadyError) and not error.confined))


class Engine:
    """Plays batches; `forks` is the socket to the forking process, for `settings` see `players.serve`."""

    def __init__(self, forks: socket.socket, settings: Mapping[str, Any]) -> None:
        self.sources: list[Source] = []
        self.greedy: set[int] = set()
        """Compiled strategies that exceeded the shared memory, and have a process from then on."""
        self._forks = forks
        self._settings = dict(settings)
        self._hosts: dict[int, Host] = {}
        """The processes of players by strategy; `_COMPILED_ONES` is that of all compiled ones."""
        self._tables: dict[Any, Table] = {}
        self._facts = np.zeros((0, 4), np.int8)

    def facts(self, strategies: NDArray[np.int64]) -> NDArray[np.int8]:
        """Facts of strategies: whether each may be run, has the paper's form and draws random numbers, and its way.

        The shape is ``(4, strategies)``.
        """
        new = self.sources[len(self._facts) :]
        if new:
            rows = [(one.playable, one.found.paper, one.found.random, WAYS.index(one.found.way)) for one in new]
            self._facts = np.concatenate([self._facts, np.array(rows, np.int8)])
        return self._facts[strategies].T

    def play(self, batch: Batch) -> Result:
        """Play one game in each group.

        Raises
        ------
        HostError
            If a process of players dies for a reason other than a strategy.
        UnreadyError
            If a process of players can't be started.
        """
        began = time.process_time()
        play = _Play(batch, self)
        try:
            for t in range(batch.rounds):
                play.round(t)
        except BaseException:
            self.end_hosts()
            raise
        self.end_hosts(0 if batch.anew else _MOST_KEPT)
        errors = {strategy: error.trimmed() for strategy, error in play.errors.items()}
        return Result(play.actions, errors, play.costs, time.process_time() - began)

    def host(self, strategy: int) -> Host:
        """The process of a strategy's players, or of all compiled ones."""
        host = self._hosts.pop(strategy, None)
        if host is None:
            most = math.inf if strategy == _COMPILED_ONES else 2.0 * MOST_SPENT
            host = Host(self._forks, self._settings, most)
        self._hosts[strategy] = host  # least recently used first
        return host

    def end_host(self, strategy: int) -> None:
        """End the process of a strategy's players, or of all compiled ones; the next one starts afresh."""
        self._hosts.pop(strategy).close()

    def end_hosts(self, kept: int = 0) -> None:
        """End all processes of players but the `kept` last used ones."""
        for strategy in list(self._hosts)[: max(0, len(self._hosts) - kept)]:
            self.end_host(strategy)

    def table(self, game: RepeatedGame, outcomes: int) -> Table:
        """The cached moves of a game, in which a player observes one of `outcomes` in a round."""
        key = game, outcomes
        table = self._tables.pop(key, None) or Table(outcomes)
        self._tables[key] = table  # least recently used first
        if len(self._tables) > _MOST_TABLES:
            del self._tables[next(iter(self._tables))]
        return table


def _slips(batch: Batch) -> NDArray[np.uint8] | None:
    """Shifts of moves by noise, ``(groups, rounds, players)``; each group draws from its own seed."""
    if not batch.game.noise:
        return None
    shape = batch.game.n_rounds, batch.groups.shape[1]
    numbers = batch.group_numbers.tolist()
    drawn = [np.random.default_rng([batch.seed, group, _NOISE]).random(shape) for group in numbers]
    slips = np.array(drawn) / batch.game.noise  # uniform below 1 if there is a slip
    return np.where(slips < 1, 1 + slips * (len(batch.game.labels) - 1), 0).astype(np.uint8)


class _Play:
    """The state of a batch in play."""

    def __init__(self, batch: Batch, engine: Engine) -> None:
        self._batch, self._engine, game = batch, engine, batch.game
        self._strategies = batch.groups.reshape(-1)
        places, rounds, others = len(self._strategies), game.n_rounds, game.n_players - 1
        facts = engine.facts(self._strategies)
        playable, of_paper, random = facts[:3].astype(bool)
        self._way = facts[3]
        paper = bool(of_paper.any())
        kind: Any = np.bool_ if game.is_binary else np.uint8
        theirs = (
            (np.zeros((places, rounds, others), kind), np.zeros((places, rounds, others))) if paper else (None, None)
        )
        self.actions = np.empty((len(batch.groups), rounds, batch.groups.shape[1]), kind)
        self.errors: dict[int, Errors] = {}
        self.costs: dict[str, Cost] = {}
        self._stock = game.start(len(batch.groups))
        cooperate = np.isin(self._strategies, list(batch.cooperate))
        self._fallback = cooperate if game.is_binary else np.where(cooperate, 0, len(game.labels) - 1).astype(kind)
        self._running = ~np.isin(self._strategies, list(batch.broken))
        self._running &= playable
        for place in np.flatnonzero(~self._running).tolist():
            self._fail(place, -1, "is not run", over=True)
        self._way[np.isin(self._strategies, list(engine.greedy))] = _PROCESS
        # Players of a strategy are consecutive, so its code stays in the processor's cache.
        self._order = np.empty(places, np.int64)
        self._order[np.argsort(self._strategies, kind="stable")] = np.arange(places)
        # The order in memory of players that share a process says nothing about their seats.
        self._shuffled = np.random.default_rng([batch.seed, _ORDER]).permutation(places)
        self._told = {
            "game": {"name": game.name, "n_players": game.n_players, "n_rounds": rounds, "parameters": game.parameters},
            "moves": len(game.labels),
            "seed": batch.seed, "seats": batch.groups.shape[1], "paper": paper,
        }  # fmt: skip
        if batch.texts:
            members = zip(batch.group_numbers.tolist(), batch.groups.tolist(), strict=True)
            texts = {str(one): batch.texts[one] for one in set(self._strategies.tolist())}
            self._told |= {"members": {str(group): seats for group, seats in members}, "texts": texts}
        self._columns = of_paper if paper and game.is_binary and others <= _MOST_COLUMNS else None
        """The players whose observation of a round is what each opponent did, if the table has room for it."""
        same = self._running & ~random
        if self._columns is None:
            same &= ~of_paper
        # With noise, a move does not follow from the player's observations.
        same &= game.is_binary and game.noise == 0 and batch.given is None and not game.sources
        self._begun: set[int] = set()
        """The processes, by strategy, that know the batch."""
        self._slips = _slips(batch)
        payoffs: NDArray[np.float64] = np.zeros((places, rounds))
        by_action = () if game.is_binary else (len(game.labels),)
        counts: NDArray[np.int64] = np.zeros((places, rounds, *by_action), np.int64)
        self._table = engine.table(game, game.n_players if self._columns is None else 1 << others)
        self._nodes = self._table.start(self._strategies, same & (not batch.anew), rounds)
        stocks = None if game.start(1) is None else np.zeros((places, rounds))
        self._history = History(np.zeros((places, rounds), kind), payoffs, counts, stocks, *theirs)

    def round(self, t: int) -> None:
        """Play a round: decisions of all players, then payoffs."""
        game, groups = self._batch.game, self._batch.groups
        if self._stock is not None and self._history.stocks is not None:
            self._history.stocks[:, t] = np.repeat(self._stock, groups.shape[1])
        chosen: NDArray[Any] = self._fallback.copy()
        known = self._table.moves(self._nodes)
        chosen[known != UNKNOWN] = known[known != UNKNOWN]
        waiting = self._running & (known == UNKNOWN)
        if waiting.any():
            self._decide(t, np.flatnonzero(waiting), chosen)
        if self._batch.given is not None and t < self._batch.given.shape[1]:
            chosen = self._batch.given[:, t].reshape(-1)
        elif self._slips is not None:
            slips = self._slips[:, t].reshape(-1)
            chosen = chosen ^ slips.astype(bool) if game.is_binary else (chosen + slips) % len(game.labels)
        own = chosen.reshape(groups.shape)
        actions, paid, counts = self._outcome(t, own)
        self._stock = game.next_stock(self._stock, paid)
        self.actions[:, t] = own
        counts = counts.reshape(-1, *self._history.counts.shape[2:])
        self._write(t, actions, paid, counts)
        seen, theirs = counts, self._history.their_actions
        if self._columns is not None and theirs is not None:
            seen = np.where(self._columns, theirs[:, t] @ (1 << np.arange(theirs.shape[2])), counts)
        self._nodes = self._table.after(self._nodes, seen)

    def _outcome(self, t: int, own: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.int64]]:
        """The moves and payoffs of a round, of the strategies first, and the moves of others that each of them sees."""
        game, opponents = self._batch.game, self._batch.opponents
        if opponents is None:
            return own, game.payoffs(own, self._stock), game.others(own, own)
        actions = np.concatenate([own, opponents[np.arange(len(own)) % len(opponents), t]], axis=1)
        return actions, game.payoffs(actions, self._stock), game.others(actions, own)

    def _write(self, t: int, actions: NDArray[Any], paid: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        """Add a round to the players' observations."""
        history, seats = self._history, self._batch.groups.shape[1]
        history.actions[:, t] = actions[:, :seats].reshape(-1)
        history.payoffs[:, t] = paid[:, :seats].reshape(-1)
        history.counts[:, t] = counts
        if history.their_actions is not None and history.their_payoffs is not None:
            for seat in range(seats):
                history.their_actions[seat::seats, t] = np.delete(actions, seat, axis=1)
                history.their_payoffs[seat::seats, t] = np.delete(paid, seat, axis=1)

    def _decide(self, t: int, missing: NDArray[np.int64], chosen: NDArray[Any]) -> None:
        """Let players decide, only one of the players in the same node."""
        nodes = self._nodes[missing]
        if nodes.any():
            alone = -1 - np.arange(len(nodes))
            _, first, which = np.unique(np.where(nodes > 0, nodes, alone), return_index=True, return_inverse=True)
        else:
            first = which = np.arange(len(nodes))
        asked = missing[first]
        answers = self._answers(t, asked)
        failed = answers == FAILED
        chosen[missing[~failed[which]]] = answers[which][~failed[which]]
        self._table.keep(self._nodes[asked[~failed]], answers[~failed])
        if failed.any():
            # The other players in these nodes are asked too, because each failure counts separately.
            more = missing[np.isin(missing, asked, invert=True) & failed[which] & self._running[missing]]
            told = self._answers(t, more)
            chosen[more[told != FAILED]] = told[told != FAILED]
            self._nodes[more[told == FAILED]] = 0
        self._nodes[asked[failed]] = 0

    def _answers(self, t: int, places: NDArray[np.int64]) -> NDArray[np.uint8]:
        """The players' answers; `FAILED` for those that have failed."""
        answers = np.full(len(places), FAILED, np.uint8)
        while True:
            compiled = np.flatnonzero(self._way[places] < _PROCESS)
            if not len(compiled) or self._ask_compiled(t, places, compiled, answers):
                break
        self._ask_strategies(t, places, np.flatnonzero(self._way[places] == _PROCESS), answers)
        return answers

    def _ask(self, t: int, strategy: int, places: NDArray[np.int64]) -> Host:
        """Ask players in the process of a strategy, or of all compiled ones."""
        host = self._engine.host(strategy)
        if strategy not in self._begun:
            host.begin(self._told, self._batch.group_numbers, len(self._strategies))
            self._begun.add(strategy)
        host.ask(t, places, self._strategies[places], self._history, self._engine.sources)
        return host

    def _ask_compiled(
        self, t: int, places: NDArray[np.int64], which: NDArray[np.int64], answers: NDArray[np.uint8]
    ) -> bool:
        """Ask compiled players; False if a strategy gets a process from now on, and the others must repeat."""
        which = which[np.argsort(self._order[places[which]])]
        asked = places[which]
        host = self._ask(t, _COMPILED_ONES, asked)
        try:
            told, failures = self._taken(host, COMPILED)
            greedy = {int(self._strategies[asked[failure.index]]) for failure in failures if failure.memory}
        except HostError as error:
            if error.place < 0:
                raise
            greedy = {int(self._strategies[error.place])}
        if greedy:
            self._engine.greedy |= greedy
            self._way[np.isin(self._strategies, list(greedy))] = _PROCESS
            self._engine.end_host(_COMPILED_ONES)
            self._begun.remove(_COMPILED_ONES)
            return False
        answers[which] = told
        self._failed(asked, failures)
        return True

    def _ask_strategies(
        self, t: int, places: NDArray[np.int64], which: NDArray[np.int64], answers: NDArray[np.uint8]
    ) -> None:
        """Ask players in processes of their strategies; whatever a process does is the fault of its strategy."""
        which = which[np.argsort(self._shuffled[places[which]])]
        numbers = self._strategies[places[which]]
        asked = [(number, which[numbers == number]) for number in np.unique(numbers).tolist()]
        hosts = [self._ask(t, number, places[indices]) for number, indices in asked]
        for (number, indices), host in zip(asked, hosts, strict=True):
            try:
                answers[indices], failures = self._taken(host, PROCESS)
                self._failed(places[indices], failures)
            except HostError as error:
                self._engine.end_host(number)
                self._begun.remove(number)
                for place in np.flatnonzero(self._running & (self._strategies == number)).tolist():
                    self._over(place, t, error.what, fatal=True)

    def _taken(self, host: Host, way: str) -> tuple[NDArray[np.uint8], list[Failure]]:
        answers = host.answers()
        self._count(way, len(answers.moves), answers.seconds)
        return answers.moves, answers.failures

    def _count(self, way: str, decisions: int, seconds: float) -> None:
        self.costs[way] = self.costs.get(way, Cost()) + Cost(decisions, seconds)

    def _failed(self, places: NDArray[np.int64], failures: Sequence[Failure]) -> None:
        for failure in failures:
            over, t = failure.over, failure.round
            if 0 <= t < self._batch.rounds - 1 and self._batch.given is not None and not over:
                continue
            place = int(places[failure.index])
            self._fail(place, t, failure.what, over=over, spent=failure.spent)
            self._running[place] &= not over

    def _fail(self, place: int, t: int, what: str, *, over: bool, spent: bool = False, fatal: bool = False) -> None:
        """Count a player's error; with `over` it falls back for the rest of the game."""
        strategy = int(self._strategies[place])
        group, seat = divmod(place, self._batch.groups.shape[1])
        errors = self.errors.setdefault(strategy, Errors(t, what))
        cost = self._batch.game.n_rounds - max(t, 0) if over else 1
        errors.add(f"{self._batch.group_numbers[group]} {seat}", t, what, cost)
        errors.spent += spent
        errors.fatal |= fatal

    def _over(self, place: int, t: int, what: str, *, spent: bool = False, fatal: bool = False) -> None:
        self._fail(place, t, what, over=True, spent=spent, fatal=fatal)
        self._running[place] = False
        self._nodes[place] = 0
